// What may leave and when the timer runs, while nothing is lost.
#include "ethernet/tcp_sender.hpp"

#include <gtest/gtest.h>

#include <initializer_list>

#include "ethernet/tcp_pipe.hpp"

namespace daqloom::ethernet {
namespace {

using base::Bytes;
using base::microseconds;
using base::milliseconds;
using base::seconds;
using base::Time;

constexpr Bytes kMss = 1000;

/// NewReno without probes; an RTT of 10 ms is known, so that the RTO is 10 ms + 200 ms.
TcpConfig plain_config() {
    TcpConfig config;
    config.congestion = CongestionControl::newreno;
    config.mss = kMss;
    config.tail_loss_probe = false;
    config.ack_every = 1;
    config.handshake_rtt = milliseconds(10);
    return config;
}

/// A sender, a list of what left, and acknowledgements by hand.
struct Bench {
    explicit Bench(const TcpConfig& c) : config(c), sender(c) {}

    void segment(std::uint64_t begin, Bytes length, bool again) {
        sent.push_back({now, begin, length, again});
    }
    void write(Bytes bytes) {
        sender.write(bytes);
        sender.transmit(now, config, *this);
    }
    void ack(std::uint64_t next, std::initializer_list<StreamRange> blocks = {},
             bool echo = false) {
        SackBlocks sack;
        for (const StreamRange& block : blocks) {
            sack.blocks[sack.count++] = block;
        }
        sender.on_ack(next, sack.count == 0 ? nullptr : &sack, echo, false, now, config);
        sender.transmit(now, config, *this);
        EXPECT_TRUE(sender.books_hold());
    }
    [[nodiscard]] Bytes window() const { return sender.congestion().window(); }

