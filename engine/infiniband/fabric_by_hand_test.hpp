// For tests and benchmarks: small fabrics put together by hand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.hpp"
#include "infiniband/fabric_config.hpp"

namespace daqloom::infiniband {

inline PortIndex port_at(std::uint32_t place) { return static_cast<PortIndex>(place + 1); }

/// Hosts 0 … on ports 1 … of one switch.
inline FabricConfig star(std::uint32_t hosts, base::BitRate rate = base::gigabits_per_second(100),
                         base::Time delay = base::nanoseconds(170)) {
    FabricConfig config;
    config.hosts = hosts;
    config.switch_ports = {port_at(hosts - 1)};
    for (std::uint32_t host = 0; host < hosts; ++host) {
        config.cables.push_back({{host, 1}, {hosts, port_at(host)}, rate, delay});
        config.forwarding.push_back(port_at(host));
    }
    return config;
}

/// Two levels with one cable for each leaf and spine, D-mod-K: hosts leaf by leaf on the first
/// ports, then the spines.
inline FabricConfig fat_tree(std::uint32_t leaves, std::uint32_t spines, std::uint32_t down,
                             base::BitRate rate = base::gigabits_per_second(200),
                             base::Time delay = base::nanoseconds(170)) {
    FabricConfig config;
    config.hosts = leaves * down;
    config.switch_ports.assign(leaves, port_at(down + spines - 1));
    config.switch_ports.insert(config.switch_ports.end(), spines, port_at(leaves - 1));
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
        const NodeIndex node = config.hosts + leaf;
        for (std::uint32_t i = 0; i < down; ++i) {
            config.cables.push_back({{leaf * down + i, 1}, {node, port_at(i)}, rate, delay});
        }
        for (std::uint32_t spine = 0; spine < spines; ++spine) {
            const NodeIndex above = config.hosts + leaves + spine;
            config.cables.push_back(
                {{node, port_at(down + spine)}, {above, port_at(leaf)}, rate, delay});
        }
    }
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
        for (std::uint32_t to = 0; to < config.hosts; ++to) {
            const std::uint32_t place = to % down;
            config.forwarding.push_back(port_at(to / down == leaf ? place : down + place % spines));
        }
    }
    for (std::uint32_t spine = 0; spine < spines; ++spine) {
        for (std::uint32_t to = 0; to < config.hosts; ++to) {
            config.forwarding.push_back(port_at(to / down));
        }
    }
    return config;
}

}  // namespace daqloom::infiniband
