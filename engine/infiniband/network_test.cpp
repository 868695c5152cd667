// Networks with credits whose results are derived by hand; flit_reference_test.cpp has the cases
// that the reference simulator also computes.
#include "infiniband/network.hpp"

#include "infiniband/fabric_by_hand_test.hpp"
#include "infiniband/network_play_test.hpp"

namespace daqloom::infiniband {
namespace {

using base::Time;
using reference::Injection;

constexpr std::int64_t kFullBlocks = 65;

TEST(Network, BytesAndWaitingAreCountedLaneByLane) {
    FabricConfig config = star(2, base::gigabits_per_second(100), base::microseconds(1));
    config.buffer_blocks = kFullBlocks;
    config.lanes = 3;
    config.arbitration.low = lane_weights({{0, 65}, {1, 65}, {2, 65}});
    // Packets of both lanes leave alternately; then both lack credits until the first returns.
    const NetworkPlay play(config,
                           joined(packets(0, 1, 100, kFull, 1), packets(0, 1, 100, kFull, 2)));
    const std::int64_t loop =
        2 * config.cables[0].delay.ps + config.switch_latency.ps + (64 + kFull + 8) * 80;
    const std::int64_t both_idle = loop - 2 * kFull * 80;
    EXPECT_EQ(play.network->counters(end_at(0, 1)).wait_credits.ps, 99 * both_idle);
    for (const VirtualLane lane : virtual_lanes({0, 1, 2})) {
        const std::int64_t sent = lane == VirtualLane(0) ? 0 : 1;
        const LaneCounters& counters = play.network->counters(end_at(0, 1), lane);
        EXPECT_EQ(counters.bytes, sent * 100 * kFull);
        EXPECT_EQ(counters.wait.ps, sent * 99 * both_idle);
    }
}

TEST(Network, ACrossbarWithoutSpeedUpCanHoldASmallPacketUpForAWholeStream) {
    // Host 0 sends a stream to host 2 and, in its midst, a small packet to host 3. Host 1 also
    // streams to host 3, half a packet out of step. The small packet needs its input and output at
    // one instant, but when one of these ends a packet, the other is in the midst of one: it waits
    // for the end of a stream, or, if an input may send two packets at once, of a packet. iSLIP,
    // which matches ports that are free at an instant, does not change this.
    constexpr std::uint32_t before = 50;
    constexpr std::uint32_t behind = 30;
    const Time full{kFull * 80};
    std::vector<Injection> traffic =
        joined(packets(0, 2, before), joined(packets(0, 3, 1, 64), packets(0, 2, behind)));
    traffic = joined(traffic, packets(1, 3, before + behind + 10, kFull, 0, full / 2));
    const auto waited = [&](std::uint32_t speedup, CrossbarArbiter arbiter) {
        FabricConfig config = star(4);
        config.crossbar_speedup = speedup;
        config.crossbar_arbiter = arbiter;
        const NetworkPlay play(config, traffic);
        const Time alone =
            full * before + config.cables[0].delay * 2 + config.switch_latency + Time{2 * 64 * 80};
        return play.deliveries[before].at - alone;
    };
    for (const auto arbiter : {CrossbarArbiter::round_robin, CrossbarArbiter::islip}) {
        EXPECT_GE(waited(1, arbiter).ps, (full * behind).ps);
        EXPECT_LE(waited(1, arbiter).ps, (full * (behind + 1)).ps);
        EXPECT_LE(waited(2, arbiter).ps, full.ps);
    }
}

/// Share of time for which the outputs of a crossbar with first-in first-out inputs are busy, when
/// every input has a packet for a random output.
double saturation(std::uint32_t ports, std::uint32_t packets) {
    FabricConfig config = star(ports);
    config.input_queue = InputQueue::fifo;
    config.buffer_blocks = 2 * packets;  // more than any output gets: none waits for credits
    config.credit_update_interval = base::seconds(1);
    base::RandomStream random(ports, "destinations");
    std::vector<Injection> traffic;
    for (std::uint32_t i = 0; i < packets; ++i) {
        for (std::uint32_t host = 0; host < ports; ++host) {
            const auto to = static_cast<std::uint32_t>(random.uniform_int(ports));
            traffic.push_back({Time::zero(), host, to, 64, 0});
        }
    }
    const NetworkPlay play(config, traffic);
    // Only the time until the first input runs out of packets counts.
    Time all_full = Time::never();
    for (std::uint32_t host = 0; host < ports; ++host) {
        Time last;
        for (std::size_t i = host; i < traffic.size(); i += ports) {
            last = std::max(last, play.deliveries[i].at);
        }
        all_full = std::min(all_full, last);
    }
    const auto through =
        std::count_if(play.deliveries.begin(), play.deliveries.end(),
                      [&](const reference::Delivery& one) { return one.at <= all_full; });
    return static_cast<double>(through) * 64 * 80 / static_cast<double>(all_full.ps * ports);
}

TEST(Network, FirstInFirstOutInputsSaturateAsKarolAndOthersFound) {
    // Karol, Hluchyj, Morgan 1987, table I: 0.75, 0.655, 0.618 for 2, 4, 8 ports; 0.586 in the
    // limit.
    EXPECT_NEAR(saturation(2, 20'000), 0.75, 0.01);
    EXPECT_NEAR(saturation(4, 20'000), 0.6553, 0.01);
    EXPECT_NEAR(saturation(8, 10'000), 0.6184, 0.01);
    EXPECT_NEAR(saturation(32, 8'000), 0.593, 0.01);
}

/// Three switches in a ring; each host sends to the host two switches on, all in one direction.
FabricConfig small_ring() {
    FabricConfig config = ring(3, base::gigabits_per_second(100), base::nanoseconds(10));
    config.buffer_blocks = kFullBlocks;
    return config;
}

/// Four packets from each host to the host that is `on` switches further.
std::vector<Injection> round_the_ring(std::uint32_t on, std::uint8_t lane = 0) {
    std::vector<Injection> traffic;
    for (std::uint32_t host = 0; host < 3; ++host) {
        traffic = joined(traffic, packets(host, (host + on) % 3, 4, kFull, lane));
    }
    return traffic;
}

TEST(Network, ADeadlockIsNamedByTheCircleOfOutputsThatWait) {
    const std::vector<Injection> traffic = round_the_ring(2);
    const NetworkPlay stuck(small_ring(), traffic);
    EXPECT_GT(stuck.network->in_network(), 0U);
    std::vector<End> circle = stuck.network->deadlock();
    ASSERT_EQ(circle.size(), 3U);
    std::sort(circle.begin(), circle.end(),
              [](const End& a, const End& b) { return a.node < b.node; });
    for (std::uint32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(circle[i], end_at(3 + i, 2));
    }

    FabricConfig roomy = small_ring();
    roomy.buffer_blocks = 8 * kFullBlocks;  // more than is ever there
    const NetworkPlay flowing(roomy, traffic);
    EXPECT_EQ(flowing.network->in_network(), 0U);
    EXPECT_TRUE(flowing.network->deadlock().empty());
}

TEST(Network, ADeadlockOnOneLaneLeavesOthersAlone) {
    FabricConfig config = small_ring();
    config.lanes = 2;
    config.arbitration.low = lane_weights({{0, 65}, {1, 65}});
    const NetworkPlay play(config, joined(round_the_ring(1, 1), round_the_ring(2)));
    EXPECT_EQ(play.network->deadlock().size(), 3U);
    for (std::size_t packet = 0; packet < 12; ++packet) {
        EXPECT_TRUE(play.deliveries[packet].delivered) << packet;
    }
}

TEST(Network, RefusesInvalidFabrics) {
    sim::EventQueue events;
    const auto refusal = [&](auto change) {
        FabricConfig config = star(2);
        change(config);
        return base::message_of(Network::make(config, events));
    };
    EXPECT_EQ(refusal([](FabricConfig&) {}), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.forwarding.pop_back(); }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.forwarding[0] = 9; }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.cables[0].b.port = 7; }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.cables[0].a.node = NodeIndex(99); }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.cables[1] = c.cables[0]; }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.cables[0].delay = Time::zero(); }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.lanes = 16; }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.arbitration.low = lane_weights({{3, 1}}); }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.arbitration.low = lane_weights({{0, 0}}); }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.buffer_blocks = 0; }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.crossbar_iterations = 0; }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.switch_latency = Time::zero(); }), "");
    EXPECT_NE(refusal([](FabricConfig& c) { c.hosts = 0; }), "");
}

}  // namespace
}  // namespace daqloom::infiniband
