// Systems under a run control with short timeouts, for tests of unit loss.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/units.hpp"
#include "systems/fabric_parts_test.hpp"
#include "systems/finished_run_test.hpp"
#include "systems/run/regrouping_system.hpp"

namespace daqloom::systems {

using base::microseconds;
using base::Time;

inline constexpr Time kHeartbeat = microseconds(100);
inline constexpr Time kTimeout = microseconds(500);

template <class Config>
void control(Config& config, Time retry_timeout = microseconds(100)) {
    if (std::holds_alternative<transport::RdmaConfig>(config.transport)) {
        rdma_of(config).retry_timeout = retry_timeout;
    }
    config.run.emplace();
    config.run->heartbeat = kHeartbeat;
    config.run->fault_timeout = kTimeout;
    config.run->restart = false;
}

inline NodeChange kill(std::uint32_t host, Time at) {
    return {.at = at, .host = NodeIndex(host), .what = NodeChange::What::kill};
}
inline NodeChange stop(std::uint32_t host, Time at, Time until) {
    return {.at = at, .host = NodeIndex(host), .what = NodeChange::What::stop, .until = until};
}

template <class System>
std::vector<std::uint32_t> members_of(const System& system) {
    std::vector<std::uint32_t> all;
    for (const auto& each : system.run_control()->members()) {
        all.push_back(each.members);
    }
    return all;
}

/// Time at which a unit was declared lost, and its host.
struct Lost {
    Time at;
    std::uint32_t host;
    friend bool operator==(const Lost&, const Lost&) = default;
};
template <class System>
std::vector<Lost> lost_by(const System& system) {
    std::vector<Lost> all;
    for (const auto& each : system.run_control()->losses()) {
        all.push_back({each.at, system.host_of(each.unit).value()});
    }
    return all;
}

}  // namespace daqloom::systems
