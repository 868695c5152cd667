// What units of a simulated DAQPIPE ask for: messages and writes in virtual time.
#pragma once

#include <cstdint>

#include "systems/daqpipe_system.hpp"

namespace daqloom::systems {

/// See protocol::DaqpipeWorld.
struct DaqpipeSystem::World {
    DaqpipeSystem& system;
    std::uint32_t self;  ///< node
    base::Time now;

    void send(protocol::ReadoutIndex to, const protocol::UnitMessage& said) {
        system.send(self, system.placement_.readouts.node_of[to], said, now);
    }
    void send(protocol::BuilderIndex to, const protocol::UnitMessage& said) {
        system.send(self, system.placement_.builders.node_of[to], said, now);
    }
    base::Bytes held(protocol::EventId event) {
        if (system.run_ && system.in_run(event) >= system.placed_[self].offered) {
            return 0;
        }
        return system.sizes_[system.readouts_in_run_.unit_on[self]].next();
    }
    void write(protocol::EventId event, protocol::BuilderIndex to, base::Bytes /*offset*/,
               base::Bytes bytes) {
        ++system.writes_under_way_;
        system.bytes_under_way_ += bytes;
        const bool is_empty = bytes == 0 && system.run_;
        system.nodes().send(
            {.from = self,
             .to = system.placement_.builders.node_of[to],
             .bytes = is_empty ? system.config_.control_bytes : bytes,
             .is_data = true,
             .completes = true,
             .content = {.number = static_cast<std::uint64_t>(event), .round = is_empty ? 1U : 0U}},
            now);
    }
    void give_back(std::uint32_t /*count*/) {}
    void assigned(protocol::EventId event, protocol::BuilderIndex builder) {
        const std::uint64_t number = system.in_run(event);
        const std::uint32_t node = system.placement_.builders.node_of[builder];
        system.assigned_.emplace(
            number, Assigned{protocol::EventId{number}, system.builder_on_[node], now});
        if (system.run_) {
            system.count_answer(self, static_cast<std::uint64_t>(event));
        }
    }
    void collect(protocol::EventId /*event*/, std::uint32_t /*slot*/) {}
    static base::Bytes place(std::uint32_t /*slot*/, protocol::ReadoutIndex /*readout*/) {
        return 0;
    }
    void deliver(protocol::EventId event, std::uint32_t /*slot*/) {
        const auto assigned = system.assigned_.find(system.in_run(event));
        if (system.run_) {
            system.count_delivery(static_cast<std::uint64_t>(event));
        }
        if (system.warm_) {
            system.latency_.record(now - assigned->second.assigned);
        }
        if (system.recording_) {
            system.recorded_.push_back(
                {assigned->second.event, system.builder_on_[self], assigned->second.assigned, now});
        }
        system.counted_.bytes_built += assigned->second.collected_bytes;
        system.assigned_.erase(assigned);
        const std::uint32_t place = system.in_process_.put({self, event});
        system.push(now + system.config_.processing.draw(system.processing_), kProcessed, place,
                    self);
    }
};

}  // namespace daqloom::systems