    TcpConfig config;
    TcpSender sender;
    Time now;
    std::vector<TcpPipe::Segment> sent;
};

TEST(TcpSender, CutsWhatIsWrittenIntoSegmentsUpToTheInitialWindow) {
    Bench bench(plain_config());
    bench.write(2500);
    ASSERT_EQ(bench.sent.size(), 3U);
    EXPECT_EQ(bench.sent[1].begin, 1000U);
    EXPECT_EQ(bench.sent[2].length, 500);
    bench.write(100 * kMss);  // 10 segments (RFC 6928) less the 2500 bytes: seven whole ones
    EXPECT_EQ(bench.sent.size(), 3U + 7U);
    EXPECT_EQ(bench.sender.in_flight(), 9500);
}

TEST(TcpSender, SendsNoMoreThanTheReceiverTakes) {
    TcpConfig config = plain_config();
    config.receive_window = 4500;
    Bench bench(config);
    bench.write(100 * kMss);
    EXPECT_EQ(bench.sent.size(), 4U);
    bench.ack(1000);
    EXPECT_EQ(bench.sent.size(), 5U);
}

TEST(TcpSender, AStaticWindowIsRefilledToTheByte) {
    TcpConfig config = plain_config();
    config.congestion = CongestionControl::static_window;
    config.static_window = 3 * kMss;
    Bench bench(config);
    bench.write(10 * kMss);
    EXPECT_EQ(bench.sender.in_flight(), 3 * kMss);
    for (std::uint64_t next = 1000; next <= 7000; next += 1000) {
        bench.ack(next);
        EXPECT_EQ(bench.sender.in_flight(), 3 * kMss);
    }
}

TEST(TcpSender, SegmentationOffloadLeavesInBurstsOfAThirdOfTheWindow) {
    TcpConfig config = plain_config();
    config.congestion = CongestionControl::static_window;
    config.static_window = 30 * kMss;
    config.tso_burst = 65536;
    Bench bench(config);
    bench.write(200 * kMss);
    EXPECT_EQ(bench.sent.size(), 30U);  // nothing to wait for: all at once
    for (std::uint64_t next = 1000; next <= 9000; next += 1000) {
        bench.ack(next);
        EXPECT_EQ(bench.sent.size(), 30U);
    }
    bench.ack(10'000);  // room for 10 segments = 30 / 3
    EXPECT_EQ(bench.sent.size(), 40U);
}

TEST(TcpSender, SegmentationOffloadDoesNotHoldBackTheEndOfAMessage) {
    TcpConfig config = plain_config();
    config.congestion = CongestionControl::static_window;
    config.static_window = 30 * kMss;
    config.tso_burst = 65536;
    Bench bench(config);
    bench.write(32 * kMss);
    bench.ack(1000);
    EXPECT_EQ(bench.sent.size(), 30U);
    bench.ack(2000);
    EXPECT_EQ(bench.sent.size(), 32U);
}

// Growth: only of a window that held the sender back, or, in slow start, of which more than half
// was in use (Linux's tcp_is_cwnd_limited).

TEST(TcpSender, AWindowOfWhichHalfIsUsedDoesNotGrow) {
    Bench bench(plain_config());
    bench.write(5 * kMss);
    bench.ack(5000);
    EXPECT_EQ(bench.window(), 10 * kMss);
}

TEST(TcpSender, AWindowOfWhichMoreThanHalfIsUsedGrowsInSlowStart) {
    Bench bench(plain_config());
    bench.write(6 * kMss);
    bench.ack(6000);
    EXPECT_EQ(bench.window(), 16 * kMss);
}

TEST(TcpSender, AWindowThatIsFilledExactlyCountsAsUsed) {
    Bench bench(plain_config());
    bench.write(10 * kMss);
    bench.ack(10'000);
    EXPECT_EQ(bench.window(), 20 * kMss);
}

TEST(TcpSender, AWindowThatTheReceiverLimitsDoesNotGrow) {
    TcpConfig config = plain_config();
    config.receive_window = 4 * kMss;
    Bench bench(config);
    bench.write(100 * kMss);
    for (std::uint64_t next = 4000; next <= 40'000; next += 4000) {
        bench.now += milliseconds(10);
        bench.ack(next);
    }
    EXPECT_EQ(bench.window(), 10 * kMss);
}

TEST(TcpSender, StartsAnewWithTheInitialWindowAfterIdleness) {
    for (const bool restart : {true, false}) {
        TcpConfig config = plain_config();
        config.restart_after_idle = restart;
        Bench bench(config);
        bench.write(70 * kMss);
        bench.now = milliseconds(10);
        bench.ack(10'000);
        bench.now = milliseconds(20);
        bench.ack(30'000);
        bench.now = milliseconds(30);
        bench.ack(70'000);  // the last 40 filled the window: 80 now
        EXPECT_EQ(bench.window(), 80 * kMss);
        // Idle since 20 ms, when the last segment left; RTO = 210 ms. Seven RTOs later the window
        // was halved seven times and stands at its initial size.
        bench.now = milliseconds(20 + 7 * 210 + 1);
        const std::size_t before = bench.sent.size();
        bench.write(100 * kMss);
        EXPECT_EQ(bench.sent.size() - before, restart ? 10U : 80U);
    }
}

TEST(TcpSender, IdlenessShorterThanTheRtoChangesNothing) {
    Bench bench(plain_config());
    bench.write(10 * kMss);
    bench.now = milliseconds(10);
    bench.ack(10'000);
    bench.now = milliseconds(210);
    bench.write(100 * kMss);
    EXPECT_EQ(bench.sent.size(), 10U + 20U);
}

// The RTT estimator, RFC 6298 by hand (the variance before the mean).

TEST(TcpSender, EstimatesTheRttAsRfc6298) {
    TcpConfig config = plain_config();
    config.handshake_rtt = Time::zero();
    config.rto_min = milliseconds(1);
    Bench bench(config);
    EXPECT_EQ(bench.sender.retransmission_timeout(), seconds(1));
    auto sample = [&, next = std::uint64_t{0}](Time rtt) mutable {
        bench.write(kMss);
        bench.now += rtt;
        bench.ack(next += 1000);
    };
    sample(milliseconds(100));  // SRTT = 100, RTTVAR = 50: RTO = 100 + 4 · 50
    EXPECT_EQ(bench.sender.smoothed_rtt(), milliseconds(100));
    EXPECT_EQ(bench.sender.retransmission_timeout(), milliseconds(300));
    sample(milliseconds(140));  // RTTVAR = ¾ · 50 + ¼ · 40 = 47.5, SRTT = 100 + 40 / 8 = 105
    EXPECT_EQ(bench.sender.smoothed_rtt(), milliseconds(105));
    EXPECT_EQ(bench.sender.retransmission_timeout(), milliseconds(105 + 190));
    sample(milliseconds(60));  // RTTVAR = ¾ · 47.5 + ¼ · 45 = 46.875, SRTT = 105 − 45 / 8 = 99.375
    EXPECT_EQ(bench.sender.smoothed_rtt(), microseconds(99'375));
    EXPECT_EQ(bench.sender.retransmission_timeout(), microseconds(99'375 + 187'500));
}

TEST(TcpSender, AddsAtLeastTheMinimumToTheSmoothedRtt) {
    Bench bench(plain_config());  // SRTT 10 ms, 4 RTTVAR = 20 ms < 200 ms
    EXPECT_EQ(bench.sender.retransmission_timeout(), milliseconds(210));
}

TEST(TcpSender, TakesNoRttFromASegmentSentTwice) {  // Karn and Partridge, 1987
    Bench bench(plain_config());
    bench.write(kMss);
    bench.now = bench.sender.timer();
    bench.sender.on_timer(bench.now, bench.config, bench);
    ASSERT_EQ(bench.sent.size(), 2U);
    bench.now += seconds(30);
    bench.ack(1000);
    EXPECT_EQ(bench.sender.smoothed_rtt(), milliseconds(10));
}

// Timers. The pipe is 5 ms long each way.

std::vector<Time> times_of_segment(const TcpPipe& pipe, std::uint64_t begin) {
    std::vector<Time> times;
    for (const TcpPipe::Segment& s : pipe.sent()) {
        if (s.begin == begin) {
            times.push_back(s.at);
        }
    }
    return times;
}

TEST(TcpTimers, AWholeLostWindowCostsTheRtoWhichDoublesOnRepeatUpToItsMaximum) {
    TcpConfig config = plain_config();
    config.handshake_rtt = Time::zero();
    TcpPipe pipe(config, milliseconds(5));
    pipe.loses = [](const TcpPipe::Segment&) { return true; };
    pipe.write(5 * kMss);
    pipe.run(seconds(400));
    // 1 s without an RTT (RFC 6298, 2.1), then 2, 4, … 64, 120, 120 s.
    std::vector<Time> expected;
    for (const std::int64_t s : {0, 1, 3, 7, 15, 31, 63, 127, 247, 367}) {
        expected.push_back(seconds(s));
    }
    EXPECT_EQ(times_of_segment(pipe, 0), expected);
    EXPECT_EQ(pipe.sender().counters().timeouts_whole_window, 1U);
    EXPECT_EQ(pipe.sender().counters().timeouts_retransmission, 8U);
    // One segment at a time: the others left once.
    EXPECT_EQ(pipe.sent().size(), 5U + 9U);
}

TEST(TcpTimers, AWholeLostWindowCostsTheSmoothedRttAnd200Milliseconds) {
    TcpPipe pipe(plain_config(), milliseconds(5));
    pipe.loses = [](const TcpPipe::Segment& s) { return !s.again; };
    pipe.write(4 * kMss);
    EXPECT_TRUE(pipe.run_dry(1000));
    // RTO = 10 + 200 ms. Then slow start from one segment: 1 | 2, 3 | 4.
    EXPECT_EQ(times_of_segment(pipe, 0), (std::vector{Time::zero(), milliseconds(210)}));
    EXPECT_EQ(times_of_segment(pipe, 2000), (std::vector{Time::zero(), milliseconds(220)}));
    EXPECT_EQ(times_of_segment(pipe, 3000), (std::vector{Time::zero(), milliseconds(230)}));
    EXPECT_EQ(pipe.acks().back().at, milliseconds(235));
    EXPECT_EQ(pipe.sender().counters().timeouts(), 1U);
    EXPECT_EQ(pipe.sender().counters().timeout_retransmissions, 4U);
}

TEST(TcpTimers, AProbeGoesAfterTwoRttsAndTheRtoCountsFromTheProbe) {
    TcpConfig config = plain_config();
    config.tail_loss_probe = true;
    TcpPipe pipe(config, milliseconds(5));
    pipe.loses = [](const TcpPipe::Segment&) { return true; };
    pipe.write(4 * kMss);
    pipe.run(seconds(1));
    // 2 · 10 ms + 2 ms; the probe repeats the last segment. RTO 210 ms later, then 420 ms.
    EXPECT_EQ(times_of_segment(pipe, 3000), (std::vector{Time::zero(), milliseconds(22)}));
    EXPECT_EQ(times_of_segment(pipe, 0),
              (std::vector{Time::zero(), milliseconds(232), milliseconds(652)}));
}

TEST(TcpTimers, AProbeSendsNewDataWhereThereIsSomeWindowOrNot) {
    TcpConfig config = plain_config();
    config.tail_loss_probe = true;
    config.initial_window = 2;
    TcpPipe pipe(config, milliseconds(5));
    pipe.loses = [](const TcpPipe::Segment& s) { return s.at == Time::zero(); };
    pipe.write(3 * kMss);
    EXPECT_TRUE(pipe.run_dry(1000));
    EXPECT_EQ(times_of_segment(pipe, 2000), (std::vector{milliseconds(22)}));
    // Its SACK arrives an RTT later, and tells of both losses (RACK).
    EXPECT_EQ(times_of_segment(pipe, 0), (std::vector{Time::zero(), milliseconds(32)}));
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
}

TEST(TcpTimers, TheTailOfOneSegmentWaitsForADelayedAcknowledgement) {
    TcpConfig config = plain_config();
    config.tail_loss_probe = true;
    TcpPipe pipe(config, milliseconds(5));
    pipe.loses = [](const TcpPipe::Segment& s) { return !s.again; };
    pipe.write(kMss);
    EXPECT_TRUE(pipe.run_dry(1000));
    // 2 · 10 + 200 ms as in Linux, but not later than the RTO of 210 ms; still a probe.
    EXPECT_EQ(times_of_segment(pipe, 0), (std::vector{Time::zero(), milliseconds(210)}));
    EXPECT_EQ(pipe.sender().counters().probe_retransmissions, 1U);
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
}

TEST(TcpTimers, NewDataDoesNotPostponeTheRetransmissionOfOld) {
    for (const bool probe : {false, true}) {
        TcpConfig config = plain_config();
        config.tail_loss_probe = probe;
        TcpPipe pipe(config, milliseconds(5));
        pipe.loses = [](const TcpPipe::Segment&) { return true; };
        for (int i = 0; i < 9; ++i) {
            pipe.at(milliseconds(20 * i), [&] { pipe.write(kMss); });
        }
        pipe.run(milliseconds(400));
        if (probe) {  // put off by new data (RFC 8985, 7.2): 160 + 22 ms
            EXPECT_EQ(times_of_segment(pipe, 8000),
                      (std::vector{milliseconds(160), milliseconds(182)}));
        } else {
            EXPECT_EQ(times_of_segment(pipe, 0), (std::vector{Time::zero(), milliseconds(210)}));
        }
    }
}

TEST(TcpTimers, EveryAcknowledgementOfNewDataStartsTheTimerAnew) {
    Bench bench(plain_config());
    bench.write(3 * kMss);
    EXPECT_EQ(bench.sender.timer(), milliseconds(210));
    bench.now = milliseconds(10);
    bench.ack(1000);
    EXPECT_EQ(bench.sender.timer(), milliseconds(220));
    bench.now = milliseconds(11);
    bench.ack(1000);  // nothing new
    EXPECT_EQ(bench.sender.timer(), milliseconds(220));
    bench.ack(1000, {{2000, 3000}});  // of the last segment: tells nothing of the second
    EXPECT_EQ(bench.sender.timer().ps / 1'000'000'000, 13);  // RACK: sent + RTT + RTT / 4
    bench.ack(3000);
    EXPECT_EQ(bench.sender.timer(), Time::never());
}

TEST(TcpTimers, AnAcknowledgementEndsTheBackOff) {
    Bench bench(plain_config());
    bench.write(2 * kMss);
    for (int i = 0; i < 3; ++i) {
        bench.now = bench.sender.timer();
        bench.sender.on_timer(bench.now, bench.config, bench);
    }
    EXPECT_EQ(bench.now, milliseconds(210 + 420 + 840));
    EXPECT_EQ(bench.sender.timer() - bench.now, milliseconds(1680));
    bench.ack(1000);
    EXPECT_EQ(bench.sender.timer() - bench.now, milliseconds(210));
}

TEST(TcpTimers, WithoutTimestampsTheBackOffStaysUntilAnRttIsKnown) {  // RFC 6298, 5.7
    TcpConfig config = plain_config();
    config.timestamps = false;
    Bench bench(config);
    bench.write(2 * kMss);
    bench.now = bench.sender.timer();
    bench.sender.on_timer(bench.now, bench.config, bench);
    bench.now += milliseconds(10);
    bench.ack(1000);  // of the retransmission, perhaps
    EXPECT_EQ(bench.sender.timer() - bench.now, milliseconds(420));
    bench.now += milliseconds(10);
    bench.ack(2000);
    bench.write(kMss);
    bench.now += milliseconds(10);
    bench.ack(3000);
    bench.write(kMss);
    EXPECT_EQ(bench.sender.timer() - bench.now, milliseconds(210));
}

// A peer may send anything.

TEST(TcpSender, IgnoresAcknowledgementsOfWhatItNeverSent) {
    Bench bench(plain_config());
    bench.write(3 * kMss);
    for (const std::uint64_t next :
         {std::uint64_t{3001}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
        bench.ack(next);
        bench.ack(next, {{1000, 2000}});
        EXPECT_EQ(bench.sender.una(), 0U);
        EXPECT_EQ(bench.sender.in_flight(), 3 * kMss);
    }
}

TEST(TcpSender, IgnoresSackBlocksOutsideOfWhatIsInFlight) {
    Bench bench(plain_config());
    bench.write(6 * kMss);
    bench.now = milliseconds(10);
    bench.ack(2000);
    bench.ack(2000, {{0, 1000}, {1000, 3000}, {5000, 6001}});
    bench.ack(2000, {{4000, 3000}, {3000, 3000}, {2000, 3000}});
    EXPECT_EQ(bench.sender.in_flight(), 4 * kMss);
    bench.ack(2000, {{3500, 4500}});  // not on the borders of segments, but true
    EXPECT_EQ(bench.sender.in_flight(), 3 * kMss);
}

TEST(TcpSender, AnEchoOfAMarkReducesOncePerWindow) {
    TcpConfig config = plain_config();
    config.congestion = CongestionControl::dctcp;
    Bench bench(config);
    bench.write(100 * kMss);
    bench.ack(1000, {}, true);  // α = 1: half of 10
    EXPECT_EQ(bench.window() / kMss, 5);
    for (std::uint64_t next = 2000; next < 10'000; next += 1000) {
        bench.ack(next, {}, true);
        EXPECT_EQ(bench.window() / kMss, 5);
    }
    bench.ack(10'000, {}, true);  // all that was in flight at the reduction
    EXPECT_LT(bench.window() / kMss, 5);
}

}  // namespace
}  // namespace daqloom::ethernet
