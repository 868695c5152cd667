#include "network/graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "network/rerouting.hpp"

namespace daqloom::network {

namespace {

constexpr std::size_t kMostNodes = std::size_t{1} << 24;  ///< limit of the Ethernet frame's address
constexpr std::size_t kMostRoutes = 0xffff;               ///< ports and groups of a switch

/// Records which ports of each node have a cable.
class CabledPorts {
  public:
    explicit CabledPorts(const Graph& graph) : graph_(graph) {
        std::size_t ports = 0;
        for (std::uint32_t node = 0; node < graph.nodes(); ++node) {
            first_.push_back(ports);
            ports += graph.ports(NodeIndex(node));
        }
        cabled_.resize(ports);
    }

    [[nodiscard]] bool exists(End end) const {
        return end.node.value() < graph_.nodes() && end.port >= 1 &&
               end.port <= graph_.ports(end.node);
    }
    [[nodiscard]] std::vector<bool>::reference operator[](End end) {
        return cabled_[first_[end.node.value()] + end.port - 1U];
    }

  private:
    const Graph& graph_;
    std::vector<std::size_t> first_;
    std::vector<bool> cabled_;
};

base::expected<void> check_size(const Graph& graph) {
    DAQLOOM_REFUSE_IF(graph.hosts == 0 || graph.nodes() > kMostNodes,
                      "{} hosts and {} switches; expected one host at least and at most {} nodes",
                      graph.hosts, graph.switches(), kMostNodes);
    for (const std::uint16_t ports : graph.switch_ports) {
        DAQLOOM_REFUSE_IF(ports < 1, "a switch without ports; expected 1 at least");
    }
    DAQLOOM_REFUSE_IF(graph.forwarding.size() != std::size_t{graph.switches()} * graph.hosts,
                      "{} routes; expected {} for {} switches and {} hosts",
                      graph.forwarding.size(), std::size_t{graph.switches()} * graph.hosts,
                      graph.switches(), graph.hosts);
    return {};
}

base::expected<void> check_cables(const Graph& graph, CabledPorts& cabled) {
    for (const Cable& cable : graph.cables) {
        for (const End end : {cable.a, cable.b}) {
            DAQLOOM_REFUSE_IF(
                !cabled.exists(end),
                "a cable ends at port {} of node {}, which does not exist; there are {} nodes, "
                "and ports begin at 1",
                end.port, end.node.value(), graph.nodes());
            DAQLOOM_REFUSE_IF(
                cabled[end],
                "two cables at port {} of node {}, or one to itself; expected one that leads "
                "to another port",
                end.port, end.node.value());
            cabled[end] = true;
        }
        DAQLOOM_REFUSE_IF(cable.rate.bps < 1'000'000 || cable.rate.bps > 1'000'000'000'000'000,
                          "a cable of {} b/s at port {} of node {}; expected 1 Mb/s to 1 Pb/s",
                          cable.rate.bps, cable.a.port, cable.a.node.value());
        DAQLOOM_REFUSE_IF(cable.delay < base::Time::zero() || cable.delay > base::seconds(100),
                          "a cable with a delay of {} ps at port {} of node {}; expected 0 to "
                          "100 s",
                          cable.delay.ps, cable.a.port, cable.a.node.value());
    }
    return {};
}

base::expected<void> check_routes(const Graph& graph, CabledPorts& cabled) {
    std::vector<std::size_t> most(graph.switch_ports.begin(), graph.switch_ports.end());
    for (const PortGroup& group : graph.groups) {
        DAQLOOM_REFUSE_IF(group.node.value() >= graph.nodes() || graph.is_host(group.node),
                          "a group of ports of node {}, which is no switch", group.node.value());
        for (const PortNumber port : group.ports) {
            const End end{group.node, port};
            DAQLOOM_REFUSE_IF(!cabled.exists(end) || !cabled[end],
                              "port {} of node {} is in a group; expected a port with a cable",
                              port, group.node.value());
        }
        DAQLOOM_REFUSE_IF(
            group.ports.empty() || ++most[graph.switch_of(group.node).value()] > kMostRoutes,
            "an empty group of ports of node {}, or too many of them", group.node.value());
    }
    for (std::size_t i = 0; i < graph.forwarding.size(); ++i) {
        const auto number = static_cast<std::uint32_t>(i / graph.hosts);
        DAQLOOM_REFUSE_IF(
            graph.forwarding[i] > most[number],
            "a route by port {} of node {}, which has {} ports and {} groups of ports",
            graph.forwarding[i], graph.node_of(SwitchIndex(number)).value(),
            graph.switch_ports[number], most[number] - graph.switch_ports[number]);
    }
    return {};
}

}  // namespace

base::expected<void> validate(const Graph& graph) {
    DAQLOOM_CHECK(check_size(graph));
    CabledPorts cabled(graph);
    DAQLOOM_CHECK(check_cables(graph, cabled));
    return check_routes(graph, cabled);
}

base::expected<void> validate(const Graph& graph, const Rerouting& rerouting) {
    Graph rerouted = graph;
    rerouted.forwarding = rerouting.forwarding;
    rerouted.groups = rerouting.groups;
    return validate(rerouted);
}

}  // namespace daqloom::network
