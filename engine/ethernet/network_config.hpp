// The description of an Ethernet: a graph with its Ethernet settings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
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
    double probability = 0;    ///< probability of each data frame to be lost
    std::uint64_t period = 0;  ///< every n-th data frame; 0: none
};

/// Link 2c leads from end a of cable c to end b, link 2c + 1 from end b to end a.
struct NetworkConfig : network::Graph {
    DAQLOOM_FIELDS(
        NetworkConfig, (std::vector<std::string>, link_names, "Name of each link; empty: none."),
        (std::vector<base::Bytes>, buckets,
         "Token bucket of each cable that is a shaper, 0 of a wire (B); empty: all are wires."),
        (std::vector<TrafficClass>, service_classes,
         "Class of the frames of each service level; 0 of levels beyond."),
        (Schedule, host_schedule, "Sharing of each host's wire among classes."),
        (double, host_jitter,
         "Longest delay of a frame that finds its host's link idle, in times of that frame on the "
         "wire (HostJitter); 0: hosts have no jitter."),
        (std::uint64_t, seed, "Seed of losses and jitter.", 1),
        (std::vector<SwitchConfig>, switches, "Configuration of each switch."),
        (std::vector<LinkChange>, changes, "Changes of links during the run."),
        (std::vector<network::Rerouting>, reroutings,
         "Changes of the forwarding tables during the run."))
    std::vector<LossConfig> losses;

    /// Number of classes in use.
    [[nodiscard]] std::uint32_t classes() const {
        std::uint32_t classes = 1;
        for (const TrafficClass each : service_classes) {
            classes = std::max(classes, each.value() + 1U);
        }
        return classes;
    }
};

/// Fails with one sentence if weights of classes are given without use, or missing where required.
[[nodiscard]] base::expected<void> validate(const Schedule& schedule);
/// Fails with one sentence if the network cannot be simulated; `frame`: largest frame, as buffered.
[[nodiscard]] base::expected<void> validate(const NetworkConfig& config, base::Bytes frame);

}  // namespace daqloom::ethernet
