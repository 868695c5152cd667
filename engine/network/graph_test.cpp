#include "network/graph.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace daqloom::network {
namespace {

using base::gigabits_per_second;
using base::nanoseconds;

End at(std::uint32_t node, std::uint16_t port) { return {NodeIndex(node), port}; }

/// Hosts 0 and 1 at switch 3, host 2 at switch 4, and two cables between the switches.
Graph two_switches() {
    Graph graph;
    graph.hosts = 3;
    graph.switch_ports = {4, 3};
    for (const auto& [a, b] : {std::pair{at(0, 1), at(3, 1)}, std::pair{at(1, 1), at(3, 2)},
                               std::pair{at(2, 1), at(4, 1)}, std::pair{at(3, 3), at(4, 2)},
                               std::pair{at(3, 4), at(4, 3)}}) {
        graph.cables.push_back({a, b, gigabits_per_second(100), nanoseconds(10)});
    }
    graph.groups = {{NodeIndex(3), {3, 4}}, {NodeIndex(4), {2, 3}}};
    graph.forwarding = {1, 2, 5, 4, 4, 1};
    return graph;
}

std::string error(const std::function<void(Graph&)>& change) {
    Graph graph = two_switches();
    change(graph);
    const auto valid = validate(graph);
    return valid ? std::string() : valid.error().message;
}

TEST(Graph, OneWithoutContradictionIsValid) {
    EXPECT_EQ(error([](Graph&) {}), "");
}

TEST(Graph, EachContradictionIsNamed) {
    const auto has = [](const std::function<void(Graph&)>& change, const std::string& words) {
        const std::string message = error(change);
        EXPECT_NE(message.find(words), std::string::npos) << message;
    };
    has([](Graph& g) { g.hosts = 0; }, "one host at least");
    has([](Graph& g) { g.switch_ports[0] = 0; }, "without ports");
    has([](Graph& g) { g.forwarding.pop_back(); }, "5 routes; expected 6");
    has([](Graph& g) { g.cables[0].b = at(9, 1); }, "port 1 of node 9, which does not exist");
    has([](Graph& g) { g.cables[0].b = at(3, 5); }, "port 5 of node 3, which does not exist");
    has([](Graph& g) { g.cables[0].b = at(3, 0); }, "port 0 of node 3");
    has([](Graph& g) { g.cables[0].a = at(0, 2); }, "port 2 of node 0");
    has([](Graph& g) { g.cables[0].b = at(3, 2); }, "two cables at port 2 of node 3");
    has([](Graph& g) { g.cables[0].b = at(0, 1); }, "two cables at port 1 of node 0");
    has([](Graph& g) { g.cables[0].rate = {0}; }, "a cable of 0 b/s");
    has([](Graph& g) { g.cables[0].delay = nanoseconds(-1); }, "a delay of -1000 ps");
    has([](Graph& g) { g.forwarding[0] = 6; },
        "by port 6 of node 3, which has 4 ports and 1 groups");
    has([](Graph& g) { g.groups[0].node = NodeIndex(1); }, "node 1, which is no switch");
    has([](Graph& g) { g.groups[0].ports = {}; }, "an empty group");
    has([](Graph& g) { g.groups[1].ports = {4}; }, "port 4 of node 4 is in a group");
}

}  // namespace
}  // namespace daqloom::network
