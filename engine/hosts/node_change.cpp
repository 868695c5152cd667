#include "hosts/node_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace daqloom::hosts {

namespace {

base::expected<void> check(const NodeChange& change, bool has_node, bool regroups) {
    DAQLOOM_REFUSE_IF(!has_node, "the host has no node; name the host of a node");
    DAQLOOM_REFUSE_IF(change.factor < 1 || change.factor > 1e9, "factor {}; give 1 to 1e9",
                      change.factor);
    DAQLOOM_REFUSE_IF(change.what == NodeChange::What::stop && change.until <= change.at,
                      "the stop ends at {} s; give an end after its beginning",
                      change.until.seconds());
    DAQLOOM_REFUSE_IF(change.what == NodeChange::What::kill && !regroups,
                      "a kill needs units that regroup; set run");
    return {};
}

}  // namespace

base::expected<std::uint32_t> changed_node(const NodeChange& change,
                                           std::span<const network::NodeIndex> hosts,
                                           bool regroups) {
    const auto found = std::ranges::find(hosts, change.host);
    const std::string subject =
        fmt::format("change of host {} at {} s: ", change.host.value(), change.at.seconds());
    DAQLOOM_CHECK(base::about(subject.c_str(), check(change, found != hosts.end(), regroups)));
    return static_cast<std::uint32_t>(found - hosts.begin());
}

}  // namespace daqloom::hosts
