// RTT estimation, retransmission timeouts and tail-loss probes of the sender's timer.

#include "transport/tcp/by_hand_test.hpp"

namespace daqloom::transport {
namespace {

using base::microseconds;
using base::milliseconds;
using base::seconds;
using base::Time;

TcpConfig probing_config() {
    TcpConfig config = plain_config();
    config.tail_loss_probe = true;
    return config;
}

// The RTT estimator, RFC 6298 by hand (the variance before the mean).

TEST(TcpTimers, EstimatesTheRttAsRfc6298) {
    TcpConfig config = plain_config();
    config.handshake_rtt = Time::zero();
    config.rto_min = milliseconds(1);
    TcpByHand bench(config);
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
    // SRTT is 10 ms, 4 RTTVAR = 20 ms; the minimum of 200 ms applies and is added to SRTT.
    EXPECT_EQ(TcpByHand(plain_config()).sender.retransmission_timeout(), milliseconds(210));
}

TEST(TcpTimers, TakesNoRttFromASegmentSentTwice) {  // Karn and Partridge, 1987
    TcpByHand bench(plain_config());
    bench.write(kMss);
    bench.timer();
    ASSERT_EQ(bench.sent.size(), 2U);
    bench.now += seconds(30);
    bench.ack(1000);
    EXPECT_EQ(bench.sender.smoothed_rtt(), milliseconds(10));
}

// Timers. The pipe is 5 ms long each way.

TEST(TcpTimers, AWholeLostWindowCostsTheRtoWhichDoublesOnRepeatUpToItsMaximum) {
    TcpConfig config = plain_config();
    config.handshake_rtt = Time::zero();
    TcpPipe pipe(config, milliseconds(5));
    pipe.loses = [](const TcpPipe::Segment&) { return true; };
    pipe.write(5 * kMss);
    pipe.run(seconds(400));
    // 1 s without an RTT (RFC 6298, 2.1), then 2, 4, … 64, 120, 120 s.
    std::vector<std::int64_t> seconds_of_copies;
    for (const Time at : pipe.times_of(0)) {
        EXPECT_EQ(at.ps % seconds(1).ps, 0);
        seconds_of_copies.push_back(at.ps / seconds(1).ps);
    }
    EXPECT_EQ(seconds_of_copies,
              (std::vector<std::int64_t>{0, 1, 3, 7, 15, 31, 63, 127, 247, 367}));
    EXPECT_EQ(pipe.sender().counters().timeouts_whole_window, 1U);
    EXPECT_EQ(pipe.sender().counters().timeouts_retransmission, 8U);
    // One segment was retransmitted each time; the others left once.
    EXPECT_EQ(pipe.sent().size(), 5U + 9U);
}

TEST(TcpTimers, AWholeLostWindowCostsTheSmoothedRttAnd200Milliseconds) {
    LossyRun pipe(plain_config(), 4, [](const TcpPipe::Segment& s) { return !s.again; });
    // RTO = 10 + 200 ms. Then slow start from a window of one segment: 1 | 2, 3 | 4.
    EXPECT_EQ(pipe.times_of(0), (std::vector{Time::zero(), milliseconds(210)}));
    EXPECT_EQ(pipe.times_of(2000), (std::vector{Time::zero(), milliseconds(220)}));
    EXPECT_EQ(pipe.times_of(3000), (std::vector{Time::zero(), milliseconds(230)}));
    EXPECT_EQ(pipe.acks().back().at, milliseconds(235));
    EXPECT_EQ(pipe.sender().counters().timeouts(), 1U);
    EXPECT_EQ(pipe.sender().counters().timeout_retransmissions, 4U);
}

TEST(TcpTimers, AProbeGoesAfterTwoRttsAndTheRtoCountsFromTheProbe) {
    TcpPipe pipe(probing_config(), milliseconds(5));
    pipe.loses = [](const TcpPipe::Segment&) { return true; };
    pipe.write(4 * kMss);
    pipe.run(seconds(1));
    // The probe repeats the last segment after 2 · 10 + 2 ms. The RTO: 210 ms later, then 420 ms.
    EXPECT_EQ(pipe.times_of(3000), (std::vector{Time::zero(), milliseconds(22)}));
    EXPECT_EQ(pipe.times_of(0), (std::vector{Time::zero(), milliseconds(232), milliseconds(652)}));
}

TEST(TcpTimers, AProbeSendsNewDataWhereThereIsSomeWindowOrNot) {
    TcpConfig config = probing_config();
    config.initial_window = 2;
    LossyRun pipe(config, 3, [](const TcpPipe::Segment& s) { return s.at == Time::zero(); });
    EXPECT_EQ(pipe.times_of(2000), (std::vector{milliseconds(22)}));
    // The SACK of the probe arrives an RTT later, and reveals both losses (RACK).
    EXPECT_EQ(pipe.times_of(0), (std::vector{Time::zero(), milliseconds(32)}));
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
}

TEST(TcpTimers, TheTailOfOneSegmentWaitsForADelayedAcknowledgement) {
    LossyRun pipe(probing_config(), 1, [](const TcpPipe::Segment& s) { return !s.again; });
    // The probe time is 2 · 10 + 200 ms as in Linux, but at most the RTO, 210 ms: still a probe.
    EXPECT_EQ(pipe.times_of(0), (std::vector{Time::zero(), milliseconds(210)}));
    EXPECT_EQ(pipe.sender().counters().probe_retransmissions, 1U);
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
}

TEST(TcpTimers, NewDataDoesNotPostponeTheRetransmissionOfOld) {
    for (const bool probe : {false, true}) {
        TcpPipe pipe(probe ? probing_config() : plain_config(), milliseconds(5));
        pipe.loses = [](const TcpPipe::Segment&) { return true; };
        for (int i = 0; i < 9; ++i) {
            pipe.at(milliseconds(20 * i), [&] { pipe.write(kMss); });
        }
        pipe.run(milliseconds(400));
        if (probe) {  // put off by new data (RFC 8985, 7.2): 160 + 22 ms
            EXPECT_EQ(pipe.times_of(8000), (std::vector{milliseconds(160), milliseconds(182)}));
        } else {
            EXPECT_EQ(pipe.times_of(0), (std::vector{Time::zero(), milliseconds(210)}));
        }
    }
}

TEST(TcpTimers, EveryAcknowledgementOfNewDataStartsTheTimerAnew) {
    TcpByHand bench(plain_config());
    bench.write(3 * kMss);
    EXPECT_EQ(bench.sender.timer(), milliseconds(210));
    bench.now = milliseconds(10);
    bench.ack(1000);
    EXPECT_EQ(bench.sender.timer(), milliseconds(220));
    bench.now = milliseconds(11);
    bench.ack(1000);  // nothing new
    EXPECT_EQ(bench.sender.timer(), milliseconds(220));
    bench.ack(1000, {{2000, 3000}});  // of the last segment: reveals nothing of the second
    EXPECT_EQ(bench.sender.timer().ps / 1'000'000'000, 13);  // RACK: sent + RTT + RTT / 4
    bench.ack(3000);
    EXPECT_EQ(bench.sender.timer(), Time::never());
}

TEST(TcpTimers, AnAcknowledgementEndsTheBackOff) {
    TcpByHand bench(plain_config());
    bench.write(2 * kMss);
    for (int i = 0; i < 3; ++i) {
        bench.timer();
    }
    EXPECT_EQ(bench.now, milliseconds(210 + 420 + 840));
    EXPECT_EQ(bench.sender.timer() - bench.now, milliseconds(1680));
    bench.ack(1000);
    EXPECT_EQ(bench.sender.timer() - bench.now, milliseconds(210));
}

TEST(TcpTimers, WithoutTimestampsTheBackOffStaysUntilAnRttIsKnown) {  // RFC 6298, 5.7
    TcpConfig config = plain_config();
    config.timestamps = false;
    TcpByHand bench(config);
    bench.write(2 * kMss);
    bench.timer();
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

TEST(TcpTimers, StrikeOnTicksOneLateOnAverage) {
    TcpConfig config;
    EXPECT_EQ(config.strikes(microseconds(1234), microseconds(10)), microseconds(1244));
    config.timer_tick = milliseconds(4);
    // From between two ticks, a timer runs to the next tick, and for its duration in ticks.
    EXPECT_EQ(config.strikes(microseconds(4001), microseconds(1)), milliseconds(12));
    EXPECT_EQ(config.strikes(microseconds(7999), milliseconds(4)), milliseconds(12));
    EXPECT_EQ(config.strikes(microseconds(7999), microseconds(4001)), milliseconds(16));
    Time late;
    for (int i = 0; i < 4000; ++i) {
        // All phases relative to the tick, and durations with all remainders.
        const Time now = microseconds(2 * i + 1);
        const Time delay = microseconds(7 * i % 4000 + 200'001);
        late += config.strikes(now, delay) - (now + delay);
    }
    EXPECT_NEAR(late.seconds() / 4000, 4e-3, 1e-5);
}

}  // namespace
}  // namespace daqloom::transport
