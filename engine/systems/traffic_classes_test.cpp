// Known answers of Ethernet classes: messages in a separate class do not wait behind other
// messages.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <variant>
#include <vector>

#include "infiniband/fabric_by_hand_test.hpp"
#include "systems/finished_run_test.hpp"
#include "systems/flow_system.hpp"

namespace daqloom::systems {
namespace {

using base::Time;
using ethernet::Scheduling;
using ethernet::TrafficClass;

constexpr ethernet::Schedule kStrict{Scheduling::strict, {}};

/// Flows on a star; messages of service level 1 have class 6.
FlowSystemConfig on_star(std::uint32_t hosts, const ethernet::Schedule& schedule,
                         const decltype(SystemConfig::transport)& over,
                         const std::vector<Flow>& flows = {}) {
    FlowSystemConfig config;
    config.transport = over;
    config.flows = flows;
    ethernet::NetworkConfig network;
    static_cast<network::Graph&>(network) = infiniband::star(hosts);
    network.switches.resize(1);
    network.switches[0].schedule = schedule;
    network.host_schedule = schedule;
    network.service_classes = {TrafficClass(0), TrafficClass(6)};
    config.network = network;
    for (std::uint32_t host = 0; host < hosts; ++host) {
        config.flow_hosts.emplace_back(host);
    }
    config.duration = base::milliseconds(2);
    return config;
}

Flow flow_of_level(std::uint32_t from, std::uint32_t to, base::Bytes bytes,
                   std::uint8_t service_level) {
    Flow made;
    made.name = "flow";
    made.sources = {from};
    made.destination = to;
    made.bytes = bytes;
    made.outstanding = 8;
    made.service_level = service_level;
    return made;
}

/// Longest latency of a short message that host 1 sends to host 0 every 20 us, while hosts 1 to 3
/// stream to host 0.
Time longest(const ethernet::Schedule& schedule, const decltype(SystemConfig::transport)& over) {
    constexpr base::Bytes kLong = 1'000'000;
    FlowSystemConfig config = on_star(4, schedule, over,
                                      {flow_of_level(1, 0, kLong, 0), flow_of_level(2, 0, kLong, 0),
                                       flow_of_level(3, 0, kLong, 0), flow_of_level(1, 0, 32, 1)});
    config.flows.back().interval = base::microseconds(20);
    const auto system = play<FlowSystem>(config);
    EXPECT_GE(system->flows().latency(3).count(), 20U);
    return system->flows().latency(3).max();
}

/// Latency: two wires with their cables, and in front of each wire one full frame at most, which
/// has just begun.
TEST(TrafficClasses, AShortMessageOfAHighClassWaitsForOneFrameAtEachPort) {
    const Time cables = infiniband::star(4).cables[0].delay * 2;
    const auto expect_one_frame = [&](const decltype(SystemConfig::transport)& over,
                                      base::Bytes headers, base::Bytes full) {
        const Time idle = cables + infiniband::kByteAt100Gbps * (2 * (32 + headers + 20));
        const Time frame = infiniband::kByteAt100Gbps * (full + 20);
        EXPECT_LE(longest(kStrict, over), idle + frame * 2);
        EXPECT_GT(longest({}, over), idle + frame * 20);
    };
    expect_one_frame(transport::RdmaConfig{}, 62 + 16 + 4, 4096 + 62 + 16);
    expect_one_frame(transport::TcpConfig{}, transport::TcpConfig{}.header_bytes() + 18, 1518);
}

/// One message of each level on an idle network takes the two wires with their cables.
TEST(TrafficClasses, LatenciesAreRecordedByServiceLevel) {
    FlowSystemConfig config = on_star(3, kStrict, transport::RdmaConfig{},
                                      {flow_of_level(0, 2, 1024, 0), flow_of_level(1, 2, 32, 1)});
    for (Flow& each : config.flows) {
        each.interval = base::microseconds(100);
    }
    const auto latencies = play<FlowSystem>(config)->run_report().level_latencies;
    ASSERT_EQ(latencies.size(), 2U);
    const Time cables = infiniband::star(3).cables[0].delay * 2;
    for (const auto& [level, bytes] : {std::pair{0U, 1024}, {1U, 32}}) {
        EXPECT_EQ(latencies[level].count(), 20U);
        EXPECT_EQ(latencies[level].min(),
                  cables + infiniband::kByteAt100Gbps * (2 * (bytes + 62 + 16 + 4 + 20)));
    }
    config.flows[1].service_level = 0;
    EXPECT_TRUE(play<FlowSystem>(config)->run_report().level_latencies.empty());
}

/// Two hosts send at full rate to a third one.
TEST(TrafficClasses, ShareAnOutputByTheirWeights) {
    FlowSystemConfig config =
        on_star(3, {Scheduling::weighted, {2, 0, 0, 0, 0, 0, 1}}, transport::RdmaConfig{},
                {flow_of_level(0, 2, 1 << 16, 0), flow_of_level(1, 2, 1 << 16, 1)});
    config.warmup = base::microseconds(200);
    const std::vector<FlowCount> counted = play<FlowSystem>(config)->flows().counted();
    EXPECT_NEAR(static_cast<double>(counted[0].bytes) / static_cast<double>(counted[1].bytes), 2,
                0.03);
}

/// A message of a class that is held and never resumed waits for ever: only samples of the
/// occupancy and the end of the run are pending. If the class is resumed, the run does not stall.
TEST(TrafficClasses, OneThatIsHeldForGoodIsFoundToStandStill) {
    using What = ethernet::LinkChange::What;
    const decltype(SystemConfig::transport) tcp = transport::TcpConfig{};
    const decltype(SystemConfig::transport) rdma = transport::RdmaConfig{};
    for (const bool over_tcp : {false, true}) {
        for (const bool resumes : {false, true}) {
            FlowSystemConfig config =
                on_star(2, kStrict, over_tcp ? tcp : rdma, {flow_of_level(0, 1, 4000, 0)});
            auto& network = std::get<ethernet::NetworkConfig>(config.network);
            const ethernet::LinkIndex to_host{3};
            network.changes = {{.at = base::microseconds(1), .link = to_host, .what = What::hold}};
            if (resumes) {
                network.changes.push_back(
                    {.at = base::milliseconds(10), .link = to_host, .what = What::resume});
            }
            config.flows.back().start = base::microseconds(2);
            config.flows.back().messages = 1;
            const auto system = play<FlowSystem>(config);
            // Retransmissions of TCP are pending, so that the run is not stalled.
            EXPECT_EQ(system->stalled(), !resumes && !over_tcp);
        }
    }
}

/// Long before the end, all messages are done: TCP has only stopped timers left.
TEST(TrafficClasses, WhenAllIsDoneOnlyIdleEventsAreLeft) {
    FlowSystemConfig config =
        on_star(2, kStrict, transport::TcpConfig{}, {flow_of_level(0, 1, 4000, 0)});
    config.flows.back().messages = 1;
    const auto system = play<FlowSystem>(config);
    EXPECT_GT(system->transport().idle_events(), 1U);
    EXPECT_EQ(system->transport().idle_events(), system->transport().events().size());
    EXPECT_FALSE(system->stalled());
}

TEST(TrafficClasses, AreReportedWhereThereAreSeveral) {
    for (const std::uint8_t second : {std::uint8_t{0}, std::uint8_t{1}}) {
        const auto system = play<FlowSystem>(
            on_star(3, kStrict, transport::TcpConfig{},
                    {flow_of_level(0, 2, 1 << 16, 0), flow_of_level(1, 2, 1 << 16, second)}));
        const ethernet::Report report = *system->run_report().network.ethernet;
        std::set<TrafficClass> classes;
        std::uint64_t frames = 0;
        for (const ethernet::ClassReport& its : report.classes) {
            classes.insert(its.traffic_class);
            frames += its.link == ethernet::LinkIndex(5) ? its.frames : 0;  // to host 2
        }
        EXPECT_EQ(classes, second == 0 ? std::set<TrafficClass>{}
                                       : (std::set{TrafficClass(0), TrafficClass(6)}));
        if (second != 0) {
            EXPECT_NEAR(static_cast<double>(frames), static_cast<double>(report.links[5].frames),
                        5);
        }
    }
}

TEST(TrafficClasses, ImpossibleConfigurationsAreRefused) {
    using What = ethernet::LinkChange::What;
    const auto refused = [](auto spoil) {
        FlowSystemConfig config = on_star(3, {}, transport::TcpConfig{});
        spoil(std::get<ethernet::NetworkConfig>(config.network));
        return base::message_of(FlowSystem::make(config));
    };
    const auto change = [&](const ethernet::LinkChange& what) {
        return refused([&](ethernet::NetworkConfig& network) { network.changes = {what}; });
    };
    EXPECT_EQ(refused([](ethernet::NetworkConfig&) {}), "");
    EXPECT_EQ(refused([](auto& network) { network.service_classes = {TrafficClass(8)}; }),
              "a service level has class 8; expected 0 to 7");
    EXPECT_EQ(
        refused([](auto& network) { network.host_schedule.scheduling = Scheduling::weighted; }),
        "the greatest weight of a class is 0; expected 1 to 1000, and 0 of a class with strict "
        "priority");
    EXPECT_EQ(refused([](auto& network) { network.switches[0].schedule.weights[3] = 1; }),
              "weights of classes, which are not scheduled by weight; expected none");
    EXPECT_EQ(
        change({.link = ethernet::LinkIndex(6)}),
        "a change of link 6 at 0 s, of class 0; expected one of 6 links, a time of the run and "
        "a class, 0 to 7");
    EXPECT_EQ(change({.link = ethernet::LinkIndex(1), .what = What::rate}),
              "a link's rate changes to 0 b/s; expected 1 Mb/s to 1 Pb/s");
    EXPECT_EQ(change({.link = ethernet::LinkIndex(1), .what = What::pace}), "");
    EXPECT_EQ(change({.link = ethernet::LinkIndex(1), .drops = true}), "");
    EXPECT_EQ(
        change({.link = ethernet::LinkIndex(0), .drops = true}),
        "link 0 is to drop waiting frames; expected a link from a switch, in a change to down");
}

}  // namespace
}  // namespace daqloom::systems
