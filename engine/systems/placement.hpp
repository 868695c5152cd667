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

struct Placement {
    std::vector<network::NodeIndex> hosts;  ///< of each node
    base::Table<protocol::ReadoutIndex, std::uint32_t> readout_node;
    base::Table<protocol::BuilderIndex, std::uint32_t> builder_node;

    /// Fails where a host has two units of one kind.
    static base::expected<Placement> make(const std::vector<network::NodeIndex>& readouts,
                                          const std::vector<network::NodeIndex>& builders) {
        Placement placed;
        std::unordered_map<network::NodeIndex, std::uint32_t> node_at;
        const auto place = [&](const auto& units, auto& nodes) -> base::expected<void> {
            std::vector<bool> taken;
            for (const network::NodeIndex host : units) {
                const auto [found, is_new] =
                    node_at.emplace(host, static_cast<std::uint32_t>(placed.hosts.size()));
                if (is_new) {
                    placed.hosts.push_back(host);
                }
                const std::uint32_t node = found->second;
                taken.resize(placed.hosts.size());
                if (taken[node]) {
                    return base::failure(
                        fmt::format("host {} has two readout or two builder "
                                    "units; expected one of each at most",
                                    host.value()));
                }
                taken[node] = true;
                nodes.push_back(node);
            }
            return {};
        };
        return place(readouts, placed.readout_node)
            .and_then([&] { return place(builders, placed.builder_node); })
            .map([&] { return std::move(placed); });
    }
};

}  // namespace daqloom::systems
