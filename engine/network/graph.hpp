// A network, independent of its technology: hosts and switches, cables between their ports, and the
// ports by which each switch forwards to each host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
#include "base/index.hpp"
#include "base/units.hpp"

namespace daqloom::network {

/// A node: hosts are 0 … hosts − 1, switches follow.
using NodeIndex = base::Index<struct NodeTag>;
/// Number of a switch among the switches, from 0.
using SwitchIndex = base::Index<struct SwitchTag>;
/// Number of a port, as printed on the device, from 1; a host has only port 1.
using PortNumber = std::uint16_t;
/// A virtual lane of InfiniBand, or a class of Ethernet; packets of one lane stay in order.
using Lane = base::Index<struct LaneTag, std::uint8_t>;
/// Service level of a message, 0 … 15, set by its sender; a network maps it to a lane or a class.
using ServiceLevel = std::uint8_t;

struct End {
    NodeIndex node;
    PortNumber port = 0;

    friend constexpr bool operator==(End, End) = default;
};

/// A cable; both directions have the same rate and delay.
struct Cable {
    End a;
    End b;
    base::BitRate rate;  ///< data rate, after encoding and error correction
    base::Time delay;    ///< sum of cable, transceivers and error correction
};

/// Ports of a switch that lead to the same hosts at equal cost: parallel cables (LAG), or the
/// uplinks in a tree (ECMP). A hash of the connection selects a port.
struct PortGroup {
    NodeIndex node;
    std::vector<PortNumber> ports;
};

/// Route of packets for one host: 0, no route; a port number; or, for the n-th group of the switch
/// (n from 1), its number of ports + n.
using Route = std::uint16_t;
/// Routes; the index is switch · hosts + destination.
struct Forwarding : std::vector<Route> {
    using std::vector<Route>::vector;
};

struct Graph {
    DAQLOOM_FIELDS(Graph, (std::uint32_t, hosts, "Number of hosts."),
                   (std::vector<PortNumber>, switch_ports, "Ports of each switch."),
                   (std::vector<Cable>, cables, "Cables: both ends, rate and delay."),
                   (Forwarding, forwarding,
                    "Forwarding tables by (switch, host): an output port; the number of ports + n "
                    "for the n-th group of the switch, n from 1; 0: no route."),
                   (std::vector<PortGroup>, groups,
                    "Groups of ports, those of one switch in the order of their numbers."))

    [[nodiscard]] std::uint32_t switches() const {
        return static_cast<std::uint32_t>(switch_ports.size());
    }
    [[nodiscard]] std::size_t nodes() const { return hosts + switch_ports.size(); }
    [[nodiscard]] bool is_host(NodeIndex node) const { return node.value() < hosts; }
    /// Number of a switch, by its node.
    [[nodiscard]] SwitchIndex switch_of(NodeIndex node) const {
        return SwitchIndex(node.value() - hosts);
    }
    [[nodiscard]] NodeIndex node_of(SwitchIndex at) const { return NodeIndex(hosts + at.value()); }
    [[nodiscard]] std::uint16_t ports(NodeIndex node) const {
        return is_host(node) ? std::uint16_t{1} : switch_ports[switch_of(node).value()];
    }
    [[nodiscard]] Route route(SwitchIndex at, NodeIndex host) const {
        return forwarding[std::size_t{at.value()} * hosts + host.value()];
    }
};

/// Fails with one sentence if the graph is inconsistent: an end, a route or a group names a missing
/// node or port, a port has two cables, or a cable's rate or delay is impossible.
[[nodiscard]] base::expected<void> validate(const Graph& graph);

}  // namespace daqloom::network
