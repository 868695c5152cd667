#include <map>

#include "base/failure_test.hpp"
#include "ethernet/network.hpp"

namespace daqloom::ethernet {
namespace {

using base::gigabits_per_second;
using base::nanoseconds;
using base::Time;
using network::End;
using network::PortNumber;
using network::Route;

End at(std::uint32_t node, std::uint32_t port) {
    return {NodeIndex(node), static_cast<PortNumber>(port)};
}

/// A tree of two levels: `hosts` at each leaf (ports 1 …), and one cable from each leaf to each
/// spine (at the leaf's next ports). All uplinks of a leaf form one group.
NetworkConfig tree(std::uint32_t leaves, std::uint32_t spines, std::uint32_t hosts) {
    NetworkConfig config;
    network::Graph& graph = config;
    graph.hosts = leaves * hosts;
    const std::uint32_t first_spine = graph.hosts + leaves;
    const auto cable = [&](End a, End b) {
        graph.cables.push_back({a, b, gigabits_per_second(100), nanoseconds(10)});
    };
    for (std::uint32_t leaf = 0; leaf < leaves; ++leaf) {
        graph.switch_ports.push_back(static_cast<std::uint16_t>(hosts + spines));
        for (std::uint32_t host = 0; host < hosts; ++host) {
            cable(at(leaf * hosts + host, 1), at(graph.hosts + leaf, host + 1));
        }
        network::PortGroup up{NodeIndex(graph.hosts + leaf), {}};
        for (std::uint32_t spine = 0; spine < spines; ++spine) {
            cable(at(graph.hosts + leaf, hosts + spine + 1), at(first_spine + spine, leaf + 1));
            up.ports.push_back(static_cast<PortNumber>(hosts + spine + 1));
        }
        graph.groups.push_back(up);
        for (std::uint32_t host = 0; host < graph.hosts; ++host) {
            const std::uint32_t port = host / hosts == leaf ? host % hosts + 1 : hosts + spines + 1;
            graph.forwarding.push_back(static_cast<Route>(port));
        }
    }
    for (std::uint32_t spine = 0; spine < spines; ++spine) {
        graph.switch_ports.push_back(static_cast<std::uint16_t>(leaves));
        for (std::uint32_t host = 0; host < graph.hosts; ++host) {
            graph.forwarding.push_back(static_cast<Route>(host / hosts + 1));
        }
    }
    config.switches.resize(leaves + spines);
    for (std::uint32_t i = 0; i < config.switches.size(); ++i) {
        config.switches[i].hash_seed = i;
    }
    return config;
}

/// A network of a graph, driven to its end.
class Driven {
  public:
    explicit Driven(const NetworkConfig& config) {
        EXPECT_EQ(base::message_of(network.build(config, 1000)), "");
    }

    void send(std::uint32_t from, std::uint32_t to, std::uint32_t endpoint) {
        Frame& frame =
            network.append(network.host_link(NodeIndex(from)), TrafficClass(0), 1000, now);
        frame.seq = frame.ack = 0;
        frame.to = EndpointIndex(endpoint);
        frame.sack = kNoSack;
        frame.payload = 900;
        frame.bytes = 1000;
        frame.send_to(address_of(NodeIndex(to), TrafficClass(0)), 0);
    }
    void run() {
        while (!events.empty()) {
            const sim::Event event = events.pop();
            now = event.at;
            network.on_delivery(LinkIndex(event.index), now, *this);
        }
        EXPECT_EQ(base::message_of(network.check_conservation()), "");
    }
    void receive(const Frame& frame) { ++received[frame.destination()]; }
    void expect(const Frame& /*frame*/) const {}

