// Linear shifting under a run control, for tests of what becomes of lost units.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "systems/shift_on_paper_test.hpp"

namespace daqloom::systems {

using base::microseconds;

inline constexpr Time kHeartbeat = microseconds(100);
inline constexpr Time kTimeout = microseconds(500);

/// Nodes and spares, in whose places the schedule has dummies, under a run control with short
/// times; MFPs of 64 kB, 2.7 us on their wires.
inline ShiftSystemConfig controlled(std::uint32_t nodes = 4, std::uint32_t spares = 0) {
    ShiftSystemConfig config = system_on(star_200(nodes + spares));
    config.spare_slots.assign(nodes, NodeIndex::none());
    config.spare_slots.insert(config.spare_slots.end(), config.slots.begin() + nodes,
                              config.slots.end());
    std::fill(config.slots.begin() + nodes, config.slots.end(), NodeIndex::none());
    config.mfp_bytes.resize(nodes);
    config.barrier = ShiftBarrier::centralised;
    rdma_of(config).retry_timeout = microseconds(100);
    config.run.emplace();
    config.run->heartbeat = kHeartbeat;
    config.run->fault_timeout = kTimeout;
    config.run->restart = false;
    return config;
}

inline NodeChange kill(std::uint32_t host, Time at) {
    return {.at = at, .host = NodeIndex(host), .what = NodeChange::What::kill};
}
inline NodeChange stop(std::uint32_t host, Time at, Time until) {
    return {.at = at, .host = NodeIndex(host), .what = NodeChange::What::stop, .until = until};
}

inline std::vector<std::uint32_t> members_of(const ShiftSystem& system) {
    std::vector<std::uint32_t> all;
    for (const auto& each : system.run_control()->members()) {
        all.push_back(each.members);
    }
    return all;
}

inline base::DelayDistribution exponential(Time mean) {
    return {.kind = base::DelayDistribution::Kind::exponential, .mean = mean};
}

/// When a unit was declared lost, and which host's.
struct Lost {
    Time at;
    std::uint32_t host;
    friend bool operator==(const Lost&, const Lost&) = default;
};
inline std::vector<Lost> lost_by(const ShiftSystem& system) {
    std::vector<Lost> all;
    for (const auto& each : system.run_control()->losses()) {
        all.push_back({each.at, system.host_of(UnitIndex(each.unit)).value()});
    }
    return all;
}

}  // namespace daqloom::systems
