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
        /// Until `until` the node's processor receives nothing, notices no completion and sends
        /// nothing. Its adapter continues: writes to the node's memory arrive and are acknowledged.
        stop,
        /// The processes of the node's units are killed, and no process can be started on the node
        /// before `until`; only for protocols whose units regroup.
        kill,
        slow,  ///< its processor takes `factor` times as long as usual from now on; 1: as usual
    };

    DAQLOOM_FIELDS(NodeChange, (base::Time, at, "Time of the change."),
                   (network::NodeIndex, host, "Host of the node."),
                   (What, what, "Kind of the change.", What::stop),
                   (base::Time, until, "End of a stop, or of the absence of the host."),
                   (double, factor, "Slow: time that a task takes, in times of the usual.", 1))
};

/// Node of a change, as the place of its host in `hosts`. Fails if the change is not possible;
/// `regroups`: whether units continue after the loss of others.
base::expected<std::uint32_t> changed_node(const NodeChange& change,
                                           std::span<const network::NodeIndex> hosts,
                                           bool regroups);

}  // namespace daqloom::hosts
