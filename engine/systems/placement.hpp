// Which node each unit is on: a node for each host, in the order in which they are named.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/expected.hpp"
#include "base/index.hpp"
#include "network/graph.hpp"
#include "protocol/data/identifiers.hpp"

namespace daqloom::systems {

/// Units of one kind and their nodes, each by the other's number.
template <class Unit>
struct Places {
    base::Table<Unit, std::uint32_t> node_of;
    std::vector<Unit> unit_on;  ///< none: no unit of this kind

    /// Of another unit.
    Unit add(std::uint32_t node) { return unit_on[node] = node_of.push_back(node); }
};

struct Placement {
    std::vector<network::NodeIndex> hosts;  ///< of each node
    Places<protocol::ReadoutIndex> readouts;
    Places<protocol::BuilderIndex> builders;

    /// Returns its node.
    std::uint32_t add_host(network::NodeIndex host) {
        hosts.push_back(host);
        readouts.unit_on.push_back(protocol::ReadoutIndex::none());
        builders.unit_on.push_back(protocol::BuilderIndex::none());
        return static_cast<std::uint32_t>(hosts.size() - 1);
    }

    /// Fails where a host has two units of one kind.
    static base::expected<Placement> make(const std::vector<network::NodeIndex>& readouts,
                                          const std::vector<network::NodeIndex>& builders) {
        Placement placed;
        std::unordered_map<network::NodeIndex, std::uint32_t> node_at;
        const auto place = [&]<class Unit>(const std::vector<network::NodeIndex>& units,
                                           Places<Unit>& places) -> base::expected<void> {
            for (const network::NodeIndex host : units) {
                if (!node_at.contains(host)) {
                    node_at[host] = placed.add_host(host);
                }
                if (places.unit_on[node_at[host]] != Unit::none()) {
                    return base::failure(
                        fmt::format("host {} has two readout or two builder units; expected one "
                                    "of each at most",
                                    host.value()));
                }
                places.add(node_at[host]);
            }
            return {};
        };
        return place(readouts, placed.readouts)
            .and_then([&] { return place(builders, placed.builders); })
            .map([&] { return std::move(placed); });
    }
};

}  // namespace daqloom::systems
