// Faults of a node during a run.
#pragma once

#include <cstdint>
#include <span>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "network/graph.hpp"

namespace daqloom::hosts {

struct NodeChange {
    enum class What : std::uint8_t {
        /// Until `until` the node's processor takes nothing in, notices no completion and sends
        /// nothing; its adapter goes on: writes to its memory arrive and are acknowledged.
        stop,
        /// The processes of the node's units are killed, and no other can be started there before
        /// `until`; only where units regroup.
        kill,
        slow,  ///< its processor takes `factor` times as long as usual from now on; 1: as usual
    };

    base::Time at{};
    network::NodeIndex host;
    What what = What::stop;
    base::Time until{};
    double factor = 1;
};

/// Node of a change: the place of its host among `hosts`. Fails if the change is not possible;
/// `regroups`: whether units go on without lost ones.
base::expected<std::uint32_t> changed_node(const NodeChange& change,
                                           std::span<const network::NodeIndex> hosts,
                                           bool regroups);

}  // namespace daqloom::hosts
