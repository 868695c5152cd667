// How losses are found and mended, instant by instant.
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "ethernet/tcp_pipe.hpp"

namespace daqloom::ethernet {
namespace {

using base::Bytes;
using base::microseconds;
using base::milliseconds;
using base::seconds;
using base::Time;

constexpr Bytes kMss = 1000;

/// NewReno over an RTT of 10 ms, known from the handshake: RTO 210 ms. A window of 20 segments.
TcpConfig config_with(bool rack, bool probe) {
    TcpConfig config;
    config.congestion = CongestionControl::newreno;
    config.mss = kMss;
    config.initial_window = 20;
    config.rack = rack;
    config.tail_loss_probe = probe;
    config.ack_every = 1;
    config.handshake_rtt = milliseconds(10);
    return config;
}

std::vector<Time> times_of_segment(const TcpPipe& pipe, std::uint64_t number) {
    std::vector<Time> times;
    for (const TcpPipe::Segment& s : pipe.sent()) {
        if (s.begin == number * static_cast<std::uint64_t>(kMss)) {
            times.push_back(s.at);
        }
    }
    return times;
}

/// Loses the first copy of the segments with these numbers.
std::function<bool(const TcpPipe::Segment&)> first_copies(std::vector<std::uint64_t> numbers) {
    return [numbers](const TcpPipe::Segment& s) {
        return !s.again && std::find(numbers.begin(), numbers.end(),
                                     s.begin / static_cast<std::uint64_t>(kMss)) != numbers.end();
    };
}

Time last_ack_arrives(const TcpPipe& pipe) { return pipe.acks().back().at + milliseconds(5); }

// One loss in the middle.

TEST(TcpRecovery, OneLossIsMendedInOneRttByEitherMethod) {
    for (const bool rack : {false, true}) {
        TcpPipe pipe(config_with(rack, false), milliseconds(5));
        pipe.loses = first_copies({3});
        pipe.write(20 * kMss);
        EXPECT_TRUE(pipe.run_dry(1000));
        EXPECT_EQ(times_of_segment(pipe, 3), (std::vector{Time::zero(), milliseconds(10)}));
        EXPECT_EQ(pipe.sent().size(), 21U);
        EXPECT_EQ(pipe.sender().counters().fast_retransmissions, 1U);
        EXPECT_EQ(pipe.sender().counters().recoveries, 1U);
        EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
        // 23 segments when it happened: 20, and one for each of the first three acknowledged.
        EXPECT_EQ(pipe.sender().congestion().window(), 23 * kMss / 2);
    }
}

TEST(TcpRecovery, SeveralLossesOfOneWindowReduceOnce) {
    for (const bool rack : {false, true}) {
        TcpPipe pipe(config_with(rack, false), milliseconds(5));
        pipe.loses = first_copies({0, 5, 6, 11});
        pipe.write(20 * kMss);
        EXPECT_TRUE(pipe.run_dry(1000));
        EXPECT_EQ(pipe.sent().size(), 24U);
        EXPECT_EQ(pipe.sender().counters().recoveries, 1U);
        EXPECT_EQ(pipe.sender().congestion().window(), 10 * kMss);
        EXPECT_EQ(last_ack_arrives(pipe), milliseconds(20));
    }
}

/// A sender with 20 segments in flight since 0, and SACKs by hand.
struct Bench {
    explicit Bench(const TcpConfig& c, int segments = 20) : config(c), sender(c) {
        sender.write(segments * kMss);
        sender.transmit(now, config, *this);
        now = milliseconds(10);
    }
    void segment(std::uint64_t begin, Bytes /*length*/, bool again) {
        (again ? sent_again : sent_new).push_back(begin / static_cast<std::uint64_t>(kMss));
    }
    /// Segments [begin, end) have arrived and `next` is expected.
    void sack(std::uint64_t next, std::uint64_t begin, std::uint64_t end, bool duplicate = false) {
        SackBlocks blocks;
        blocks.blocks[blocks.count++] = {begin * kMss, end * kMss};
        sender.on_ack(next * kMss, &blocks, false, duplicate, now, config);
        sender.transmit(now, config, *this);
        EXPECT_TRUE(sender.books_hold());
    }
    void ack(std::uint64_t next, bool duplicate = false) {
        sender.on_ack(next * kMss, nullptr, false, duplicate, now, config);
        sender.transmit(now, config, *this);
        EXPECT_TRUE(sender.books_hold());
    }
    void timer() {
        now = sender.timer();
        sender.on_timer(now, config, *this);
    }
    [[nodiscard]] Bytes in_flight() const { return sender.in_flight() / kMss; }

