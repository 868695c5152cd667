// What units of simulated pull building ask for: messages, writes and timers in virtual time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "systems/pull_system.hpp"

namespace daqloom::systems {

/// See protocol::VirtualPullWorld.
struct PullSystem::World {
    PullSystem& system;
    std::uint32_t node;
    base::Time now;

    void send(protocol::ReadoutIndex to, const protocol::UnitMessage& said) {
        const std::uint32_t there = system.placement_.readouts.node_of[to];
        if (said.kind == protocol::UnitMessage::Kind::done) {
            tell(there, said);
            return;
        }
        const protocol::ReadoutIndex last(system.placement_.readouts.node_of.size() - 1);
        system.nodes().expect(node, system.placement_.readouts.node_of[std::min(to + 4, last)]);
        post(there, said);
    }
    void send(protocol::BuilderIndex to, const protocol::UnitMessage& said) {
        tell(system.placement_.builders.node_of[to], said);
    }
    /// Between the event manager and a builder unit.
    void tell(std::uint32_t to, const protocol::UnitMessage& said) {
        if (system.config_.manager_is_networked) {
            post(to, said);
        } else {
            system.told_.push_back({said, node, to});
        }
    }
    void post(std::uint32_t to, const protocol::UnitMessage& said) {
        system.nodes().send({.from = node,
                             .to = to,
                             .bytes = system.config_.request_size,
                             .content = PullNote::of(said)},
                            now);
    }
    void set_timer(base::Time at, const protocol::UnitTimer& timer) {
        using What = protocol::UnitTimer::What;
        if (timer.what == What::arrival) {
            if (at <= system.config_.duration) {
                system.push(std::max(at, now), kArrival, 0, node);
            }
            return;
        }
        if (system.run_ && timer.what == What::response) [[unlikely]] {
            ++system.served_[node].to_write;
        }
        system.push(at, timer.what == What::response ? kResponse : kProcessed,
                    system.timers_.put({timer, node}), node);
    }

    // ---- of a readout unit

    void write(protocol::EventId event, protocol::BuilderIndex to, base::Bytes /*offset*/) {
        protocol::ReadoutIndex readout(node);
        if (system.run_) [[unlikely]] {
            ++system.served_[node].written;
            if (!system.is_recorded(event)) {
                return;  // it was given out without this fragment, as the unit was lost
            }
            readout = system.readouts_in_run_.unit_on[node];
        }
        system.nodes().send({.from = node,
                             .to = system.placement_.builders.node_of[to],
                             .bytes = system.shares_.fragment(system.record(event).size, readout),
                             .is_data = true,
                             .content = {.number = static_cast<std::uint64_t>(event)}},
                            now);
    }
    void give_back(std::uint32_t /*count*/) {}

    // ---- of the event manager

    void arrived(base::Time /*at*/) {}
    void assigned(protocol::EventId event) {
        system.records_.push({system.sizes_.next(), now, 0, false});
        if (system.run_) [[unlikely]] {
            system.count_answer(node, static_cast<std::uint64_t>(event));
        }
    }

    // ---- of a builder unit

    void collect(protocol::EventId /*event*/, std::uint32_t /*slot*/) {}
    [[nodiscard]] base::Bytes place(std::uint32_t /*slot*/,
                                    protocol::ReadoutIndex /*readout*/) const {
        return 0;
    }
    [[nodiscard]] base::RandomStream& processing_random() { return system.processing_random_; }
    void deliver(protocol::EventId event, std::uint32_t /*slot*/) {
        system.finish(event, node, now);
    }
};

}  // namespace daqloom::systems
