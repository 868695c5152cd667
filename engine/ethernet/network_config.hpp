// A graph with what Ethernet adds to it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "ethernet/frame.hpp"
#include "ethernet/link.hpp"
#include "ethernet/schedule.hpp"
#include "ethernet/switch_buffer.hpp"
#include "network/graph.hpp"
#include "network/rerouting.hpp"

namespace daqloom::ethernet {

/// Frames dropped on a link by fault injection, in addition to the drops of switches.
struct LossConfig {
    LinkIndex link = {};
    double probability = 0;    ///< of each data frame
    std::uint64_t period = 0;  ///< every n-th data frame; 0: none
};

/// Link 2c leads from end a of cable c to its end b, link 2c + 1 back.
struct NetworkConfig : network::Graph {
    std::vector<SwitchConfig> switches;   ///< of each switch
    std::vector<std::string> link_names;  ///< of each link; empty: without names
    std::vector<base::Bytes> buckets;     ///< of shapers, by cable; empty, or 0: it is a wire
    std::vector<LossConfig> losses;
    std::vector<TrafficClass> service_classes;   ///< by service level; 0 of those beyond
    Schedule host_schedule;                      ///< of the link by which each host sends
    double host_jitter = 0;                      ///< longest, see HostJitter; 0: hosts have none
    std::vector<LinkChange> changes;             ///< during the run
    std::vector<network::Rerouting> reroutings;  ///< likewise
    std::uint64_t seed = 1;                      ///< of losses and jitter

    /// Classes are below this.
    [[nodiscard]] std::uint32_t classes() const {
        std::uint32_t classes = 1;
        for (const TrafficClass each : service_classes) {
            classes = std::max(classes, each.value() + 1U);
        }
        return classes;
    }
};

/// An error of one sentence if there are weights without use, or none where some are needed.
[[nodiscard]] base::expected<void> validate(const Schedule& schedule);
/// An error of one sentence if it cannot be simulated; `frame`: the largest, as buffered.
[[nodiscard]] base::expected<void> validate(const NetworkConfig& config, base::Bytes frame);

}  // namespace daqloom::ethernet