    sim::EventQueue events;
    Network network{events};
    Time now;
    std::map<NodeIndex, int> received;
};

/// Error of building a network.
base::expected<void> built(const NetworkConfig& config) {
    sim::EventQueue events;
    return Network(events).build(config, 1000);
}

TEST(NetworkOfAGraph, EachHostReachesEachOther) {
    Driven tree_run(tree(4, 3, 5));
    for (std::uint32_t from = 0; from < 20; ++from) {
        for (std::uint32_t to = 0; to < 20; ++to) {
            if (from != to) {
                tree_run.send(from, to, 2 * (20 * from + to));
            }
        }
    }
    tree_run.run();
    ASSERT_EQ(tree_run.received.size(), 20U);
    for (const auto& [host, frames] : tree_run.received) {
        EXPECT_EQ(frames, 19);
    }
}

/// A leaf spreads the frames of its hosts to hosts of the other leaf over its uplinks. With n
/// connections and k uplinks, an uplink has n/k ± 5·√n connections.
TEST(NetworkOfAGraph, ConnectionsSpreadOverTheWaysUpAtEveryLevel) {
    constexpr std::uint32_t spines = 4;
    Driven tree_run(tree(2, spines, 8));
    constexpr std::uint32_t connections = 4000;
    for (std::uint32_t i = 0; i < connections; ++i) {
        tree_run.send(i % 8, 8 + i % 8, 2 * i);
    }
    tree_run.run();
    for (std::uint32_t spine = 0; spine < spines; ++spine) {
        const LinkIndex up(2 * (8 + spine));  // cables: 8 hosts, then the first leaf's ways up
        EXPECT_NEAR(static_cast<double>(tree_run.network.port(up).counters().frames),
                    connections / spines, 5 * 64);
    }
}

TEST(NetworkOfAGraph, AFrameWithoutARouteIsCountedAndNothingElseIsLost) {
    NetworkConfig config = tree(2, 2, 2);
    config.forwarding[3] = 0;  // of the first leaf to host 3
    Driven tree_run(config);
    tree_run.send(0, 3, 0);
    tree_run.send(0, 2, 2);
    tree_run.run();
    EXPECT_EQ(tree_run.network.unrouted(), 1U);
    EXPECT_EQ(tree_run.received[NodeIndex(2)], 1);
    EXPECT_EQ(tree_run.received[NodeIndex(3)], 0);
}

TEST(NetworkOfAGraph, SettingsForOtherSwitchesThanThereAreIsAnError) {
    NetworkConfig config = tree(2, 2, 2);
    config.switches.pop_back();
    EXPECT_TRUE(base::fails_with("3 switches with settings", built(config)));
}

TEST(NetworkOfAGraph, AShaperIsFirstInFirstOutAndThereIsOneForEachCable) {
    NetworkConfig config = tree(2, 2, 2);
    config.buckets.assign(config.cables.size(), 3000);
    EXPECT_EQ(base::message_of(built(config)), "");
    NetworkConfig scheduled = config;
    scheduled.host_schedule.scheduling = Scheduling::strict;
    EXPECT_TRUE(base::fails_with("link 0 has a shaper's bucket", built(scheduled)));
    config.buckets.back() = -1;
    EXPECT_TRUE(base::fails_with("buckets of shapers", built(config)));
    config.buckets.assign(1, 3000);
    EXPECT_TRUE(base::fails_with("1 buckets of shapers", built(config)));
}

TEST(NetworkOfAGraph, AHostsJitterIsSoManyTimesOfAFrameOnItsWireAtMost) {
    NetworkConfig config = tree(2, 2, 2);
    config.host_jitter = 3;
    const Time wire = base::WireClock(gigabits_per_second(100))(1000 + kWireOverhead);
    for (const Scheduling scheduling : {Scheduling::fifo, Scheduling::strict}) {
        config.host_schedule.scheduling = scheduling;
        Driven late(config);
        late.send(0, 3, 0);
        late.run();
        const Time empty = late.network.empty_latency(NodeIndex(0), NodeIndex(3), 1000);
        EXPECT_GT(late.now, empty);
        EXPECT_LE(late.now, empty + wire * (3 + 1));
    }
    config.host_jitter = 1001;
    EXPECT_TRUE(base::fails_with("a jitter of hosts of 1001 frames", built(config)));
}

}  // namespace
}  // namespace daqloom::ethernet
