#include "hosts/node_change.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace daqloom::hosts {

base::expected<std::uint32_t> changed_node(const NodeChange& change,
                                           std::span<const network::NodeIndex> hosts,
                                           bool regroups) {
    const auto found = std::ranges::find(hosts, change.host);
    DAQLOOM_REFUSE_IF(found == hosts.end() || change.factor < 1 || change.factor > 1e9 ||
                          (change.what == NodeChange::What::stop && change.until <= change.at) ||
                          (change.what == NodeChange::What::kill && !regroups),
                      "a change of host {} at {} s; expected a host with a node, the end "
                      "of a stop after its beginning, a kill only where the others "
                      "regroup, or a factor of 1 to 1e9",
                      change.host.value(), change.at.seconds());
    return static_cast<std::uint32_t>(found - hosts.begin());
}

}  // namespace daqloom::hosts
