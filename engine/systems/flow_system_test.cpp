// Known answers of flows on a simulated fabric.
#include "systems/flow_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
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

FlowSystemConfig on(const FabricConfig& fabric, const std::vector<Flow>& flows = {}) {
    FlowSystemConfig config;
    fabric_of(config) = fabric;
    config.flow_hosts = all_hosts(fabric);
    config.flows = flows;
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

/// Time through an idle star, from the first bit sent to the last bit received: the whole message
/// on the wire, and the head of its last packet a second time for the switch.
Time way(const FlowSystemConfig& config, Bytes wire, Bytes last_packet) {
    return fabric_of(config).cables[0].delay * 2 + fabric_of(config).switch_latency +
           kByteAt100Gbps * (wire + std::min<Bytes>(last_packet, 64));
}

TEST(Flows, ASmallWriteTakesItsWireTwoCablesAndTheSwitch) {
    FlowSystemConfig config = on(star(2), {flow(0, 1, 8, 1)});
    config.message_cost = base::nanoseconds(100);
    config.polling_delay = base::nanoseconds(300);
    config.latency.mean = base::nanoseconds(600);
    const auto system = play(config, base::microseconds(100));
    const Bytes wire = wire_bytes(8);  // 54 B: less than a block
    const Time paper =
        base::nanoseconds(100 + 600) + way(config, wire, wire) + base::nanoseconds(300 + 100);
    EXPECT_EQ(system->flows().latency(0).min().ps, paper.ps);
    EXPECT_EQ(system->flows().latency(0).max().ps, paper.ps);
    EXPECT_GT(system->flows().latency(0).count(), 30U);
}

TEST(Flows, ReachThePayloadRateThatHeadersLeaveAndShareItEqually) {
    const Bytes bytes = 1 << 16;
    const double all = static_cast<double>(bytes) / static_cast<double>(wire_bytes(bytes));
    for (const std::uint32_t senders : {1U, 2U}) {
        FlowSystemConfig config = on(star(senders + 1));
        config.warmup = base::microseconds(100);
        for (std::uint32_t host = 0; host < senders; ++host) {
            config.flows.push_back(flow(host, senders, bytes));
        }
        const auto system = play(config, base::milliseconds(2));
        for (std::uint32_t host = 0; host < senders; ++host) {
            // Tolerance: one message of some 360.
            EXPECT_NEAR(rate(*system, host) * kByteAt100Gbps.ps, all / senders, 1.0 / 360);
            // Offered load beyond that rate waits for credits: each sender half of the time.
            const OutputCounters& counters = network_under(*system).counters(end_at(host, 1));
            EXPECT_NEAR(counters.wait_credits.seconds(), senders == 2 ? 1e-3 : 0, 0.02e-3);
            EXPECT_EQ(counters.wait_crossbar.ps, 0);
        }
    }
}

TEST(Flows, OneOutstandingWriteHasARoundTripOfItsOwn) {
    const Bytes bytes = 3 * 4096;
    const FlowSystemConfig config = on(star(2), {flow(0, 1, bytes, 1)});
    const auto system = play(config, base::microseconds(200));
    const Time trip = way(config, wire_bytes(bytes), 4096) +
                      way(config, transport::kInfinibandFraming.acknowledge(),
                          transport::kInfinibandFraming.acknowledge());
    ASSERT_GT(system->flows().arrivals().size(), 50U);
    for (std::size_t i = 1; i < system->flows().arrivals().size(); ++i) {
        const Time period =
            system->flows().arrivals()[i].posted - system->flows().arrivals()[i - 1].posted;
        EXPECT_GE(period.ps, trip.ps);
        // The acknowledgement may wait for a credit update.
        EXPECT_LE(period.ps, trip.ps + 2 * 8 * kByteAt100Gbps.ps);
    }
}

TEST(Flows, MoreOutstandingWritesAreAsMuchFasterUntilTheWireIsFull) {
    const Bytes bytes = 256;
    const auto at = [&](std::uint32_t outstanding) {
        FlowSystemConfig config = on(star(2), {flow(0, 1, bytes, outstanding)});
        config.warmup = base::microseconds(10);
        return rate(*play(config, base::microseconds(210)), 0);
    };
    const double one = at(1);
    EXPECT_NEAR(at(2), 2 * one, 0.02 * one);
    EXPECT_NEAR(at(8), 8 * one, 0.08 * one);
    // Each message is acknowledged; the credit update for the acknowledgement takes 8 B of the
    // wire.
    EXPECT_NEAR(at(256) * kByteAt100Gbps.ps, 256.0 / static_cast<double>(wire_bytes(bytes) + 8),
                0.01);
}

TEST(Flows, AProcessorThatIsSlowerThanTheNetworkDeliversOneMessageAfterAnother) {
    // Acknowledgements do not wait for the processor: senders get them long before.
    for (const bool acknowledge : {true, false}) {
        FlowSystemConfig config = on(star(3), {flow(0, 2, 64), flow(1, 2, 64)});
        rdma_of(config).acknowledge = acknowledge;
        config.message_cost = base::microseconds(1);
        const auto system = play(config, base::microseconds(100));
        // First message: its cost at the sender, its path, its cost at the receiver.
        const Time first = config.message_cost * 2 + way(config, wire_bytes(64), wire_bytes(64));
        EXPECT_EQ(system->flows().arrivals().front().arrived.ps, first.ps);
        EXPECT_EQ(system->flows().arrivals().size(), 98U);  // one more every 97 us
    }
}

TEST(Flows, EvenIntervalsAreKeptToThePicosecond) {
    Flow even = flow(0, 1, 64);
    even.messages = 10;
    even.start = base::microseconds(3);
    even.interval = base::nanoseconds(777);
    const auto system = play(on(star(2), {even}), base::microseconds(100));
    ASSERT_EQ(system->flows().arrivals().size(), 10U);
    for (std::int64_t i = 0; const auto& arrival : system->flows().arrivals()) {
        EXPECT_EQ(arrival.posted.ps, 3'000'000 + 777'000 * i++);
    }
    EXPECT_FALSE(system->stalled());
}

TEST(Flows, MessagesWithoutRoomArePostedLater) {
    Flow dense = flow(0, 1, 1 << 16, 1);
    dense.interval = base::nanoseconds(1);
    dense.messages = 5;
    const auto system = play(on(star(2), {dense}), base::microseconds(100));
    ASSERT_EQ(system->flows().arrivals().size(), 5U);
    for (std::size_t i = 1; i < 5; ++i) {
        EXPECT_GT(system->flows().arrivals()[i].posted, system->flows().arrivals()[i - 1].arrived);
    }
}

TEST(Flows, ALoadIsAShareOfTheSourcesWire) {
    Flow quarter = flow(0, 1, 1000);
    quarter.load = 0.25;
    const auto system = play(on(star(2), {quarter}), base::microseconds(50));
    // Every fourth of 1046 B.
    const Time interval = kByteAt100Gbps * 4 * wire_bytes(1000);
    ASSERT_GT(system->flows().arrivals().size(), 100U);
    for (std::int64_t i = 0; const auto& arrival : system->flows().arrivals()) {
        EXPECT_EQ(arrival.posted, interval * i++);
    }
}

TEST(Flows, ASmallUniformLoadIsDelivered) {
    Flow uniform = flow(0, Flow::kAnyOther, 256);
    uniform.sources = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uniform.load = 0.2;
    uniform.is_poissonian = true;
    FlowSystemConfig config = on(fat_tree(4, 4, 4, base::gigabits_per_second(100)), {uniform});
    config.warmup = base::microseconds(10);
    const auto system = play(config, base::microseconds(510));
    const double mean =
        0.2 * 16 * 500e6 / (static_cast<double>(wire_bytes(256)) * kByteAt100Gbps.ps);
    const auto found = static_cast<double>(system->flows().counted()[0].messages);
    EXPECT_NEAR(found, mean, 5 * std::sqrt(mean));
    // All hosts send the same amount, and not only to their neighbours.
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
    Flow drawn = flow(0, Flow::kAnyOther, 64);
    drawn.load = 0.1;
    drawn.is_poissonian = true;
    const auto alone = play(on(star(4), {drawn}), base::microseconds(50));
    Flow other = flow(1, Flow::kAnyOther, 64);
    other.name = "other";
    other.load = 0.1;
    const auto beside = play(on(star(4), {other, drawn}), base::microseconds(50));
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
    FlowSystemConfig config = on(star(3), {flow(0, 2, 1 << 16), flow(1, 2, 1 << 16)});
    fabric_of(config).lanes = 2;
    fabric_of(config).arbitration.low = lane_weights({{0, 130}, {1, 65}});
    fabric_of(config).service_lanes = virtual_lanes({0, 1});
    config.flows[1].service_level = 1;
    config.warmup = base::microseconds(200);
    const auto system = play(config, base::milliseconds(2));
    EXPECT_NEAR(rate(*system, 0) / rate(*system, 1), 2, 0.03);
}

TEST(Flows, ImpossibleConfigurationsAreRefused) {
    const auto refused = [](const Flow& flow) { return !FlowSystem::make(on(star(3), {flow})); };
    EXPECT_FALSE(refused(flow(0, 1, 64)));
    EXPECT_TRUE(refused(flow(0, 0, 64)));
    EXPECT_TRUE(refused(flow(0, 3, 64)));
    EXPECT_TRUE(refused(flow(3, 0, 64)));
    EXPECT_TRUE(refused(flow(0, 1, 64, 0)));
    EXPECT_TRUE(refused(flow(0, 1, 64, 1U << 24)));
    Flow overload = flow(0, 1, 64);
    overload.load = 1.5;
    EXPECT_TRUE(refused(overload));
}

TEST(Flows, ALaneWithoutWeightIsFoundToStandStill) {
    FlowSystemConfig config = on(star(2), {flow(0, 1, 64)});
    fabric_of(config).lanes = 2;
    fabric_of(config).service_lanes = virtual_lanes({0, 1});
    config.flows[0].service_level = 1;
    EXPECT_TRUE(play(config, base::microseconds(10))->stalled());
}

}  // namespace
}  // namespace daqloom::systems
