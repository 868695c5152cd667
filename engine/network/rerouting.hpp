// A change of the forwarding tables during a run.
#pragma once

#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/units.hpp"
#include "network/graph.hpp"

namespace daqloom::network {

/// From `at` on, switches forward arriving packets by these tables; packets already queued keep
/// their route.
struct Rerouting {
    DAQLOOM_FIELDS(Rerouting, (base::Time, at, "Time of the change."),
                   (Forwarding, forwarding, "Forwarding tables, as in the network."),
                   (std::vector<PortGroup>, groups, "Groups of ports, as in the network."))
};

/// Fails with one sentence if the tables name nodes or ports that the graph does not have.
[[nodiscard]] base::expected<void> validate(const Graph& graph, const Rerouting& rerouting);

}  // namespace daqloom::network
