// Outputs of units and cards in simulated linear shifting: messages, writes and timers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "systems/shift/shift_system.hpp"

namespace daqloom::systems {

inline std::uint64_t number_of(protocol::MepId mep) { return static_cast<std::uint64_t>(mep); }

struct ShiftSystem::CardsOut {
    ShiftSystem& system;

    void set_card_timer(std::uint32_t stream, base::Time at) {
        system.nodes().events().push({at, kCard, stream});
    }
};

/// The world of the unit on a node; see ShiftWorld.
struct ShiftSystem::World {
    ShiftSystem& system;
    std::uint32_t node;
    base::Time now;

    [[nodiscard]] protocol::ReadoutIndex self() const {
        return system.placement_.readouts.unit_on[node];
    }

    void send(protocol::ReadoutIndex to, const protocol::UnitMessage& message) {
        send(system.placement_.readouts.node_of[to], message);
    }
    void send(protocol::BuilderIndex to, const protocol::UnitMessage& message) {
        send(system.placement_.builders.node_of[to], message);
    }
    void send(std::uint32_t to, const protocol::UnitMessage& message) {
        system.nodes().send({.from = node,
                             .to = to,
                             .bytes = message_bytes(system.config_.control_bytes, message),
                             .content = ShiftContent::of(message)},
                            now);
    }
    /// Sets a timer; jitter delays the begin of phases and windows.
    void set_timer(base::Time at, protocol::UnitTimer timer) {
        using What = protocol::UnitTimer::What;
        if (timer.what == What::go) {
            system.push(std::max(now, at), kGo, node, node);
            return;
        }
        if (timer.what == What::window) {
            at = std::max(now, system.nodes().clock(node).global(at));
        }
        if (timer.begins_phase()) {
            at += system.config_.phase_jitter.draw(system.jitter_);
        }
        const auto kind = static_cast<std::uint32_t>(timer.what) -
                          static_cast<std::uint32_t>(What::phase) + kPhase;
        system.push(at, kind, self().value(), node);
    }

    // ---- outputs of a readout unit

    void admitted(protocol::StreamIndex stream, protocol::MepId mep, base::Bytes) {
        const std::uint32_t index = system.stream_number(node, stream);
        if (system.run_) {
            Stream& here = system.streams_[index];
            if (system.first_mep_ + number_of(mep) < here.taken) {
                return;  // the card gave this MFP in an earlier epoch
            }
            ++here.taken;
        }
        system.taken_from_card(index, now);
    }
    void write(const protocol::PushWrite& write) {
        system.nodes().send(
            {.from = node,
             .to = system.placement_.builders.node_of[write.builder],
             .bytes = write.bytes,
             .is_data = true,
             .completes = true,
             .content = {.number = number_of(write.mep), .round = write.stream.value()}},
            now);
    }
    void acknowledge(protocol::StreamIndex stream, protocol::MepId) {
        const base::Time after = system.config_.source_acknowledge.draw(system.acknowledge_);
        const std::uint32_t index = system.stream_number(node, stream);
        if (system.run_) {
            system.streams_[index].kept.pop_front();
            ++system.streams_[index].first;
        }
        system.push(now + after, kFreed, index, node);
    }
    void enter_barrier(std::uint64_t generation) {
        system.enter_group(self(), node, generation, now);
    }
    void stage(std::uint64_t step, protocol::ShiftStage stage) {
        system.enter_stage(self(), step, stage, now);
    }

    // ---- outputs of a builder unit

    void answered(protocol::MepId mep, bool) {
        if (system.run_) {
            system.count_answer(node, number_of(mep));
        }
    }
    void deliver(protocol::MepId mep, base::Bytes, base::Bytes) {
        if (system.run_) {
            system.count_delivery(number_of(mep));
        }
        const std::uint32_t place = system.in_process_.put({node, mep});
        const base::Time after = base::draw_total(system.config_.processing, system.processing_);
        system.push(now + after, kProcessed, place, node);
    }
};

}  // namespace daqloom::systems
