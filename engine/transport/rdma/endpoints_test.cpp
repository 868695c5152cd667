// Known answers of messages over a fabric.
#include "transport/rdma/endpoints.hpp"

#include <gtest/gtest.h>

#include <map>

#include "transport/rdma/play_test.hpp"

namespace daqloom::transport {
namespace {

using base::Time;

Message write(std::uint32_t from, std::uint32_t to, base::Bytes bytes, std::uint64_t tag = 0) {
    Message message;
    message.source = NodeIndex(from);
    message.destination = NodeIndex(to);
    message.bytes = bytes;
    message.tag = tag;
    return message;
}

/// When each message, by tag, was received and completed.
struct Log {
    explicit Log(const Hosts& of) : hosts(of) {}
    void on_received(MessageIndex index, Time now) {
        received[hosts.message(index).tag] = now;
        order.push_back(hosts.message(index).tag);
    }
    void on_completed(MessageIndex index, Time now) { completed[hosts.message(index).tag] = now; }
    void on_failed(MessageIndex index, Time now) { failed[hosts.message(index).tag] = now; }

    const Hosts& hosts;
    std::map<std::uint64_t, Time> received;
    std::map<std::uint64_t, Time> completed;
    std::map<std::uint64_t, Time> failed;
    std::vector<std::uint64_t> order;
};

TEST(Message, IsCutIntoPacketsWithTheHeadersOfTheirPlace) {
    Message message = write(0, 1, 4096 + 4096 + 5);
    message.immediate = true;
    std::vector<base::Bytes> lengths;
    while (!message.all_sent()) {
        lengths.push_back(message.next_packet(4096, kInfinibandFraming));
        message.sent += std::min<base::Bytes>(4096, message.bytes - message.sent);
        message.begun = true;
    }
    // LRH 8, BTH 12, ICRC 4, VCRC 2; RETH 16 in front; 5 B padded to 8, immediate 4 at the end.
    EXPECT_EQ(lengths, (std::vector<base::Bytes>{26 + 16 + 4096, 26 + 4096, 26 + 8 + 4}));
}

TEST(Message, OfNothingIsOnePacket) {
    Message message = write(0, 1, 0);
    EXPECT_FALSE(message.all_sent());
    EXPECT_EQ(message.next_packet(4096, kInfinibandFraming), 26 + 16);
    message.begun = true;
    EXPECT_TRUE(message.all_sent());
}

TEST(Hosts, OneFlowReachesThePayloadRateThatHeadersLeave) {
    const FabricConfig fabric = star(2);
    HostsPlay play(fabric, {});
    Log log(*play.hosts);
    const base::Bytes bytes = 1000 * 4096;
    play.hosts->post(write(0, 1, bytes), Time::zero(), Time::zero());
    play.run(log);
    // 100 Gb/s: 80 ps a byte. All packets on one wire; then the last one's head once more, two
    // cables, the switch; and the acknowledge comes back the same way.
    const Time way = fabric.cables[0].delay * 2 + fabric.switch_latency + Time{64 * 80};
    const Time received = Time{(bytes + 1000 * 26 + 16) * 80} + way;
    EXPECT_EQ(log.received[0].ps, received.ps);
    const Time back = fabric.cables[0].delay * 2 + fabric.switch_latency + Time{2 * 30 * 80};
    EXPECT_GE(log.completed[0].ps, (received + back).ps);
    EXPECT_LE(log.completed[0].ps, (received + back).ps + 2 * 8 * 80);  // behind a credit update
}

TEST(Hosts, MessagesOfOneQueuePairArriveInOrderOthersShare) {
    HostsPlay play(star(3), {});
    Log log(*play.hosts);
    for (std::uint64_t tag = 0; tag < 4; ++tag) {
        play.hosts->post(write(0, 1, 50'000, tag), Time::zero(), Time::zero());
    }
    play.hosts->post(write(0, 2, 50'000, 4), Time::zero(), Time::zero());
    play.run(log);
    // While two queue pairs send in turn, each has half of the wire: the one message to the other
    // host is through as the first of four is.
    EXPECT_EQ(log.order, (std::vector<std::uint64_t>{0, 4, 1, 2, 3}));
    EXPECT_EQ(play.hosts->completed(), 5U);
}

TEST(Hosts, ServiceLevelsOnOneLaneHaveQueuePairsOfTheirOwn) {
    const FabricConfig fabric = star(2);
    HostsPlay play(fabric, {});
    Log log(*play.hosts);
    play.hosts->post(write(0, 1, 1'000'000, 0), Time::zero(), Time::zero());
    Message other = write(0, 1, 32, 1);
    other.service_level = 1;
    play.hosts->post(other, base::nanoseconds(1), Time::zero());
    play.hosts->post(write(0, 1, 32, 2), base::nanoseconds(1), Time::zero());
    play.run(log);
    EXPECT_EQ(log.order, (std::vector<std::uint64_t>{1, 0, 2}));
    // Behind the packet on the wire and two that wait for it.
    const Time way = fabric.cables[0].delay * 2 + fabric.switch_latency;
    EXPECT_LE(log.received[1], Time{80 * (4096 + 26 + 16)} * 4 + way);
}

TEST(Hosts, LatencyDelaysTheFirstPacket) {
    HostsPlay early(star(2), {});
    HostsPlay late(star(2), {});
    Log log(*early.hosts);
    Log later(*late.hosts);
    early.hosts->post(write(0, 1, 10'000), Time::zero(), Time::zero());
    late.hosts->post(write(0, 1, 10'000), base::nanoseconds(700), Time::zero());
    early.run(log);
    late.run(later);
    EXPECT_EQ((later.received[0] - log.received[0]).ps, 700'000);
}

TEST(Hosts, PcieSlowerThanTheWireBoundsTheRate) {
    HostConfig config;
    config.path.pcie_rate = base::gigabits_per_second(50);
    HostsPlay play(star(2), config);
    Log log(*play.hosts);
    play.hosts->post(write(0, 1, 100 * 4096), Time::zero(), Time::zero());
    play.run(log);
    HostsPlay one(star(2), config);
    Log first(*one.hosts);
    one.hosts->post(write(0, 1, 4096), Time::zero(), Time::zero());
    one.run(first);
    // 160 ps a byte: the receiver takes in one payload after the other, 99 of them after the first.
    EXPECT_EQ((log.received[0] - first.received[0]).ps, 99 * 4096 * 160);
}

TEST(Hosts, AReceiverSlowerThanItsLinkHoldsSendersUp) {
    for (const CreditRelease release : {CreditRelease::at_tail, CreditRelease::per_block}) {
        FabricConfig fabric = star(3);
        fabric.credit_release = release;
        HostConfig config;
        config.path.pcie_rate = base::gigabits_per_second(50);
        HostsPlay play(fabric, config);
        Log log(*play.hosts);
        const std::int64_t packets = 200;
        for (const std::uint32_t from : {0U, 1U}) {
            play.hosts->post(write(from, 2, packets * 4096, from), Time::zero(), Time::zero());
        }
        play.run(log);
        // Each sender fetches at 50 Gb/s, twice what is left to it. The first packet is there with
        // its RDMA header; from then on the receiver is never idle: 160 ps a byte without the 26 B.
        const Time first =
            fabric.cables[0].delay * 2 + fabric.switch_latency + Time{(64 + 4096 + 26 + 16) * 80};
        const Time last = first + Time{(2 * packets * 4096 + 2 * 16) * 160};
        EXPECT_EQ(std::max(log.received[0], log.received[1]).ps, last.ps);
        // Its input buffer is full all the time but for the beginning, and the switch waits.
        const std::uint32_t star_switch = fabric.hosts;
        EXPECT_GT(play.network->counters(end_at(star_switch, 3)).wait_credits.ps, last.ps / 3);
        EXPECT_EQ(play.hosts->completed(), 2U);
        EXPECT_TRUE(play.network->check_conservation(play.now).has_value());
    }
}

TEST(Hosts, MemoryIsSharedByAllThatANodeSendsAndReceives) {
    HostConfig config;
    config.path.memory_rate = base::gigabits_per_second(200);
    const std::int64_t packets = 500;
    const auto until_all_is_there = [&](const std::vector<std::uint32_t>& senders) {
        HostsPlay play(star(2), config);
        Log log(*play.hosts);
        for (const std::uint32_t from : senders) {
            play.hosts->post(write(from, 1 - from, packets * 4096, from), Time::zero(),
                             Time::zero());
        }
        play.run(log);
        Time last;
        for (const auto& [tag, at] : log.received) {
            last = std::max(last, at);
        }
        return static_cast<double>(last.ps);
    };
    // Two passes one way are 200 Gb/s at 100 Gb/s, which is the link's.
    const double alone = packets * 4096 * 80;
    EXPECT_NEAR(until_all_is_there({0}), alone, 0.02 * alone);
    // Both ways they are four, and 50 Gb/s is left to each.
    EXPECT_NEAR(until_all_is_there({0, 1}), 2 * alone, 0.02 * alone);
    // Data that cross memory once each way leave all of the link to either.
    config.path.memory_passes = 1;
    EXPECT_NEAR(until_all_is_there({0, 1}), alone, 0.02 * alone);
}

/// Linear shift, each phase when all have finished the one before, after a pause.
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
    // 200 Gb/s: 40 ps a byte. As long as the message alone takes over three switches, or one; at
    // most a credit update of 8 B for each packet that comes the other way gets in between.
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
    // All of leaf 0 send to the hosts with place 0 of other leaves: one uplink for all.
    for (const std::uint32_t flows : {1U, 2U, 3U, 5U}) {
        const FabricConfig fabric = fat_tree(6, 6, 6);
        HostsPlay play(fabric, {});
        Log log(*play.hosts);
        const base::Bytes bytes = 100 * 4096;
        for (std::uint32_t i = 0; i < flows; ++i) {
            play.hosts->post(write(i, 6 * (i + 1), bytes, i), Time::zero(), Time::zero());
        }
        play.run(log);
        const Time alone{(100 * (4096 + 26) + 16) * 40};
        const Time way = fabric.cables[0].delay * 4 + fabric.switch_latency * 3 + Time{3 * 64 * 40};
        Time last;
        for (const auto& [tag, at] : log.received) {
            last = std::max(last, at);
        }
        // Credits for 15 packets outlast the loop of a link, so that it never idles.
        EXPECT_EQ(last.ps, (alone * flows + way).ps) << flows;
    }
}

}  // namespace
}  // namespace daqloom::transport
