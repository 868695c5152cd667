// Messages over a fabric, with results computed by hand.
#include "transport/rdma/endpoints.hpp"

#include <gtest/gtest.h>

#include "transport/rdma/writes_test.hpp"

namespace daqloom::transport {
namespace {

using base::Time;

TEST(Message, IsCutIntoPacketsWithTheHeadersOfTheirPlace) {
    const auto packets_of = [](Message message) {
        std::vector<base::Bytes> lengths;
        while (!message.all_sent()) {
            lengths.push_back(message.next_packet(4096, kInfinibandFraming));
            message.sent += std::min<base::Bytes>(4096, message.bytes - message.sent);
            message.begun = true;
        }
        return lengths;
    };
    Message message = write(0, 1, 4096 + 4096 + 5);
    message.immediate = true;
    // LRH 8, BTH 12, ICRC 4, VCRC 2; the first with RETH 16; the last: 5 padded to 8, immediate 4.
    EXPECT_EQ(packets_of(message),
              (std::vector<base::Bytes>{26 + 16 + 4096, 26 + 4096, 26 + 8 + 4}));
    EXPECT_EQ(packets_of(write(0, 1, 0)), std::vector<base::Bytes>{26 + 16});
}

TEST(Hosts, OneFlowReachesThePayloadRateThatHeadersLeave) {
    const FabricConfig fabric = star(2);
    Writes writes(fabric, {});
    const base::Bytes bytes = 1000 * 4096;
    writes.post(0, 1, bytes);
    writes.run();
    // At 100 Gb/s a byte takes 80 ps. All packets pass one wire; then the head of the last packet
    // passes the switch and a second cable. The acknowledgement returns by the same path.
    const Time way = fabric.cables[0].delay * 2 + fabric.switch_latency + Time{64 * 80};
    const Time received = Time{(bytes + 1000 * 26 + 16) * 80} + way;
    EXPECT_EQ(writes.last_received().ps, received.ps);
    const Time back = fabric.cables[0].delay * 2 + fabric.switch_latency + Time{2 * 30 * 80};
    const Time completed = writes.completed[0].at(0);
    EXPECT_GE(completed.ps, (received + back).ps);
    EXPECT_LE(completed.ps, (received + back).ps + 2 * 8 * 80);  // behind a credit update
}

TEST(Hosts, MessagesOfOneQueuePairArriveInOrderOthersShare) {
    Writes writes(star(3), {});
    for (std::uint64_t tag = 0; tag < 4; ++tag) {
        writes.post(0, 1, 50'000);
    }
    writes.post(0, 2, 50'000);
    writes.run();
    // While two queue pairs send in turn, each has half of the wire: the single message to the
    // other host is complete together with the first of four messages.
    EXPECT_EQ(writes.order, (std::vector<std::uint64_t>{0, 4, 1, 2, 3}));
    EXPECT_EQ(writes.play.hosts->completed(), 5U);
}

TEST(Hosts, ServiceLevelsOnOneLaneHaveQueuePairsOfTheirOwn) {
    const FabricConfig fabric = star(2);
    Writes writes(fabric, {});
    writes.post(0, 1, 1'000'000);
    Message other = write(0, 1, 32);
    other.service_level = 1;
    writes.post(other, base::nanoseconds(1));
    writes.post(0, 1, 32, base::nanoseconds(1));
    writes.run();
    EXPECT_EQ(writes.order, (std::vector<std::uint64_t>{1, 0, 2}));
    // The small message waits for the packet on the wire and two packets in the queue.
    const Time way = fabric.cables[0].delay * 2 + fabric.switch_latency;
    EXPECT_LE(writes.received[1].at(0), Time{80 * (4096 + 26 + 16)} * 4 + way);
}

TEST(Hosts, LatencyDelaysTheFirstPacket) {
    Writes early(star(2), {});
    Writes late(star(2), {});
    early.post(0, 1, 10'000);
    late.post(0, 1, 10'000, base::nanoseconds(700));
    early.run();
    late.run();
    EXPECT_EQ((late.last_received() - early.last_received()).ps, 700'000);
}

TEST(Hosts, PcieSlowerThanTheWireBoundsTheRate) {
    HostConfig config;
    config.path.pcie_rate = base::gigabits_per_second(50);
    Writes all(star(2), config);
    Writes one(star(2), config);
    all.post(0, 1, 100 * 4096);
    one.post(0, 1, 4096);
    all.run();
    one.run();
    // At 160 ps per byte, the receiver takes in one payload after another, 99 after the first.
    EXPECT_EQ((all.last_received() - one.last_received()).ps, 99 * 4096 * 160);
}

TEST(Hosts, AReceiverSlowerThanItsLinkHoldsSendersUp) {
    for (const CreditRelease release : {CreditRelease::at_tail, CreditRelease::per_block}) {
        FabricConfig fabric = star(3);
        fabric.credit_release = release;
        HostConfig config;
        config.path.pcie_rate = base::gigabits_per_second(50);
        Writes writes(fabric, config);
        const std::int64_t packets = 200;
        for (const std::uint32_t from : {0U, 1U}) {
            writes.post(from, 2, packets * 4096);
        }
        writes.run();
        // Each sender fetches at 50 Gb/s, twice its share at the receiver. After the first packet,
        // with its RDMA header, the receiver is never idle: 160 ps per byte, without 26 B each.
        const Time first =
            fabric.cables[0].delay * 2 + fabric.switch_latency + Time{(64 + 4096 + 26 + 16) * 80};
        const Time last = first + Time{(2 * packets * 4096 + 2 * 16) * 160};
        EXPECT_EQ(writes.last_received().ps, last.ps);
        // After the first packets the receiver's input buffer is full, so the switch must wait.
        const std::uint32_t star_switch = fabric.hosts;
        const auto& counters = writes.play.network->counters(end_at(star_switch, 3));
        EXPECT_GT(counters.wait_credits.ps, last.ps / 3);
        EXPECT_EQ(writes.play.hosts->completed(), 2U);
    }
}

TEST(Hosts, MemoryIsSharedByAllThatANodeSendsAndReceives) {
    HostConfig config;
    config.path.memory_rate = base::gigabits_per_second(200);
    const std::int64_t packets = 500;
    const auto until_all_is_there = [&](const std::vector<std::uint32_t>& senders) {
        Writes writes(star(2), config);
        for (const std::uint32_t from : senders) {
            writes.post(from, 1 - from, packets * 4096);
        }
        writes.run();
        EXPECT_EQ(writes.order.size(), senders.size());
        return static_cast<double>(writes.last_received().ps);
    };
    // Memory has 200 Gb/s: data sent at 100 Gb/s pass it twice, and take all of it.
    const double alone = packets * 4096 * 80;
    EXPECT_NEAR(until_all_is_there({0}), alone, 0.02 * alone);
    // Data sent and received make four passes, so that memory leaves 50 Gb/s each way.
    EXPECT_NEAR(until_all_is_there({0, 1}), 2 * alone, 0.02 * alone);
    // With one pass per direction, memory limits neither direction of the link.
    config.path.memory_passes = 1;
    EXPECT_NEAR(until_all_is_there({0, 1}), alone, 0.02 * alone);
}

/// Linear shift: each phase begins, after a pause, when all nodes have finished the previous phase.
struct Shift {
    Shift(HostsPlay& of, std::uint32_t count, base::Bytes size, Time gap)
        : play(of), nodes(count), bytes(size), pause(gap) {}

    void next(Time now) {
        begun = now;
        for (std::uint32_t host = 0; host < nodes; ++host) {
            play.hosts->post(write(host, (host + phase) % nodes, bytes), now - begun + pause, now);
        }
    }
    void on_received(MessageIndex, Time now) {
        if (++arrived == nodes) {
            spans.push_back(now - begun - pause);
        }
    }
    void on_completed(MessageIndex, Time now) {
        if (++completed == nodes) {
            arrived = completed = 0;
            if (++phase < nodes) {
                next(now);
            }
        }
    }

    void on_failed(MessageIndex, Time) { FAIL(); }

    HostsPlay& play;
    std::uint32_t nodes;
    base::Bytes bytes;
    Time pause;
    std::uint32_t phase = 1;
    std::uint32_t arrived = 0;
    std::uint32_t completed = 0;
    Time begun;
    std::vector<Time> spans;  ///< of the phases, first packet to last byte
};

TEST(Hosts, AConflictFreeShiftHasAllOfEveryLink) {
    const FabricConfig fabric = fat_tree(6, 6, 6);
    HostsPlay play(fabric, {});
    Shift shift(play, fabric.hosts, 20 * 4096, base::microseconds(10));
    shift.next(Time::zero());
    play.run(shift);
    ASSERT_EQ(shift.spans.size(), fabric.hosts - 1U);
    // At 200 Gb/s a byte takes 40 ps. A phase takes as long as the message alone over one or three
    // switches, and at most a credit update of 8 B more for each packet in the other direction.
    const Time message{(20 * (4096 + 26) + 16) * 40};
    const Time hop = fabric.cables[0].delay + fabric.switch_latency + Time{64 * 40};
    for (const Time span : shift.spans) {
        EXPECT_LE(span.ps, (message + fabric.cables[0].delay + hop * 3).ps + 20 * 8 * 40);
        EXPECT_GE(span.ps, (message + fabric.cables[0].delay + hop).ps);
    }
    for (std::uint32_t node = 0; node < fabric.hosts + fabric.switch_ports.size(); ++node) {
        const PortNumber ports = node < fabric.hosts ? 1 : fabric.switch_ports[node - fabric.hosts];
        for (PortNumber port = 1; port <= ports; ++port) {
            EXPECT_EQ(play.network->counters(end_at(node, port)).wait_credits, Time::zero());
            EXPECT_EQ(play.network->counters(end_at(node, port)).wait_crossbar, Time::zero());
        }
    }
}

TEST(Hosts, EqualFlowsOverOneLinkTakeAsManyTimesAsLong) {
    // All hosts at leaf 0 send to the first hosts of other leaves, so that all share one uplink.
    for (const std::uint32_t flows : {1U, 2U, 3U, 5U}) {
        const FabricConfig fabric = fat_tree(6, 6, 6);
        Writes writes(fabric, {});
        const base::Bytes bytes = 100 * 4096;
        for (std::uint32_t i = 0; i < flows; ++i) {
            writes.post(i, 6 * (i + 1), bytes);
        }
        writes.run();
        const Time alone{(100 * (4096 + 26) + 16) * 40};
        const Time way = fabric.cables[0].delay * 4 + fabric.switch_latency * 3 + Time{3 * 64 * 40};
        // Credits for 15 packets cover the round trip of a link, so that the link is never idle.
        EXPECT_EQ(writes.order.size(), flows);
        EXPECT_EQ(writes.last_received().ps, (alone * flows + way).ps) << flows;
    }
}

}  // namespace
}  // namespace daqloom::transport
