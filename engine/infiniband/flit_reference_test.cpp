// Small fabrics with results derived by hand, for the engine and for the reference simulator, which
// simulates every flit.
#include <gtest/gtest.h>

#include "infiniband/network_play_test.hpp"
#include "infiniband/random_fabric_test.hpp"

namespace daqloom::infiniband::reference {
namespace {

using base::Bytes;
using base::gigabits_per_second;
using base::nanoseconds;
using base::Time;

constexpr base::BitRate kRate = gigabits_per_second(100);
constexpr Time kDelay = nanoseconds(30);
constexpr Time kLatency = nanoseconds(130);

/// Time of a packet on the wire, at 100 Gb/s or at 25 Gb/s.
constexpr Time wire(Bytes bytes) { return Time{80} * bytes; }
constexpr Time slow_wire(Bytes bytes) { return Time{320} * bytes; }
constexpr Time kUpdate = wire(8);

/// Two hosts on one cable.
FabricConfig pair_of_hosts() {
    FabricConfig config;
    config.hosts = 2;
    config.cables = {{end_at(0, 1), end_at(1, 1), kRate, kDelay}};
    return config;
}

FabricConfig star(std::uint32_t hosts) {
    FabricConfig config = infiniband::star(hosts, kRate, kDelay);
    config.switch_latency = kLatency;
    return config;
}

/// The engine's outcome in the types of the reference simulator.
Outcome played(const FabricConfig& config, const std::vector<Injection>& traffic) {
    const NetworkPlay play(config, traffic);
    Outcome outcome{.packets = play.deliveries,
                    .outputs = {},
                    .discarded = play.network->discarded(),
                    .stalled = play.network->in_network() > 0,
                    .end = play.end};
    play.network->finish(play.end);
    for (const Cable& cable : config.cables) {
        for (const End end : {cable.a, cable.b}) {
            const auto& counted = play.network->counters(end);
            outcome.outputs[{end.node.value(), end.port}] = {.packets = counted.packets,
                                                             .bytes = counted.bytes,
                                                             .wait_credits = counted.wait_credits,
                                                             .wait_crossbar = counted.wait_crossbar,
                                                             .discards = counted.discards,
                                                             .lane_bytes = {},
                                                             .lane_wait = {}};
        }
    }
    return outcome;
}

struct Simulator {
    const char* name;
    Outcome (*run)(const FabricConfig& config, const std::vector<Injection>& traffic);
};
void PrintTo(const Simulator& simulator, std::ostream* out) { *out << simulator.name; }

class KnownAnswers : public ::testing::TestWithParam<Simulator> {
  protected:
    static Outcome run(const FabricConfig& config, const std::vector<Injection>& traffic) {
        return GetParam().run(config, traffic);
    }
};
INSTANTIATE_TEST_SUITE_P(Of, KnownAnswers,
                         ::testing::Values(Simulator{"TheEngine", &played},
                                           Simulator{"TheReference", &reference::run}),
                         [](const auto& each) { return each.param.name; });

/// Arrival times of all packets; a packet that did not arrive fails the test.
std::vector<std::int64_t> arrivals(const Outcome& outcome) {
    std::vector<std::int64_t> ps;
    for (const Delivery& delivery : outcome.packets) {
        EXPECT_TRUE(delivery.delivered);
        ps.push_back(delivery.at.ps);
    }
    return ps;
}

/// The packets' indices in the order of arrival.
std::vector<std::size_t> order_of_arrival(const Outcome& outcome) {
    std::vector<std::size_t> order(outcome.packets.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return outcome.packets[a].at < outcome.packets[b].at;
    });
    return order;
}

/// Lanes of the packets in the order of arrival, one digit each.
std::string lanes_as_they_arrive(const Outcome& outcome, const std::vector<Injection>& traffic) {
    std::string lanes;
    for (const std::size_t packet : order_of_arrival(outcome)) {
        lanes += static_cast<char>('0' + traffic[packet].lane);
    }
    return lanes;
}

TEST_P(KnownAnswers, APacketCutsThroughAFlitLater) {
    for (const Bytes bytes : {1, 64, 65, 282, 4096, 4122}) {
        const Outcome outcome = run(star(2), {{nanoseconds(7), 0, 1, bytes, 0}});
        // The first flit arrives and waits for the latency; the packet then leaves as a whole.
        const Time expected = nanoseconds(7) + wire(std::min<Bytes>(bytes, 64)) + kDelay +
                              kLatency + wire(bytes) + kDelay;
        EXPECT_EQ(arrivals(outcome), std::vector{expected.ps});
        EXPECT_FALSE(outcome.stalled);
        const OutputCounters counters = outcome.outputs.at({2, 2});
        EXPECT_EQ(counters.packets, 1u);
        EXPECT_EQ(counters.bytes, bytes);
        EXPECT_EQ(counters.wait_credits + counters.wait_crossbar, Time::zero());
        EXPECT_EQ(outcome.outputs.at({2, 1}).packets, 0u);
    }
}

TEST_P(KnownAnswers, ATrainOfPacketsGoesAtLineRate) {
    const Outcome outcome = run(star(2), packets(0, 1, 50, 4122));
    const Time first = wire(64) + kDelay + kLatency + wire(4122) + kDelay;
    for (std::int64_t packet = 0; packet < 50; ++packet) {
        EXPECT_EQ(outcome.packets[packet].at, first + wire(4122) * packet);
    }
    EXPECT_EQ(outcome.outputs.at({0, 1}).wait_credits, Time::zero());
}

TEST_P(KnownAnswers, EveryHopOfALineAddsItsOwnTime) {
    FabricConfig config;  // hosts 0 and 1 at the ends of switches 2 and 3
    config.hosts = 2;
    config.switch_ports = {2, 2};
    config.switch_latency = kLatency;
    config.cables = {{end_at(0, 1), end_at(2, 1), kRate, nanoseconds(10)},
                     {end_at(2, 2), end_at(3, 1), kRate, nanoseconds(500)},
                     {end_at(3, 2), end_at(1, 1), kRate, nanoseconds(20)}};
    config.forwarding = {1, 2, 1, 2};
    const Outcome outcome = run(config, {{Time::zero(), 0, 1, 300, 0}});
    EXPECT_EQ(outcome.packets[0].at, (wire(64) + kLatency) * 2 + nanoseconds(530) + wire(300));
}

// Credits.

TEST_P(KnownAnswers, CreditsLimitTheThroughputToTheBufferPerLoop) {
    // Loop of credits, from a packet's start until its credits are back: wire, cable, update,
    // cable.
    const Time loop = wire(640) + kDelay + kUpdate + kDelay;
    for (const std::int64_t blocks : {10, 19, 29, 30}) {
        FabricConfig config = pair_of_hosts();
        config.buffer_blocks = blocks;
        const std::int64_t at_once = blocks / 10;
        const Outcome outcome = run(config, packets(0, 1, 12, 640));
        const bool limited = wire(640) * at_once < loop;
        ASSERT_EQ(limited, blocks < 30);
        for (std::int64_t packet = 0; packet < 12; ++packet) {
            const Time start = limited ? loop * (packet / at_once) + wire(640) * (packet % at_once)
                                       : wire(640) * packet;
            EXPECT_EQ(outcome.packets[packet].at, start + wire(640) + kDelay);
        }
        const Time gap = limited ? loop - wire(640) * at_once : Time::zero();
        EXPECT_EQ(outcome.outputs.at({0, 1}).wait_credits, gap * (12 / at_once - 1));
        EXPECT_EQ(outcome.outputs.at({0, 1}).wait_crossbar, Time::zero());
    }
}

TEST_P(KnownAnswers, ThroughASwitchTheLoopHasTheSwitchesLatencyToo) {
    FabricConfig config = star(2);
    config.buffer_blocks = 35;  // three packets of 11 blocks
    const Outcome outcome = run(config, packets(0, 1, 30, 700));
    // The loop of credits for a packet: first flit at the switch, latency, tail out of the switch,
    // update. The loop of the second cable is shorter.
    const Time loop = wire(64) + kDelay + kLatency + wire(700) + kUpdate + kDelay;
    const Time first = wire(64) + kDelay + kLatency + wire(700) + kDelay;
    ASSERT_GT(loop, wire(700) * 3);
    for (std::int64_t packet = 0; packet < 30; ++packet) {
        EXPECT_EQ(outcome.packets[packet].at,
                  first + loop * (packet / 3) + wire(700) * (packet % 3));
    }
}

TEST_P(KnownAnswers, UpdatesComeNoMoreOftenThanTheirInterval) {
    FabricConfig config = pair_of_hosts();
    config.buffer_blocks = 10;
    config.credit_update_interval = nanoseconds(700);
    const Outcome outcome = run(config, packets(0, 1, 5, 640));
    // The first credit update starts when the packet has arrived; others follow at intervals.
    const Time first_update = wire(640) + kDelay;
    ASSERT_LT(first_update + kUpdate + kDelay, nanoseconds(700));
    EXPECT_EQ(outcome.packets[0].at, first_update);
    for (std::int64_t packet = 1; packet < 5; ++packet) {
        const Time start = first_update + nanoseconds(700) * (packet - 1) + kUpdate + kDelay;
        EXPECT_EQ(outcome.packets[packet].at, start + wire(640) + kDelay);
    }
}

TEST_P(KnownAnswers, OneUpdateAnnouncesAllThatIsFreeByThen) {
    FabricConfig config = pair_of_hosts();
    config.buffer_blocks = 3;
    config.credit_update_interval = nanoseconds(1000);
    const Outcome outcome = run(config, packets(0, 1, 6, 64));
    // Three packets of one block leave. The first block is announced immediately; the next two wait
    // for the second update, together with the block of the fourth packet, which arrives long
    // before.
    const Time there = wire(64) + kDelay;
    const Time fourth = there + kUpdate + kDelay;
    const Time fifth = fourth + nanoseconds(1000);
    EXPECT_EQ(arrivals(outcome), (std::vector{there.ps, (there + wire(64)).ps,
                                              (there + wire(64) * 2).ps, (fourth + there).ps,
                                              (fifth + there).ps, (fifth + wire(64) + there).ps}));
}

TEST_P(KnownAnswers, BlocksComeBackOneByOneOrWithTheTail) {
    // The second packet needs one of the ten blocks that the first one occupies.
    for (const auto release : {CreditRelease::per_block, CreditRelease::at_tail}) {
        const auto second = [&](FabricConfig config) {
            config.buffer_blocks = 19;
            config.credit_release = release;
            return run(config, packets(0, 1, 2, 640)).packets[1].at;
        };
        const Bytes freed = release == CreditRelease::per_block ? 64 : 640;
        const Time start = std::max(wire(640), wire(freed) + kDelay + kUpdate + kDelay);
        EXPECT_EQ(second(pair_of_hosts()), start + wire(640) + kDelay);
        // A switch frees the first block when that has left on the next cable.
        const Time leaves = wire(64) + kDelay + kLatency;
        EXPECT_EQ(second(star(2)),
                  leaves + wire(freed) + kUpdate + kDelay + leaves + wire(640) + kDelay);
    }
}

TEST_P(KnownAnswers, UpdatesTakeTheirTimeFromPacketsOfTheOtherDirection) {
    FabricConfig config = pair_of_hosts();
    const std::vector<Injection> traffic = joined(packets(1, 0, 10, 1000), packets(0, 1, 1, 100));
    const Outcome outcome = run(config, traffic);
    // Host 0's packet arrives during host 1's first packet; the credit update follows that.
    ASSERT_LT(wire(100) + kDelay, wire(1000));
    EXPECT_EQ(outcome.packets[0].at, wire(1000) + kDelay);
    for (std::int64_t packet = 1; packet < 10; ++packet) {
        EXPECT_EQ(outcome.packets[packet].at, wire(1000) * (packet + 1) + kUpdate + kDelay);
    }
    // If a credit update and a packet are due at the same instant, the update goes first.
    const Time there = wire(100) + kDelay;
    const Outcome together = run(config, {{Time::zero(), 0, 1, 100, 0}, {there, 1, 0, 200, 0}});
    EXPECT_EQ(together.packets[1].at, there + kUpdate + wire(200) + kDelay);
    EXPECT_EQ(together.outputs.at({1, 1}).wait_credits, Time::zero());
}

// Rates.

/// Hosts 0 and 1 at one switch, each with a different link rate.
FabricConfig two_rates(std::int64_t in_gbps, std::int64_t out_gbps) {
    FabricConfig config = star(2);
    config.cables[0].rate = gigabits_per_second(in_gbps);
    config.cables[1].rate = gigabits_per_second(out_gbps);
    return config;
}

TEST_P(KnownAnswers, FromAFasterLinkAPacketFollowsItsFirstFlit) {
    for (const Bytes bytes : {1, 63, 64, 65, 4096, 4122}) {
        const Outcome outcome = run(two_rates(100, 25), {{Time::zero(), 0, 1, bytes, 0}});
        EXPECT_EQ(outcome.packets[0].at,
                  wire(std::min<Bytes>(bytes, 64)) + kDelay + kLatency + slow_wire(bytes) + kDelay);
    }
}

TEST_P(KnownAnswers, FromASlowerLinkAPacketWaitsUntilItCannotRunDry) {
    // The last flit begins to leave when its latency is over, and takes its time on the fast wire.
    for (const Bytes bytes : {65, 100, 4096, 4122}) {
        const Outcome outcome = run(two_rates(25, 100), {{Time::zero(), 0, 1, bytes, 0}});
        const Bytes last = bytes - (bytes - 1) / 64 * 64;
        const Time by_the_last_flit = slow_wire(bytes) + kDelay + kLatency + wire(last) + kDelay;
        const Time by_the_first_flit = slow_wire(64) + kDelay + kLatency + wire(bytes) + kDelay;
        EXPECT_EQ(outcome.packets[0].at, std::max(by_the_first_flit, by_the_last_flit));
    }
}

// Arbitration.

TEST_P(KnownAnswers, TwoInputsOfOneOutputTakeTurns) {
    const std::vector<Injection> traffic = joined(packets(0, 2, 5, 500), packets(1, 2, 5, 500));
    const Outcome outcome = run(star(3), traffic);
    EXPECT_EQ(order_of_arrival(outcome), (std::vector<std::size_t>{0, 5, 1, 6, 2, 7, 3, 8, 4, 9}));
    const Time first = wire(64) + kDelay + kLatency + wire(500) + kDelay;
    for (std::int64_t packet = 0; packet < 5; ++packet) {
        EXPECT_EQ(outcome.packets[packet].at, first + wire(500) * (2 * packet));
        EXPECT_EQ(outcome.packets[5 + packet].at, first + wire(500) * (2 * packet + 1));
    }
}

TEST_P(KnownAnswers, LanesShareByWeightsAndSendTheirLastPacketToItsEnd) {
    // Packets have three blocks. A turn of weight four sends two packets (4 → 1 → −2), of weight
    // three one, of weight seven three (7 → 4 → 1 → −2).
    FabricConfig config = pair_of_hosts();
    config.lanes = 3;
    config.arbitration.low = lane_weights({{0, 4}, {1, 3}, {2, 0}, {2, 7}});
    const std::vector<Injection> traffic =
        joined(packets(0, 1, 6, 150), joined(packets(0, 1, 6, 150, 1), packets(0, 1, 6, 150, 2)));
    EXPECT_EQ(lanes_as_they_arrive(run(config, traffic), traffic), "001222001222001111");
    config.arbitration.low.clear();
    config.arbitration.high = lane_weights({{0, 4}, {1, 3}, {2, 0}, {2, 7}});
    config.arbitration.high_limit = 0;
    EXPECT_EQ(lanes_as_they_arrive(run(config, traffic), traffic), "001222001222001111");
    // Weights count blocks, not packets: a turn sends two packets of three blocks, or four of one.
    config.arbitration.high = lane_weights({{0, 4}, {1, 4}});
    const std::vector<Injection> sizes = joined(packets(0, 1, 4, 150), packets(0, 1, 8, 64, 1));
    EXPECT_EQ(lanes_as_they_arrive(run(config, sizes), sizes), "001111001111");
    // Packets of 65 blocks: a turn of weight w sends ⌈w / 65⌉ of them, at least one.
    config.buffer_blocks = 100'000;
    const std::vector<Injection> full = joined(packets(0, 1, 8, 4122), packets(0, 1, 4, 4122, 1));
    for (const std::uint32_t weight : {1U, 64U, 65U, 66U, 130U, 131U, 255U}) {
        config.arbitration.high = lane_weights({{0, static_cast<std::uint8_t>(weight)}, {1, 65}});
        const std::string turn = std::string((weight + 64) / 65, '0') + '1';
        EXPECT_EQ(lanes_as_they_arrive(run(config, full), full).substr(0, 2 * turn.size()),
                  turn + turn);
    }
}

TEST_P(KnownAnswers, ALaneWithoutPacketsLosesItsTurnAndTheRestOfItsWeight) {
    FabricConfig config = pair_of_hosts();
    config.lanes = 2;
    config.arbitration.low = lane_weights({{0, 9}, {1, 3}});
    // Packets of three blocks: lane 0 sends one of the three that its weight allows. It gets four
    // more after the first of lane 1 has begun, and then has its whole weight again.
    const std::vector<Injection> traffic =
        joined(packets(0, 1, 1, 150, 0),
               joined(packets(0, 1, 3, 150, 1), packets(0, 1, 4, 150, 0, wire(150) + Time{1})));
    EXPECT_EQ(lanes_as_they_arrive(run(config, traffic), traffic), "01000101");
}

TEST_P(KnownAnswers, HighPriorityGivesWayAfterItsLimit) {
    // 0: high, 1: low.
    const auto lanes = [](std::uint8_t limit, Bytes bytes, std::uint32_t high, std::uint32_t low) {
        FabricConfig config = pair_of_hosts();
        config.lanes = 2;
        config.buffer_blocks = 100'000;
        config.arbitration.high = lane_weights({{0, 255}});
        config.arbitration.low = lane_weights({{1, 255}});
        config.arbitration.high_limit = limit;
        const std::vector<Injection> traffic =
            joined(packets(0, 1, high, bytes), packets(0, 1, low, bytes, 1));
        return lanes_as_they_arrive(run(config, traffic), traffic);
    };
    EXPECT_EQ(lanes(0, 1024, 8, 3), "01010100000");
    EXPECT_EQ(lanes(1, 1024, 8, 3), "00001000011");  // 4 × 1024 = 4096
    EXPECT_EQ(lanes(1, 4122, 8, 3), "01010100000");  // over 4096 with one
    EXPECT_EQ(lanes(2, 4122, 8, 3), "00100100100");  // over 8192 with two
    EXPECT_EQ(lanes(255, 64, 8, 3), "00000000111");
    // The largest limit, 254 · 4096 B, is reached by 253 packets; 255 means no limit.
    EXPECT_EQ(lanes(254, 4122, 300, 1).find('1'), 253U);
    EXPECT_EQ(lanes(255, 4122, 300, 1).find('1'), 300U);
}

TEST_P(KnownAnswers, ALaneInNoTableNeverSends) {
    FabricConfig config = pair_of_hosts();
    config.lanes = 2;
    const Outcome outcome = run(config, {{Time::zero(), 0, 1, 64, 1}, {Time::zero(), 0, 1, 64, 0}});
    EXPECT_FALSE(outcome.packets[0].delivered);
    EXPECT_TRUE(outcome.packets[1].delivered);
    EXPECT_TRUE(outcome.stalled);
}

TEST_P(KnownAnswers, AFifoHoldsUpPacketsThatPassAVirtualOutputQueue) {
    // Host 1 keeps the output to host 2 busy; host 0 has a packet for host 2 and one for host 3.
    const std::vector<Injection> traffic = {{Time::zero(), 1, 2, 4096, 0},
                                            {nanoseconds(10), 0, 2, 640, 0},
                                            {nanoseconds(10), 0, 3, 640, 0}};
    const Time path = wire(64) + kDelay + kLatency;  // until a packet may leave the switch
    const Time tail = wire(640) + kDelay;
    const Time held_until = path + wire(4096);

    const auto expect = [&](InputQueue queue, std::uint32_t speedup, Time second, Time waited) {
        FabricConfig config = star(4);
        config.input_queue = queue;
        config.crossbar_speedup = speedup;
        const Outcome outcome = run(config, traffic);
        EXPECT_EQ(outcome.packets[1].at, held_until + tail);
        EXPECT_EQ(outcome.packets[2].at, second + tail);
        EXPECT_EQ(outcome.outputs.at({4, 4}).wait_crossbar, waited);
    };
    // With one path into the crossbar the second packet follows the first; with two, none waits.
    expect(InputQueue::fifo, 1, held_until + wire(640), wire(640));
    expect(InputQueue::fifo, 2, held_until, Time::zero());
    expect(InputQueue::virtual_output, 1, nanoseconds(10) + wire(640) + path, Time::zero());
}

TEST_P(KnownAnswers, ASwitchBeginsWithAnotherOutputAfterEveryPacket) {
    // While a long packet leaves on the slow port 2, a packet for port 3 and then one for port 2
    // become ready behind it. The number of packets that the switch has sent decides which is next:
    // after n + 1 packets, arbitration begins with port 1 + (n + 1) mod 3.
    FabricConfig config = star(3);
    config.cables[1].rate = gigabits_per_second(25);
    const Time later = base::microseconds(10);
    const Time free = later + wire(64) + kDelay + kLatency + slow_wire(640);
    for (const std::uint32_t before : {0U, 1U, 2U}) {
        const std::vector<Injection> traffic =
            joined({{later, 0, 1, 640, 0}, {later, 0, 2, 64, 0}, {later, 0, 1, 64, 0}},
                   packets(0, 1, before, 64));
        const Outcome outcome = run(config, traffic);
        const bool port_3_first = before == 1;
        const Time to_port_2 = port_3_first ? free + wire(64) : free;
        const Time to_port_3 = port_3_first ? free : free + slow_wire(64);
        EXPECT_EQ(outcome.packets[1].at, to_port_3 + wire(64) + kDelay);
        EXPECT_EQ(outcome.packets[2].at, to_port_2 + slow_wire(64) + kDelay);
    }
}

// Packets that can never move on.

TEST_P(KnownAnswers, APacketWithoutRouteIsDroppedAndItsBlocksComeBack) {
    for (const PortNumber port : std::vector<PortNumber>{0, 3}) {  // no route; a port without cable
        FabricConfig config = star(2);
        config.switch_ports = {3};
        config.forwarding[1] = port;
        config.buffer_blocks = 10;
        const Outcome outcome = run(config, packets(0, 1, 3, 640));
        EXPECT_EQ(outcome.discarded, 3u);
        EXPECT_FALSE(outcome.stalled);
        EXPECT_FALSE(outcome.packets[0].delivered);
        // Buffers of discarded packets are freed as fast as packets arrive: three loops for three.
        const Time loop = wire(64) + kDelay + wire(640) + kUpdate + kDelay;
        EXPECT_EQ(outcome.end, loop * 3);
    }
}

TEST_P(KnownAnswers, APacketLargerThanTheBufferStalls) {
    FabricConfig config = pair_of_hosts();
    config.buffer_blocks = 9;
    const Outcome outcome = run(config, packets(0, 1, 1, 640, 0, nanoseconds(5)));
    EXPECT_TRUE(outcome.stalled);
    EXPECT_EQ(outcome.end, nanoseconds(5));
}

TEST_P(KnownAnswers, RoutesRoundARingDeadlock) {
    // Every host sends to the host after the next. All first packets enter the next switch together
    // and fill its buffer, and each waits for the buffer that the next packet fills.
    FabricConfig config = ring(4, kRate, kDelay);
    config.buffer_blocks = 10;
    std::vector<Injection> traffic;
    for (NodeIndex host = 0; host < 4; ++host) {
        traffic.push_back({Time::zero(), host, (host + 2) % 4, 640, 0});
    }
    // One more packet reaches its first switch only; the run ends when it is ready there.
    traffic.push_back({base::microseconds(5), 0, 2, 640, 0});
    Outcome outcome = run(config, traffic);
    EXPECT_TRUE(outcome.stalled);
    for (NodeIndex host = 0; host < 4; ++host) {
        EXPECT_FALSE(outcome.packets[host].delivered);
        EXPECT_EQ(outcome.outputs.at({4 + host, 2}).packets, 1u);
        const Time ready = (wire(64) + kDelay + kLatency) * 2;  // the packet from before
        EXPECT_EQ(outcome.outputs.at({4 + host, 2}).wait_credits, outcome.end - ready);
    }
    EXPECT_FALSE(outcome.packets[4].delivered);
    EXPECT_EQ(outcome.end, base::microseconds(5) + wire(64) + kDelay + kLatency);

    config.buffer_blocks = 20;  // room for two: nobody waits, own packets are out of the way
    ASSERT_LT(wire(640), wire(64) + kDelay + kLatency);
    outcome = run(config, traffic);
    EXPECT_FALSE(outcome.stalled);
    const Time expected = (wire(64) + kDelay + kLatency) * 3 + wire(640) + kDelay;
    for (NodeIndex host = 0; host < 4; ++host) {
        EXPECT_EQ(outcome.packets[host].at, expected);
    }
}

}  // namespace
}  // namespace daqloom::infiniband::reference
