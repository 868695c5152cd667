// Other forwarding tables during a run.
#pragma once

#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "network/graph.hpp"

namespace daqloom::network {

/// From `at` on, switches forward what comes to them by these tables; what they have queued goes
/// where it was going.
struct Rerouting {
    base::Time at;
    std::vector<Route> forwarding;  ///< as Graph has it
    std::vector<PortGroup> groups;  ///< likewise
};

/// An error of one sentence if the tables name what the graph does not have.
[[nodiscard]] base::expected<void> validate(const Graph& graph, const Rerouting& rerouting);

}  // namespace daqloom::network
