// Nodes of units: one node for each host, in the order of the host lists.
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

/// Node of each unit of one kind, and unit of this kind on each node.
template <class Unit>
struct Places {
    base::Table<Unit, std::uint32_t> node_of;
    std::vector<Unit> unit_on;  ///< by node; none() on nodes without such a unit

    /// Adds a unit on a node.
    Unit add(std::uint32_t node) { return unit_on[node] = node_of.push_back(node); }
};

struct Placement {
    std::vector<network::NodeIndex> hosts;  ///< host of each node
    Places<protocol::ReadoutIndex> readouts;
    Places<protocol::BuilderIndex> builders;
    std::unordered_map<network::NodeIndex, std::uint32_t> node_at;

    /// Adds a unit on the node of a host, which its readout and builder unit share. Fails if the
    /// host already has a unit of this kind.
    template <class Unit>
    base::expected<Unit> put(Places<Unit> Placement::*kind, network::NodeIndex host) {
        const auto [found, is_new] =
            node_at.emplace(host, static_cast<std::uint32_t>(hosts.size()));
        if (is_new) {
            hosts.push_back(host);
            readouts.unit_on.push_back(protocol::ReadoutIndex::none());
            builders.unit_on.push_back(protocol::BuilderIndex::none());
        }
        Places<Unit>& places = this->*kind;
        DAQLOOM_REFUSE_IF(places.unit_on[found->second] != Unit::none(),
                          "host {} has two readout or two builder units; expected one of each "
                          "at most",
                          host.value());
        return places.add(found->second);
    }

    /// Adds a node without units. Fails if the host already has a node.
    base::expected<std::uint32_t> add_spare(network::NodeIndex host) {
        const auto node = static_cast<std::uint32_t>(hosts.size());
        DAQLOOM_REFUSE_IF(!node_at.emplace(host, node).second,
                          "host {} is a spare and has units, or is a spare twice", host.value());
        hosts.push_back(host);
        readouts.unit_on.push_back(protocol::ReadoutIndex::none());
        builders.unit_on.push_back(protocol::BuilderIndex::none());
        return node;
    }

    static base::expected<Placement> make(const std::vector<network::NodeIndex>& readouts,
                                          const std::vector<network::NodeIndex>& builders) {
        Placement placed;
        for (const network::NodeIndex host : readouts) {
            DAQLOOM_CHECK(placed.put(&Placement::readouts, host));
        }
        for (const network::NodeIndex host : builders) {
            DAQLOOM_CHECK(placed.put(&Placement::builders, host));
        }
        return placed;
    }
};

}  // namespace daqloom::systems