    TcpConfig config;
    TcpSender sender;
    Time now;
    std::vector<std::uint64_t> sent_new;
    std::vector<std::uint64_t> sent_again;
};

using Numbers = std::vector<std::uint64_t>;

TEST(TcpRecovery, WithoutRackTheThirdSegmentSackedAboveMakesALoss) {
    Bench bench(config_with(false, false));
    bench.sack(0, 1, 2);
    bench.sack(0, 1, 3);
    EXPECT_EQ(bench.sent_again, Numbers{});
    bench.sack(0, 1, 4);
    EXPECT_EQ(bench.sent_again, Numbers{0});
}

TEST(TcpRecovery, RackWaitsAQuarterOfTheRttForReordering) {
    Bench bench(config_with(true, false));
    bench.sack(0, 1, 2);
    EXPECT_EQ(bench.sent_again, Numbers{});
    // Sent at 0, overtaken by what took 10 ms, and a quarter of that in grace.
    EXPECT_EQ(bench.sender.timer(), microseconds(12'500));
    bench.timer();
    EXPECT_EQ(bench.sent_again, Numbers{0});
}

TEST(TcpRecovery, NewDataDoesNotMakeRackForgetItsDeadline) {
    Bench bench(config_with(true, true), 40);
    bench.sack(0, 1, 2);
    EXPECT_EQ(bench.sent_new.size(), 21U);  // the SACK made room for one
    EXPECT_EQ(bench.sender.timer(), microseconds(12'500));
}

TEST(TcpRecovery, RackWaitsNoLongerThanForThreeSackedSegments) {
    Bench bench(config_with(true, false));
    bench.sack(0, 1, 3);
    EXPECT_EQ(bench.sent_again, Numbers{});
    bench.sack(0, 1, 4);
    EXPECT_EQ(bench.sent_again, Numbers{0});
}

TEST(TcpRecovery, WhatIsMerelyLateIsNotSentAgain) {
    Bench bench(config_with(true, false));
    bench.sack(0, 1, 2);
    bench.now = milliseconds(12);
    bench.ack(2);
    EXPECT_EQ(bench.sent_again, Numbers{});
    EXPECT_EQ(bench.sender.counters().recoveries, 0U);
}

TEST(TcpRecovery, RackFindsALostRetransmissionWithoutATimeout) {
    // 3 and 12 are lost, and the first repetition of 3: it is missed when that of 12, which left at
    // the same time but later in the stream, arrives.
    TcpPipe pipe(config_with(true, false), milliseconds(5));
    int copies_of_3 = 0;
    pipe.loses = [&](const TcpPipe::Segment& s) {
        return (s.begin == 3 * kMss && ++copies_of_3 <= 2) || (s.begin == 12 * kMss && !s.again);
    };
    pipe.write(20 * kMss);
    EXPECT_TRUE(pipe.run_dry(1000));
    EXPECT_EQ(times_of_segment(pipe, 3),
              (std::vector{Time::zero(), milliseconds(10), milliseconds(20)}));
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
}

TEST(TcpRecovery, WithoutRackALostRetransmissionCostsTheRto) {
    TcpPipe pipe(config_with(false, false), milliseconds(5));
    int copies_of_3 = 0;
    pipe.loses = [&](const TcpPipe::Segment& s) {
        return (s.begin == 3 * kMss && ++copies_of_3 <= 2) || (s.begin == 12 * kMss && !s.again);
    };
    pipe.write(20 * kMss);
    EXPECT_TRUE(pipe.run_dry(1000));
    // The timer ran since the retransmission of the first segment in flight, at 10 ms; SACKs do
    // not prolong it (RFC 6298, 5.3). Ten samples of 10 ms changed nothing of RTT + 200 ms.
    EXPECT_EQ(times_of_segment(pipe, 3),
              (std::vector{Time::zero(), milliseconds(10), milliseconds(220)}));
    EXPECT_EQ(pipe.sender().counters().timeouts_retransmission, 1U);
}

TEST(TcpRecovery, ALossAfterTheRecoveryPointIsALossOfItsOwn) {
    TcpConfig config = config_with(true, false);
    TcpPipe pipe(config, milliseconds(5));
    pipe.loses = first_copies({3, 30});  // 30 leaves at 10 ms, in the recovery from the loss of 3
    pipe.write(60 * kMss);
    EXPECT_TRUE(pipe.run_dry(1000));
    EXPECT_EQ(pipe.sender().counters().recoveries, 2U);
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
}

TEST(TcpRecovery, FurtherLossSlowsRecoveryAndWhatIsLeftOfItIsALossOfItsOwn) {
    Bench bench(config_with(true, false), 22);  // 0 … 19 have left
    // 0 … 16 are lost. Nothing is in flight, the threshold is 10; three arrived, so three go.
    bench.sack(0, 17, 20);
    EXPECT_EQ(bench.sent_again, (Numbers{0, 1, 2}));
    // Every one that arrives lets two go, up to ten in flight.
    bench.now = milliseconds(20);
    for (std::uint64_t next = 1; next <= 3; ++next) {
        bench.ack(next);
        EXPECT_EQ(bench.sent_again.size(), 3 + 2 * next);
    }
    bench.now = milliseconds(30);
    for (std::uint64_t next = 4; next <= 9; ++next) {
        bench.ack(next);
    }
    EXPECT_EQ(bench.sent_again.size(), 17U);
    EXPECT_EQ(bench.sent_new.size(), 22U);
    bench.now = milliseconds(40);
    for (std::uint64_t next = 10; next <= 16; ++next) {
        bench.ack(next);
    }
    // 16 is lost again, and 20; 21 is here: one arrived without progress, so one goes.
    bench.sack(16, 21, 22);
    EXPECT_EQ(bench.sent_again.size(), 18U);
    EXPECT_EQ(bench.sent_again.back(), 16U);
    EXPECT_EQ(bench.sender.counters().recoveries, 1U);
    // The first recovery is complete; 20 is still missing, and costs another reduction.
    bench.now = milliseconds(50);
    bench.ack(20);
    EXPECT_EQ(bench.sender.counters().recoveries, 2U);
    EXPECT_EQ(bench.sender.congestion().threshold(), 5 * kMss);
    EXPECT_EQ(bench.sent_again.back(), 20U);
}

TEST(TcpRecovery, TheTimerOfARetransmissionRunsFromTheRetransmission) {
    Bench bench(config_with(false, false));
    EXPECT_EQ(bench.sender.timer(), milliseconds(210));
    bench.sack(0, 1, 3);
    EXPECT_EQ(bench.sender.timer(), milliseconds(210));
    bench.sack(0, 1, 4);
    EXPECT_EQ(bench.sent_again, Numbers{0});
    EXPECT_EQ(bench.sender.timer(), milliseconds(220));
}

TEST(TcpRecovery, TheWindowFallsInProportionToWhatArrives) {  // RFC 6937
    for (const bool rack : {false, true}) {
        Bench bench(config_with(rack, false), 100);  // 20 in flight, 80 to send
        bench.sack(0, 1, 2);  // before a loss is known each SACK lets one new segment go
        bench.sack(0, 1, 3);  // (limited transmit, RFC 3042)
        EXPECT_EQ(bench.sent_new.size(), 22U);
        // Recovery: 22 outstanding, threshold 10. What left in it is at any time the part 10 / 22
        // of what arrived in it; the fast retransmission goes ahead of that.
        for (std::uint64_t k = 3; k <= 19; ++k) {
            bench.sack(0, 1, k + 1);
            const std::uint64_t delivered = k - 2;
            const std::uint64_t allowed = std::max<std::uint64_t>(1, delivered * 10 / 22);
            const std::uint64_t left = bench.sent_again.size() + bench.sent_new.size() - 22;
            if (bench.in_flight() > 10) {
                EXPECT_EQ(left, allowed) << k;
            }
        }
        EXPECT_EQ(bench.sent_again, Numbers{0});
        EXPECT_NEAR(static_cast<double>(bench.in_flight()), 10, 1);
        bench.now = milliseconds(20);
        bench.ack(22);
        EXPECT_EQ(bench.sender.congestion().window(), 10 * kMss);
    }
}

TEST(TcpRecovery, AfterHeavyLossTheWindowGrowsBackToTheThresholdAsFastAsInSlowStart) {
    // 18 of 20 are lost: pipe 1, threshold 10. Each acknowledgement that makes progress lets what
    // it delivered and one segment more go (RFC 6937's slow start, safe as in RFC 9937).
    TcpPipe pipe(config_with(true, true), milliseconds(5));
    std::vector<std::uint64_t> lost;
    for (std::uint64_t i = 0; i < 18; ++i) {
        lost.push_back(i);
    }
    pipe.loses = first_copies(lost);
    pipe.write(20 * kMss);
    EXPECT_TRUE(pipe.run_dry(1000));
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
    EXPECT_EQ(pipe.sent().size(), 38U);
    // The SACK of 18 comes at 10 ms, of 19 too: time for reordering until 12.5 ms, then 0; it is
    // answered at 22.5 ms by 1, 2, at 32.5 ms by 4, then 8: all sent by 52.5 ms.
    EXPECT_EQ(times_of_segment(pipe, 0).back(), microseconds(12'500));
    EXPECT_LE(times_of_segment(pipe, 17).back(), microseconds(52'500));
}

// The tail of a flight. A lost tail is one of which no later segment arrives.

TEST(TcpRecovery, WithoutProbesALostTailCostsOneRto) {
    for (const bool rack : {false, true}) {
        TcpPipe pipe(config_with(rack, false), milliseconds(5));
        pipe.loses = first_copies({8, 9});
        pipe.write(10 * kMss);
        EXPECT_TRUE(pipe.run_dry(1000));
        // The acknowledgements of 0 … 7 came at 10 ms; RTO 210 ms; one segment, then the other.
        EXPECT_EQ(times_of_segment(pipe, 8), (std::vector{Time::zero(), milliseconds(220)}));
        EXPECT_EQ(times_of_segment(pipe, 9), (std::vector{Time::zero(), milliseconds(230)}));
        EXPECT_EQ(pipe.sender().counters().timeouts(), 1U);
        EXPECT_EQ(pipe.sender().counters().timeouts_tail, 1U);
        EXPECT_EQ(last_ack_arrives(pipe), milliseconds(240));
    }
}

TEST(TcpRecovery, WithProbesALostTailCostsOneProbeTimeout) {
    TcpPipe pipe(config_with(true, true), milliseconds(5));
    pipe.loses = first_copies({8, 9});
    pipe.write(10 * kMss);
    EXPECT_TRUE(pipe.run_dry(1000));
    // Probe: 10 + 2 · 10 + 2 ms, a repetition of 9; its SACK at 42 ms says that 8 is lost too.
    EXPECT_EQ(times_of_segment(pipe, 9), (std::vector{Time::zero(), milliseconds(32)}));
    EXPECT_EQ(times_of_segment(pipe, 8), (std::vector{Time::zero(), milliseconds(42)}));
    EXPECT_EQ(last_ack_arrives(pipe), milliseconds(52));
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
    EXPECT_EQ(pipe.sender().counters().probe_retransmissions, 1U);
}

TEST(TcpRecovery, AProbeThatMendsALossReducesTheWindow) {
    TcpPipe pipe(config_with(true, true), milliseconds(5));
    pipe.loses = first_copies({9});
    pipe.write(10 * kMss);
    pipe.run(milliseconds(300));
    // One segment is outstanding at 10 ms: its probe waits for the RTO at 220 ms.
    EXPECT_EQ(times_of_segment(pipe, 9), (std::vector{Time::zero(), milliseconds(220)}));
    EXPECT_EQ(pipe.sender().congestion().window(), 20 * kMss);
    // No duplicate was reported by the time that something later is acknowledged: it was a loss.
    pipe.write(kMss);
    pipe.run(milliseconds(400));
    EXPECT_EQ(pipe.sender().congestion().window(), 10 * kMss);
}

TEST(TcpRecovery, AProbeThatWasNotNeededChangesNothing) {
    // The acknowledgement of the last two segments is lost; the probe's comes with a D-SACK.
    TcpPipe pipe(config_with(true, true), milliseconds(5));
    pipe.loses_ack = [](const TcpPipe::Ack& ack) {
        return ack.ack > 8 * kMss && ack.at < milliseconds(30);
    };
    pipe.write(10 * kMss);
    pipe.run(milliseconds(100));
    EXPECT_EQ(times_of_segment(pipe, 9), (std::vector{Time::zero(), milliseconds(32)}));
    EXPECT_EQ(pipe.sender().una(), 10 * kMss);
    const Bytes window = pipe.sender().congestion().window();
    pipe.write(kMss);
    pipe.run(milliseconds(300));
    EXPECT_EQ(pipe.sender().congestion().window(), window);
}

// Time-outs.

TEST(TcpRecovery, ATimeoutInRecoveryReducesNoFurther) {
    Bench bench(config_with(false, false));
    bench.sack(0, 1, 4);
    EXPECT_EQ(bench.sender.congestion().threshold(), 10 * kMss);
    bench.timer();
    EXPECT_EQ(bench.sender.counters().timeouts(), 1U);
    EXPECT_EQ(bench.sender.congestion().threshold(), 10 * kMss);
    EXPECT_EQ(bench.sent_again, (Numbers{0, 0}));
}

TEST(TcpRecovery, WhatLeftShortlyBeforeATimeoutIsNotCountedLost) {  // RFC 8985, 6.3
    for (const bool rack : {false, true}) {
        Bench bench(config_with(rack, false), 3);
        bench.ack(1);  // RTT 10 ms; 1 and 2 are outstanding, RTO at 220 ms
        bench.now = milliseconds(215);
        bench.sender.write(kMss);
        bench.sender.transmit(bench.now, bench.config, bench);
        bench.timer();
        EXPECT_EQ(bench.now, milliseconds(220));
        // One segment leaves; 2 is lost; 3 may be under way.
        EXPECT_EQ(bench.sent_again, Numbers{1});
        EXPECT_EQ(bench.in_flight(), rack ? 2 : 1);
    }
}

TEST(TcpRecovery, AMistakenTimeoutIsTakenBack) {
    // A sudden queue lets nothing through for 300 ms: the RTO strikes at 210 ms; when segments
    // that were sent once are acknowledged after all, nothing more is repeated (RFC 5682).
    TcpPipe pipe(config_with(true, false), milliseconds(5));
    pipe.jitter = [&] { return std::max(milliseconds(300) - pipe.now(), Time::zero()); };
    pipe.write(10 * kMss);
    pipe.run(seconds(2));
    EXPECT_EQ(pipe.receiver().next(), 10 * kMss);
    EXPECT_EQ(pipe.sender().counters().timeouts(), 1U);
    // The head, and the one that its acknowledgement let go before the next proved the mistake.
    EXPECT_LE(pipe.sent().size(), 10U + 3U);
    EXPECT_GE(pipe.sender().congestion().window(), 20 * kMss);
}

TEST(TcpRecovery, APeerThatThrowsAwayWhatItSackedIsServedAgain) {  // RFC 2018, 8
    Bench bench(config_with(true, false), 4);
    bench.sack(0, 2, 4);
    bench.now = milliseconds(20);
    bench.ack(2);  // and no word of 2 and 3 any more
    EXPECT_EQ(bench.in_flight(), 0);
    bench.timer();
    EXPECT_EQ(bench.sent_again.back(), 2U);
    bench.ack(3);
    bench.ack(4);
    EXPECT_EQ(bench.sender.una(), 4U * kMss);
    EXPECT_EQ(bench.sender.timer(), Time::never());
}

TEST(TcpRecovery, AStaticWindowRepairsAtOnceAndKeepsItsSize) {
    TcpConfig config = config_with(true, false);
    config.congestion = CongestionControl::static_window;
    config.static_window = 20 * kMss;
    Bench bench(config, 40);
    for (const std::uint64_t arrived : {1, 3, 5, 7}) {  // 0, 2, 4, 6 did not
        bench.now += microseconds(1);
        bench.sack(0, arrived, arrived + 1);
        EXPECT_EQ(bench.in_flight(), 20);
    }
    EXPECT_EQ(bench.sent_again, (Numbers{0, 2, 4, 6}));
    EXPECT_EQ(bench.sent_new.size(), 24U);
    EXPECT_EQ(bench.sender.congestion().window(), 20 * kMss);
}

}  // namespace
}  // namespace daqloom::ethernet
