// Nodes on a ring: linear shifting without its network, to study the order of service.
//
//     step n: node i writes to builder (i + n) mod N, after a random delay
//
//        node      0   1   2   3
//                  ↓   ↓   ↓   ↓         a builder receives at the rate of one link, whether from
//        builder   n  n+1 n+2 n+3        one node or from several
//
// Switches and control messages are not simulated: throughput is lost only because nodes meet at
// builders, or wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/distribution.hpp"
#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"

namespace daqloom::systems {

struct NodeRingConfig {
    DAQLOOM_FIELDS(
        NodeRingConfig,
        (std::vector<base::DelayDistribution>, work,
         "Time of a transfer that has a builder for itself, by node."),
        (std::vector<base::DelayDistribution>, delays,
         "Delays of a node before each transfer, added up."),
        (std::uint32_t, writers,
         "Nodes that a builder serves at a time, with equal shares; the others wait in the order "
         "of their arrival. 0: all nodes that have arrived, as a switch does."),
        (bool, in_step, "No node begins a step before all have ended the last one."),
        (base::Time, duration, "Virtual time of the run."),
        (std::size_t, bins, "Bins of time, equally long.", 1),
        (std::uint64_t, seed, "Seed of the delays.", 1))
};

struct NodeRingReport {
    DAQLOOM_FIELDS(NodeRingReport,
                   (std::vector<double>, shares,
                    "By bin of time: the mean share of builders that receive, which is the share "
                    "of the full rate."),
                   (std::uint64_t, transfers, "Transfers that have ended."),
                   (base::Time, begun, "Work of all transfers that have reached their builder."),
                   (base::Time, left, "Work that is not done at the end."))
};

/// Simulates the ring: all nodes begin step 0 at time zero. O(log N) a transfer.
[[nodiscard]] base::expected<NodeRingReport> play_node_ring(const NodeRingConfig& config);

}  // namespace daqloom::systems
