// Fabrics that lose packets, and queue pairs that retransmit, with results computed by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/random.hpp"
#include "infiniband/lane_arbiter.hpp"
#include "infiniband/network_play_test.hpp"
#include "infiniband/random_fabric_test.hpp"
#include "transport/rdma/writes_test.hpp"

namespace daqloom::transport {
namespace {

using base::Time;
using reference::Injection;

constexpr Time kTimeout = base::microseconds(20);

HostConfig retrying() {
    HostConfig config;
    config.retry_timeout = kTimeout;
    return config;
}

/// Time of a packet from first byte sent to last byte received through the switch of an idle star.
Time way(const FabricConfig& fabric, base::Bytes bytes) {
    return kByteAt100Gbps * (bytes + std::min<base::Bytes>(bytes, 64)) +
           fabric.cables[0].delay * 2 + fabric.switch_latency;
}

TEST(Lifetime, EndsJustBeforeTheOutputIsFree) {
    // Two packets meet; the second is ready 1 ns after the first and waits for its end. A lifetime
    // equal to this wait expires; a lifetime longer by 1 ps does not.
    const Time later = base::nanoseconds(1);
    const std::vector<Injection> traffic = {{Time::zero(), 0, 2, kFull, 0},
                                            {later, 1, 2, kFull, 0}};
    const Time waits = kByteAt100Gbps * kFull - later;
    for (const Time lifetime : {waits, waits + Time{1}}) {
        FabricConfig config = star(3);
        config.head_of_queue_lifetime = lifetime;
        const NetworkPlay play(config, traffic);
        const bool lives = lifetime > waits;
        EXPECT_TRUE(play.deliveries[0].delivered);
        EXPECT_EQ(play.deliveries[1].delivered, lives);
        EXPECT_EQ(play.network->counters(end_at(3, 3)).discards, lives ? 0U : 1U);
        EXPECT_EQ(play.network->discarded(), lives ? 0U : 1U);
        EXPECT_EQ(play.network->unrouted(), 0U);
        EXPECT_EQ(play.network->in_network(), 0U);
    }
}

TEST(Lifetime, BeginsAnewForThePacketBehind) {
    // Host 0 uses the output for three packets. Of host 1's two packets, the first is discarded
    // after 1.5 packet times; the second's lifetime has not expired when the output is free.
    FabricConfig config = star(3);
    config.head_of_queue_lifetime = kByteAt100Gbps * kFull * 3 / 2 + Time{1};
    config.lanes = 2;
    config.arbitration.high = lane_weights({{0, 255}});  // host 0's packets go first
    config.arbitration.low = lane_weights({{1, 64}});
    std::vector<Injection> traffic(3, {Time::zero(), 0, 2, kFull, 0});
    traffic.insert(traffic.end(), 2, {Time::zero(), 1, 2, kFull, 1});
    const NetworkPlay play(config, traffic);
    EXPECT_FALSE(play.deliveries[3].delivered);
    ASSERT_TRUE(play.deliveries[4].delivered);
    EXPECT_EQ(play.deliveries[4].at, way(config, 4 * kFull));
    EXPECT_EQ(play.network->counters(end_at(3, 3)).discards, 1U);
}

/// A star in which host 0 sends to host 2 for 33 µs; a packet that finds an output in use for
/// longer than 10 ns is discarded.
FabricConfig impatient_star(std::uint32_t hosts) {
    FabricConfig config = star(hosts);
    config.head_of_queue_lifetime = base::nanoseconds(10);
    return config;
}
constexpr base::Bytes kStream = 100 * 4096;

TEST(Retries, ALostLastPacketIsSentAgainAtTheTimeout) {
    const FabricConfig fabric = impatient_star(3);
    HostConfig config = retrying();
    config.retry_timeout = base::microseconds(50);
    Writes writes(fabric, config);
    const Time at = base::microseconds(10) + base::nanoseconds(20);
    writes.post(0, 2, kStream, Time::zero());
    writes.post(1, 2, 100, at);
    writes.run();
    // The receiver sends no NAK, as no later packet comes. The fabric is idle at the timeout.
    ASSERT_EQ(writes.received[1].size(), 1U);
    EXPECT_EQ(writes.received[1][0], at + config.retry_timeout + way(fabric, 100 + 26 + 16));
    EXPECT_EQ(writes.retries().timeouts, 1U);
    EXPECT_EQ(writes.retries().resent_for_timeout, 1U);
    EXPECT_EQ(writes.retries().resent_for_nak, 0U);
    EXPECT_EQ(writes.play.network->discarded(), 1U);
}

TEST(Retries, AMissingPacketIsRequestedAtOnce) {
    const FabricConfig fabric = impatient_star(3);
    Writes writes(fabric, retrying());
    const Time packet = kByteAt100Gbps * kFull;
    // The message is ready 5 ns before the output has sent 30 packets, and has the turn. Packet 31
    // finds the output used for 11 ns, beyond its lifetime; packet 32 reveals the gap.
    writes.post(0, 2, kStream, Time::zero());
    writes.post(1, 2, 100, packet * 30 + kByteAt100Gbps * 16 - base::nanoseconds(5));
    writes.run();
    EXPECT_EQ(writes.play.network->discarded(), 1U);
    EXPECT_EQ(writes.retries().timeouts, 0U);
    // Until the NAK arrives, host 0 has begun this number of packets since the lost one, and has
    // one more in its queue.
    const Time nak_at = packet + way(fabric, kFull) + way(fabric, 30);
    const std::int64_t lost = nak_at.ps / packet.ps + 2;
    EXPECT_EQ(writes.retries().resent_for_nak, static_cast<std::uint64_t>(lost));
    // The sender does not pause: these packets and a few credit updates are all of the delay.
    ASSERT_EQ(writes.received[0].size(), 1U);
    const Time all = packet * (99 + lost) + kByteAt100Gbps * 16 + way(fabric, kFull);
    EXPECT_GE(writes.received[0][0], all);
    EXPECT_LE(writes.received[0][0], all + kByteAt100Gbps * (5 * 8));
    EXPECT_EQ(writes.completed[0].size(), 1U);
}

TEST(Retries, AWriteWhoseAcknowledgeIsLostIsNotDoneTwice) {
    const FabricConfig fabric = impatient_star(4);
    HostConfig config = retrying();
    config.retry_timeout = base::microseconds(50);
    Writes writes(fabric, config);
    const Time at = base::microseconds(10) + base::nanoseconds(20);
    writes.post(3, 1, kStream, Time::zero());  // in the way of the acknowledge, until 33 µs
    writes.post(1, 2, 3 * 4096, at);
    writes.run();
    ASSERT_EQ(writes.received[1].size(), 1U);
    ASSERT_EQ(writes.completed[1].size(), 1U);
    const Time departed = kByteAt100Gbps * (2 * kFull + 16);  // the last packet
    const Time updates = kByteAt100Gbps * (8 * 8);            // on host 1's wire
    EXPECT_GE(writes.received[1][0], at + departed + way(fabric, kFull));
    EXPECT_LE(writes.received[1][0], at + departed + way(fabric, kFull) + updates);
    // The timeout runs from the last packet's departure; all three packets are repeated then.
    EXPECT_EQ(writes.retries().resent_for_timeout, 3U);
    const Time again = at + departed + config.retry_timeout + departed + way(fabric, kFull);
    EXPECT_GE(writes.completed[1][0], again + way(fabric, 30));
    EXPECT_LE(writes.completed[1][0], again + way(fabric, 30) + updates);
    EXPECT_EQ(writes.play.network->discarded(), 1U);
}

/// The acknowledgement comes two round trips (40 us) after the last of 100 packets, later than the
/// timeout of 20 us. Only packets that leave before the acknowledgement arrives are resent.
TEST(Retries, PacketsThatAnAcknowledgeSavesAreNotCounted) {
    FabricConfig fabric = star(2);
    for (auto& cable : fabric.cables) {
        cable.delay = base::microseconds(10);
    }
    fabric.buffer_blocks = 65 * 200;  // credits for all of them
    Writes writes(fabric, retrying());
    writes.post(0, 1, kStream, Time::zero());
    writes.run();
    EXPECT_EQ(writes.completed[0].size(), 1U);
    EXPECT_EQ(writes.retries().timeouts, 1U);
    const std::uint64_t again = writes.retries().resent_for_timeout;
    EXPECT_EQ(writes.play.network->counters(end_at(0, 1)).packets, 100 + again);
    // Both times count from the last departure; one packet is under way, and one is queued.
    const Time time = way(fabric, kFull) + way(fabric, 30) - kTimeout;
    EXPECT_NEAR(static_cast<double>(again),
                static_cast<double>(time.ps / (kByteAt100Gbps * kFull).ps), 2);
}

TEST(Retries, AQueuePairGivesUpAfterSoManyTimeouts) {
    FabricConfig fabric = star(3);
    fabric.forwarding[2] = 0;  // host 2 cannot be reached
    for (const std::uint32_t count : {0U, 1U, 7U}) {
        HostConfig config = retrying();
        config.retry_count = count;
        Writes writes(fabric, config);
        writes.post(0, 2, 100, Time::zero());
        writes.post(0, 1, 100, Time::zero());
        writes.post(0, 2, 100, kTimeout * (count + 2));  // when it has been given up
        writes.run();
        ASSERT_EQ(writes.failed[0].size(), 1U);
        // Each try leaves immediately and waits for the timeout from its departure.
        EXPECT_EQ(writes.failed[0][0], kTimeout * (count + 1));
        EXPECT_EQ(writes.retries().timeouts, count + 1);
        EXPECT_EQ(writes.play.network->unrouted(), count + 1);
        EXPECT_EQ(writes.completed[1].size(), 1U);
        ASSERT_EQ(writes.failed[2].size(), 1U);
        EXPECT_EQ(writes.failed[2][0], kTimeout * (count + 2));
        EXPECT_EQ(writes.retries().writes_failed, 2U);
    }
}

TEST(Retries, TimeoutsAreSpreadByTheHostThatWaits) {
    FabricConfig fabric = star(3);
    fabric.forwarding[2] = 0;  // host 2 cannot be reached
    HostConfig config = retrying();
    config.retry_spread = 2;
    const auto given_up = [&](bool alone) {
        Writes writes(fabric, config);
        writes.post(0, 2, 100, Time::zero());
        if (!alone) {
            writes.post(1, 2, 100, Time::zero());
        }
        writes.run();
        return writes.failed;
    };
    const std::vector<std::vector<Time>> both = given_up(false);
    // Eight timeouts between T and 2 T each.
    for (const std::vector<Time>& at : both) {
        ASSERT_EQ(at.size(), 1U);
        EXPECT_GT(at[0], kTimeout * 8);
        EXPECT_LT(at[0], kTimeout * 16);
    }
    EXPECT_NE(both[0], both[1]);
    EXPECT_EQ(given_up(true)[0], both[0]) << "another host has changed what this one draws";
}

TEST(Retries, WithoutThemAQueuePairThatHasLostAPacketIsSilent) {
    const FabricConfig fabric = impatient_star(3);
    Writes writes(fabric, {});
    const Time at = base::microseconds(10) + base::nanoseconds(20);
    writes.post(0, 2, kStream, Time::zero());
    writes.post(1, 2, 100, at);
    writes.post(1, 2, 100, base::microseconds(50));  // comes through, but out of order
    writes.post(1, 0, 100, base::microseconds(50));
    writes.run();
    EXPECT_EQ(writes.received[0].size(), 1U);
    EXPECT_TRUE(writes.received[1].empty());
    EXPECT_TRUE(writes.received[2].empty());
    EXPECT_EQ(writes.received[3].size(), 1U);
}

/// A leaf sends by a long cable, then by a short one, whose packets arrive first. Without retries
/// they are dropped for good, although the network has lost no packet.
TEST(Retries, PacketsThatOvertakeOthersAreCounted) {
    FabricConfig fabric = fat_tree(2, 2, 1, base::gigabits_per_second(100));
    fabric.cables[1].delay = base::microseconds(100);  // from leaf 0 to spine 0
    network::Rerouting other{base::microseconds(2), fabric.forwarding, {}};
    ASSERT_EQ(fabric.forwarding[1], 2);  // of leaf 0, to host 1
    other.forwarding[1] = 3;
    fabric.reroutings = {other};
    for (const bool retries : {false, true}) {
        Writes writes(fabric, retries ? retrying() : HostConfig{});
        writes.post(0, 1, kStream, Time::zero());
        writes.run();
        const std::uint64_t overtook = writes.play.network->counters(end_at(2, 3)).packets;
        EXPECT_GT(writes.play.network->counters(end_at(2, 2)).packets, 2U);
        EXPECT_EQ(writes.received[0].size(), retries ? 1U : 0U);
        if (retries) {
            EXPECT_GT(writes.retries().out_of_sequence, 0U);
        } else {
            EXPECT_EQ(writes.retries().out_of_sequence, overtook);
            EXPECT_EQ(writes.play.network->bad() + writes.play.network->dropped(), 0U);
        }
    }
}

/// Three switches in a ring with a host each, buffers for one packet, cables of three lengths; each
/// host writes to the host two switches further.
FabricConfig deadlocking_ring() {
    FabricConfig config;
    config.hosts = 3;
    config.switch_ports = {3, 3, 3};
    for (std::uint32_t i = 0; i < 3; ++i) {
        const auto rate = base::gigabits_per_second(100);
        const Time delay = base::nanoseconds(10 + 7 * i);
        config.cables.push_back({end_at(i, 1), end_at(3 + i, 1), rate, delay});
        config.cables.push_back({end_at(3 + i, 2), end_at(3 + (i + 1) % 3, 3), rate, delay});
        for (std::uint32_t to = 0; to < 3; ++to) {
            config.forwarding.push_back(to == i ? PortNumber{1} : PortNumber{2});
        }
    }
    config.buffer_blocks = 66;
    return config;
}

TEST(Retries, ADeadlockResolvesItselfAndEveryWriteIsDoneOnce) {
    const auto write_round = [](Writes& writes) {
        for (std::uint32_t i = 0; i < 10; ++i) {
            for (std::uint32_t host = 0; host < 3; ++host) {
                writes.post(host, (host + 2) % 3, 4096 * (3 + host), Time::zero());
            }
        }
        writes.run();
    };
    FabricConfig fabric = deadlocking_ring();
    Writes stuck(fabric, {});
    write_round(stuck);
    EXPECT_EQ(stuck.play.network->deadlock().size(), 3U);

    fabric.head_of_queue_lifetime = base::microseconds(5);
    Writes freed(fabric, retrying());
    write_round(freed);
    EXPECT_GT(freed.play.network->discarded(), 0U);
    EXPECT_EQ(freed.retries().writes_failed, 0U);
    for (std::size_t tag = 0; tag < freed.received.size(); ++tag) {
        EXPECT_EQ(freed.received[tag].size(), 1U) << tag;
        EXPECT_EQ(freed.completed[tag].size(), 1U) << tag;
    }
}

class Losses : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(Losses, LeaveEveryWriteDoneOnceAndInOrderOrFailed) {
    std::uint64_t discarded = 0;
    std::uint64_t completed = 0;
    for (std::uint64_t seed = 50 * GetParam(); seed < 50 * GetParam() + 50; ++seed) {
        SCOPED_TRACE(seed);
        base::RandomStream random(seed, "losses");
        FabricConfig fabric = reference::random_fabric(seed).config;
        fabric.head_of_queue_lifetime =
            Time{1 + static_cast<std::int64_t>(random.uniform_int(3'000'000))};
        HostConfig hosts;
        hosts.mtu = std::min<base::Bytes>(4096, fabric.buffer_blocks * 64 - 46);
        hosts.retry_timeout = Time{1 + static_cast<std::int64_t>(random.uniform_int(20'000'000))};
        const LaneSet served = LaneArbiter(fabric.arbitration).lanes();
        Writes writes(fabric, hosts);
        for (std::uint64_t message = 0; message < 60; ++message) {
            const auto from = static_cast<std::uint32_t>(random.uniform_int(fabric.hosts));
            const auto to = static_cast<std::uint32_t>(
                (from + 1 + random.uniform_int(fabric.hosts - 1)) % fabric.hosts);
            auto lane = static_cast<std::uint8_t>(random.uniform_int(fabric.lanes));
            while (!holds(served, VirtualLane(lane))) {
                lane = static_cast<std::uint8_t>((lane + 1) % fabric.lanes);
            }
            const auto most = static_cast<std::uint64_t>(20 * hosts.mtu);
            Message posted = write(from, to, static_cast<base::Bytes>(random.uniform_int(most)));
            posted.lane = VirtualLane(lane);
            writes.post(posted, Time{static_cast<std::int64_t>(random.uniform_int(20'000'000))});
        }
        writes.run();
        for (std::size_t tag = 0; tag < writes.received.size(); ++tag) {
            EXPECT_EQ(writes.completed[tag].size() + writes.failed[tag].size(), 1U) << tag;
            EXPECT_LE(writes.received[tag].size(), 1U) << tag;
            EXPECT_LE(writes.completed[tag].size(), writes.received[tag].size()) << tag;
        }
        EXPECT_EQ(writes.play.network->in_network(), 0U);
        discarded += writes.play.network->discarded();
        completed += writes.play.hosts->completed();
    }
    EXPECT_GT(discarded, 1000U);
    EXPECT_GT(completed, 1000U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Losses, ::testing::Range<std::uint64_t>(0, 4));

}  // namespace
}  // namespace daqloom::transport
