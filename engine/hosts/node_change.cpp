#include "hosts/node_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace daqloom::hosts {

namespace {

/// The mistake in a change; empty: the change is possible.
std::string mistake(const NodeChange& change, bool has_node, bool regroups) {
    if (!has_node) {
        return "the host has no node; name the host of a node";
    }
    if (change.factor < 1 || change.factor > 1e9) {
        return fmt::format("factor {}; give 1 to 1e9", change.factor);
    }
    if (change.what == NodeChange::What::stop && change.until <= change.at) {
        return fmt::format("the stop ends at {} s; give an end after its beginning",
                           change.until.seconds());
    }
    if (change.what == NodeChange::What::kill && !regroups) {
        return "a kill needs units that regroup; set run";
    }
    return {};
}

}  // namespace

base::expected<std::uint32_t> changed_node(const NodeChange& change,
                                           std::span<const network::NodeIndex> hosts,
                                           bool regroups) {
    const auto found = std::ranges::find(hosts, change.host);
    const std::string wrong = mistake(change, found != hosts.end(), regroups);
    DAQLOOM_REFUSE_IF(!wrong.empty(), "change of host {} at {} s: {}", change.host.value(),
                      change.at.seconds(), wrong);
    return static_cast<std::uint32_t>(found - hosts.begin());
}

}  // namespace daqloom::hosts
