// Faults of a node during a run.
#pragma once

#include <cstdint>
#include <span>

#include "base/expected.hpp"
#include "base/fields.hpp"
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

    DAQLOOM_FIELDS(NodeChange, (base::Time, at, "Time of the change."),
                   (network::NodeIndex, host, "Host of the node."),
                   (What, what, "Kind of the change.", What::stop),
                   (base::Time, until, "End of a stop, or of the absence of the host."),
                   (double, factor, "Slow: time that a task takes, in times of the usual.", 1))
};

/// Node of a change: the place of its host among `hosts`. Fails if the change is not possible;
/// `regroups`: whether units go on without lost ones.
base::expected<std::uint32_t> changed_node(const NodeChange& change,
                                           std::span<const network::NodeIndex> hosts,
                                           bool regroups);

}  // namespace daqloom::hosts
