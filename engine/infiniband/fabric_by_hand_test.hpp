// For tests and benchmarks: small fabrics of fixed shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "infiniband/fabric_config.hpp"

namespace daqloom::infiniband {

inline End end_at(std::size_t node, std::size_t port) {
    return {NodeIndex(node), static_cast<PortNumber>(port)};
}

inline std::vector<NodeIndex> node_indices(const std::vector<std::uint32_t>& numbers) {
    std::vector<NodeIndex> all;
    for (const std::uint32_t number : numbers) {
        all.emplace_back(number);
    }
    return all;
}

inline std::vector<NodeIndex> all_hosts(const FabricConfig& config) {
    const base::IndexRange<NodeIndex> hosts(config.hosts);
    return {hosts.begin(), hosts.end()};
}

inline std::vector<VirtualLane> virtual_lanes(const std::vector<std::uint8_t>& numbers) {
    std::vector<VirtualLane> all;
    for (const std::uint8_t number : numbers) {
        all.emplace_back(number);
    }
    return all;
}

/// Pairs of a lane and its weight.
inline std::vector<LaneWeight> lane_weights(
    const std::vector<std::pair<std::uint8_t, std::uint8_t>>& entries) {
    std::vector<LaneWeight> table;
    for (const auto& [lane, weight] : entries) {
        table.push_back({VirtualLane(lane), weight});
    }
    return table;
}

inline constexpr base::Time kByteAt100Gbps{80};  ///< on a wire

/// A star: hosts 0 … on ports 1 … of one switch.
inline FabricConfig star(std::uint32_t hosts, base::BitRate rate = base::gigabits_per_second(100),
                         base::Time delay = base::nanoseconds(170)) {
    FabricConfig config;
    config.hosts = hosts;
    config.switch_ports = {static_cast<PortNumber>(hosts)};
    for (std::uint32_t host = 0; host < hosts; ++host) {
        const End up = end_at(hosts, host + 1);
        config.cables.push_back({end_at(host, 1), up, rate, delay});
        config.forwarding.push_back(up.port);
    }
    return config;
}

/// Switches in a ring: a host at port 1, the next switch at port 2, the previous switch at port 3.
inline FabricConfig ring(std::uint32_t switches, base::BitRate rate, base::Time delay) {
    FabricConfig config;
    config.hosts = switches;
    config.switch_ports.assign(switches, 3);
    for (std::uint32_t i = 0; i < switches; ++i) {
        const std::uint32_t node = switches + i;
        const std::uint32_t next = switches + (i + 1) % switches;
        config.cables.push_back({end_at(i, 1), end_at(node, 1), rate, delay});
        config.cables.push_back({end_at(node, 2), end_at(next, 3), rate, delay});
        for (std::uint32_t host = 0; host < switches; ++host) {
            config.forwarding.push_back(static_cast<PortNumber>(host == i ? 1 : 2));
        }
    }
    return config;
}

/// A fat tree of two levels with one cable between each leaf and spine, and D-mod-K routing. Ports
/// of a leaf lead to its hosts first, then to the spines.
inline FabricConfig fat_tree(std::uint32_t leaves, std::uint32_t spines, std::uint32_t down,
                             base::BitRate rate = base::gigabits_per_second(200),
                             base::Time delay = base::nanoseconds(170)) {
    FabricConfig config;
    config.hosts = leaves * down;
    config.switch_ports.assign(leaves, static_cast<PortNumber>(down + spines));
    config.switch_ports.insert(config.switch_ports.end(), spines, static_cast<PortNumber>(leaves));
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
        const std::uint32_t node = config.hosts + leaf;
        for (std::uint32_t i = 0; i < down; ++i) {
            config.cables.push_back({end_at(leaf * down + i, 1), end_at(node, i + 1), rate, delay});
        }
        for (std::uint32_t spine = 0; spine < spines; ++spine) {
            const std::uint32_t above = config.hosts + leaves + spine;
            config.cables.push_back(
                {end_at(node, down + spine + 1), end_at(above, leaf + 1), rate, delay});
        }
    }
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
        for (std::uint32_t to = 0; to < config.hosts; ++to) {
            const std::uint32_t place = to % down;
            config.forwarding.push_back(
                static_cast<PortNumber>(1 + (to / down == leaf ? place : down + place % spines)));
        }
    }
    for (std::uint32_t spine = 0; spine < spines; ++spine) {
        for (std::uint32_t to = 0; to < config.hosts; ++to) {
            config.forwarding.push_back(static_cast<PortNumber>(to / down + 1));
        }
    }
    return config;
}

}  // namespace daqloom::infiniband
