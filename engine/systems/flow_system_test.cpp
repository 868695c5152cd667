// Known answers of flows on a simulated fabric.
#include "systems/flow_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "infiniband/fabric_by_hand_test.hpp"

#include "systems/fabric_parts_test.hpp"
#include "systems/finished_run_test.hpp"

namespace daqloom::systems {
namespace {

using base::Bytes;
using base::Time;

constexpr Bytes kFirst = 16;  ///< address, in front of a message
constexpr Bytes kLast = 4;    ///< immediate data, at its end

Bytes wire_bytes(Bytes bytes, Bytes mtu = 4096) {
    return bytes + (bytes + mtu - 1) / mtu * 26 + kFirst + kLast;
}

FlowSystemConfig on(const FabricConfig& fabric) {
    FlowSystemConfig config;
    fabric_of(config) = fabric;
    config.flow_hosts = all_hosts(fabric);
    return config;
}

Flow flow(std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint32_t outstanding = 128) {
    Flow made;
    made.name = "flow";
    made.sources = {from};
    made.destination = to;
    made.bytes = bytes;
    made.outstanding = outstanding;
    return made;
}

std::unique_ptr<FlowSystem> play(const FlowSystemConfig& config, Time until) {
    return systems::play<FlowSystem>(config, until,
                                     [](auto& system) { system.flows().record_messages(); });
}

double rate(const FlowSystem& system, std::size_t of) {  // bytes per ps
    return static_cast<double>(system.flows().counted()[of].bytes) /
           static_cast<double>(system.report().window.ps);
}

/// Through an idle star, from the first bit sent to the last one received: all of it on the wire,
/// and the head of its last packet once more for the switch.
Time way(const FlowSystemConfig& config, Bytes wire, Bytes last_packet) {
    return fabric_of(config).cables[0].delay * 2 + fabric_of(config).switch_latency +
           kByteAt100Gbps * (wire + std::min<Bytes>(last_packet, 64));
}

TEST(Flows, ASmallWriteTakesItsWireTwoCablesAndTheSwitch) {
    FlowSystemConfig config = on(star(2));
    config.message_cost = base::nanoseconds(100);
    config.polling_delay = base::nanoseconds(300);
    config.latency.mean = base::nanoseconds(600);
    config.flows = {flow(0, 1, 8, 1)};
    const auto system = play(config, base::microseconds(100));
    const Bytes wire = wire_bytes(8);  // 54 B: less than a block
    const Time paper =
        base::nanoseconds(100 + 600) + way(config, wire, wire) + base::nanoseconds(300 + 100);
    EXPECT_EQ(system->flows().latency(0).min().ps, paper.ps);
    EXPECT_EQ(system->flows().latency(0).max().ps, paper.ps);
    EXPECT_GT(system->flows().latency(0).count(), 30U);
}

TEST(Flows, OneFlowReachesThePayloadRateThatHeadersLeave) {
    FlowSystemConfig config = on(star(2));
    const Bytes bytes = 1 << 16;
    config.flows = {flow(0, 1, bytes)};
    config.warmup = base::microseconds(100);
    const auto system = play(config, base::milliseconds(2));
    // A message more or less of some 360.
    EXPECT_NEAR(rate(*system, 0) * kByteAt100Gbps.ps,
                static_cast<double>(bytes) / static_cast<double>(wire_bytes(bytes)), 1.0 / 360);
}

TEST(Flows, TwoToOneHostShareItEqually) {
    FlowSystemConfig config = on(star(3));
    const Bytes bytes = 1 << 16;
    config.flows = {flow(0, 2, bytes), flow(1, 2, bytes)};
    config.warmup = base::microseconds(100);
    const auto system = play(config, base::milliseconds(2));
    const double all = static_cast<double>(bytes) / static_cast<double>(wire_bytes(bytes));
    EXPECT_NEAR(rate(*system, 0) * kByteAt100Gbps.ps, all / 2, 1.0 / 360);
    EXPECT_NEAR(rate(*system, 1) * kByteAt100Gbps.ps, all / 2, 1.0 / 360);
    // The load of both beyond that rate waits for credits, half of the time each.
    for (const std::uint32_t host : {0U, 1U}) {
        const OutputCounters& counters = network_under(*system).counters(end_at(host, 1));
        EXPECT_NEAR(counters.wait_credits.seconds(), 1e-3, 0.02e-3);
        EXPECT_EQ(counters.wait_crossbar.ps, 0);
    }
}

TEST(Flows, OneOutstandingWriteHasARoundTripOfItsOwn) {
    FlowSystemConfig config = on(star(2));
    const Bytes bytes = 3 * 4096;
    config.flows = {flow(0, 1, bytes, 1)};
    const auto system = play(config, base::microseconds(200));
    const Time trip = way(config, wire_bytes(bytes), 4096) +
                      way(config, transport::kInfinibandFraming.acknowledge(),
                          transport::kInfinibandFraming.acknowledge());
    ASSERT_GT(system->flows().arrivals().size(), 50U);
    for (std::size_t i = 1; i < system->flows().arrivals().size(); ++i) {
        const Time period =
            system->flows().arrivals()[i].posted - system->flows().arrivals()[i - 1].posted;
        EXPECT_GE(period.ps, trip.ps);
        // The acknowledge may go behind a credit update.
        EXPECT_LE(period.ps, trip.ps + 2 * 8 * kByteAt100Gbps.ps);
    }
}

TEST(Flows, MoreOutstandingWritesAreAsMuchFasterUntilTheWireIsFull) {
    const Bytes bytes = 256;
    const auto at = [&](std::uint32_t outstanding) {
        FlowSystemConfig config = on(star(2));
        config.flows = {flow(0, 1, bytes, outstanding)};
        config.warmup = base::microseconds(10);
        return rate(*play(config, base::microseconds(210)), 0);
    };
    const double one = at(1);
    EXPECT_NEAR(at(2), 2 * one, 0.02 * one);
    EXPECT_NEAR(at(8), 8 * one, 0.08 * one);
    // Each is acknowledged, and the receiver's credit update for that takes 8 B of the wire.
    EXPECT_NEAR(at(256) * kByteAt100Gbps.ps, 256.0 / static_cast<double>(wire_bytes(bytes) + 8),
                0.01);
}

TEST(Flows, AProcessorThatIsSlowerThanTheNetworkDeliversOneMessageAfterAnother) {
    // Senders know of most messages long before: an acknowledge does not wait for the processor.
    for (const bool acknowledge : {true, false}) {
        FlowSystemConfig config = on(star(3));
        rdma_of(config).acknowledge = acknowledge;
        config.message_cost = base::microseconds(1);
        config.flows = {flow(0, 2, 64), flow(1, 2, 64)};
        const auto system = play(config, base::microseconds(100));
        // The first takes its cost at the sender, its way, and its cost at the receiver.
        const Time first = config.message_cost * 2 + way(config, wire_bytes(64), wire_bytes(64));
        EXPECT_EQ(system->flows().arrivals().front().arrived.ps, first.ps);
        EXPECT_EQ(system->flows().arrivals().size(), 98U);  // one more in each of 97 us
    }
}

TEST(Flows, EvenIntervalsAreKeptToThePicosecond) {
    FlowSystemConfig config = on(star(2));
    Flow given = flow(0, 1, 64);
    given.messages = 10;
    given.start = base::microseconds(3);
    given.interval = base::nanoseconds(777);
    config.flows = {given};
    const auto system = play(config, base::microseconds(100));
    ASSERT_EQ(system->flows().arrivals().size(), 10U);
    for (std::int64_t i = 0; i < 10; ++i) {
        EXPECT_EQ(system->flows().arrivals()[static_cast<std::size_t>(i)].posted.ps,
                  3'000'000 + i * 777'000);
    }
    EXPECT_FALSE(system->stalled());
}

TEST(Flows, WhatFindsNoRoomIsPostedWhenThereIs) {
    FlowSystemConfig config = on(star(2));
    Flow given = flow(0, 1, 1 << 16, 1);
    given.interval = base::nanoseconds(1);
    given.messages = 5;
    config.flows = {given};
    const auto system = play(config, base::microseconds(100));
    ASSERT_EQ(system->flows().arrivals().size(), 5U);
    for (std::size_t i = 1; i < 5; ++i) {
        EXPECT_GT(system->flows().arrivals()[i].posted, system->flows().arrivals()[i - 1].arrived);
    }
}

TEST(Flows, ALoadIsAShareOfTheSourcesWire) {
    FlowSystemConfig config = on(star(2));
    Flow given = flow(0, 1, 1000);
    given.load = 0.25;
    config.flows = {given};
    const auto system = play(config, base::microseconds(50));
    // Every fourth of 1046 B.
    const Time interval = kByteAt100Gbps * 4 * wire_bytes(1000);
    ASSERT_GT(system->flows().arrivals().size(), 100U);
    for (std::size_t i = 0; i < system->flows().arrivals().size(); ++i) {
        EXPECT_EQ(system->flows().arrivals()[i].posted, interval * static_cast<std::int64_t>(i));
    }
}

TEST(Flows, ASmallUniformLoadIsDelivered) {
    FlowSystemConfig config = on(fat_tree(4, 4, 4, base::gigabits_per_second(100)));
    Flow given = flow(0, Flow::kAnyOther, 256);
    given.sources = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    given.load = 0.2;
    given.is_poissonian = true;
    config.flows = {given};
    config.warmup = base::microseconds(10);
    const auto system = play(config, base::microseconds(510));
    const double mean =
        0.2 * 16 * 500e6 / (static_cast<double>(wire_bytes(256)) * kByteAt100Gbps.ps);
    const auto found = static_cast<double>(system->flows().counted()[0].messages);
    EXPECT_NEAR(found, mean, 5 * std::sqrt(mean));
    // Every host sends as much as any other, and to others than its neighbours.
    std::vector<double> sent(16);
    for (const auto& each : system->flows().arrivals()) {
        ++sent[each.source];
    }
    for (const double of_one : sent) {
        EXPECT_NEAR(of_one, mean / 16, 5 * std::sqrt(mean / 16));
    }
    EXPECT_GT(network_under(*system).packet_hops(), 3 * system->flows().counted()[0].messages);
}

TEST(Flows, AnotherFlowChangesNothingThatAFlowDraws) {
    FlowSystemConfig config = on(star(4));
    Flow given = flow(0, Flow::kAnyOther, 64);
    given.load = 0.1;
    given.is_poissonian = true;
    config.flows = {given};
    const auto alone = play(config, base::microseconds(50));
    Flow other = flow(1, Flow::kAnyOther, 64);
    other.name = "other";
    other.load = 0.1;
    config.flows = {other, given};
    const auto beside = play(config, base::microseconds(50));
    std::vector<Time> posted;
    for (const auto& each : beside->flows().arrivals()) {
        if (each.flow == 1) {
            posted.push_back(each.posted);
        }
    }
    std::sort(posted.begin(), posted.end());
    ASSERT_GT(posted.size(), 50U);
    for (std::size_t i = 0; i + 5 < posted.size(); ++i) {
        EXPECT_EQ(alone->flows().arrivals()[i].posted, posted[i]);
    }
}

TEST(Flows, LanesShareByTheirWeights) {
    FlowSystemConfig config = on(star(3));
    fabric_of(config).lanes = 2;
    fabric_of(config).arbitration.low = lane_weights({{0, 130}, {1, 65}});
    const Bytes bytes = 1 << 16;
    Flow second = flow(1, 2, bytes);
    fabric_of(config).service_lanes = virtual_lanes({0, 1});
    second.service_level = 1;
    config.flows = {flow(0, 2, bytes), second};
    config.warmup = base::microseconds(200);
    const auto system = play(config, base::milliseconds(2));
    EXPECT_NEAR(rate(*system, 0) / rate(*system, 1), 2, 0.03);
}

TEST(Flows, WhatCannotBeIsRefused) {
    const auto refused = [](const Flow& given) {
        FlowSystemConfig config = on(star(3));
        config.flows = {given};
        return !FlowSystem::make(config).has_value();
    };
    EXPECT_FALSE(refused(flow(0, 1, 64)));
    EXPECT_TRUE(refused(flow(0, 0, 64)));
    EXPECT_TRUE(refused(flow(0, 3, 64)));
    EXPECT_TRUE(refused(flow(3, 0, 64)));
    EXPECT_TRUE(refused(flow(0, 1, 64, 0)));
    EXPECT_TRUE(refused(flow(0, 1, 64, 1U << 24)));
    Flow given = flow(0, 1, 64);
    given.load = 1.5;
    EXPECT_TRUE(refused(given));
}

TEST(Flows, ALaneWithoutWeightIsFoundToStandStill) {
    FlowSystemConfig config = on(star(2));
    fabric_of(config).lanes = 2;
    Flow given = flow(0, 1, 64);
    fabric_of(config).service_lanes = virtual_lanes({0, 1});
    given.service_level = 1;
    config.flows = {given};
    EXPECT_TRUE(play(config, base::microseconds(10))->stalled());
}

}  // namespace
}  // namespace daqloom::systems
