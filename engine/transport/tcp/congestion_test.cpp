#include "transport/tcp/congestion.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include "transport/tcp/by_hand_test.hpp"

namespace daqloom::transport {
namespace {

using base::Bytes;
using base::milliseconds;
using base::Time;

TcpConfig config_for(CongestionControl congestion) {
    TcpConfig config;
    config.congestion = congestion;
    config.mss = kMss;
    config.initial_window = 10;
    config.static_window = 8 * kMss;
    config.hystart = false;
    return config;
}

/// The window of a sender that always uses all of it, on a path with a constant RTT.
class Driver {
  public:
    Driver(CongestionControl congestion, Time rtt) : Driver(config_for(congestion), rtt) {}
    Driver(const TcpConfig& c, Time rtt) : config(c), rtt_(rtt), window(c) {}
    /// A window after a loss; it had `lossy` segments before.
    Driver(const TcpConfig& c, Time rtt, Bytes lossy) : Driver(c, rtt) { loss(lossy); }

    /// The acknowledgements of one window arrive, for two segments each, spread over one RTT.
    void round_trip(bool limited = true, bool echo = false) {
        const Bytes flight = window.window();
        const Time begin = now;
        for (Bytes acked = 0; acked < flight;) {
            const Bytes step = std::min(2 * kMss, flight - acked);
            acked += step;
            una_ += static_cast<std::uint64_t>(step);
            now = begin + Time::from_seconds(rtt_.seconds() * static_cast<double>(acked) /
                                             static_cast<double>(flight));
            const auto nxt = una_ + static_cast<std::uint64_t>(window.window());
            const AckSample sample{now, rtt_, step, una_, nxt, limited, echo};
            window.on_delivery(sample, config);
            window.on_ack(sample, config);
        }
    }
    void loss() {
        window.on_loss(config);
        window.end_reduction(config);
    }
    void loss(Bytes segments) {
        set(segments);
        loss();
    }
    void set(Bytes segments) { window.set_window(segments * kMss, config); }
    void timeout(bool again = false) { window.on_timeout(again, 0, config); }
    /// The windows, in segments, after each of `count` round trips.
    std::vector<Bytes> round_trips(int count) {
        std::vector<Bytes> windows;
        for (int i = 0; i < count; ++i) {
            round_trip();
            windows.push_back(window.window() / kMss);
        }
        return windows;
    }
    [[nodiscard]] double segments() const {
        return static_cast<double>(window.window()) / static_cast<double>(kMss);
    }

    TcpConfig config;

  private:
    Time rtt_;
    std::uint64_t una_ = 0;

  public:
    Congestion window;
    Time now;
};

TEST(Congestion, SlowStartDoublesTheWindowInEveryRoundTrip) {
    Driver flow(CongestionControl::newreno, milliseconds(10));
    EXPECT_EQ(flow.window.window(), 10 * kMss);
    EXPECT_EQ(flow.round_trips(2), (std::vector<Bytes>{20, 40}));
}

TEST(Congestion, NewRenoHalvesOnLossAndThenAddsOneSegmentPerWindow) {
    Driver flow(config_for(CongestionControl::newreno), milliseconds(10), 20);
    EXPECT_EQ(flow.window.window(), 10 * kMss);
    EXPECT_FALSE(flow.window.in_slow_start());
    EXPECT_EQ(flow.round_trips(5), (std::vector<Bytes>{11, 12, 13, 14, 15}));
}

TEST(Congestion, AWindowThatWasNotUsedDoesNotGrowAndNoLossBringsItBelowTwoSegments) {
    for (const auto congestion :
         {CongestionControl::newreno, CongestionControl::cubic, CongestionControl::dctcp}) {
        Driver flow(congestion, milliseconds(10));
        flow.round_trip(false);
        EXPECT_EQ(flow.window.window(), 10 * kMss);
        for (int i = 0; i < 20; ++i) {
            flow.loss();
        }
        EXPECT_EQ(flow.window.window(), 2 * kMss);
    }
}

TEST(Congestion, ATimeoutLeavesOneSegmentAndHalfTheWindowAsThreshold) {
    Driver flow(CongestionControl::newreno, milliseconds(10));
    flow.set(40);
    flow.timeout();
    EXPECT_EQ(flow.window.window(), kMss);
    EXPECT_EQ(flow.window.threshold(), 20 * kMss);
    flow.timeout(true);  // the same data once more: no second reduction
    EXPECT_EQ(flow.window.threshold(), 20 * kMss);
    // Slow start 1 → 2 → 4 → 8 → 16, then to the threshold, then one segment per window.
    EXPECT_EQ(flow.round_trips(6), (std::vector<Bytes>{2, 4, 8, 16, 20, 21}));
}

TEST(Congestion, AMistakenTimeoutIsTakenBackButInRecoveryNotBeyondTheLossThatWasReal) {
    Driver mistaken(CongestionControl::newreno, milliseconds(10));
    mistaken.set(40);
    const Bytes threshold = mistaken.window.threshold();
    mistaken.timeout();
    mistaken.window.undo_timeout();
    EXPECT_EQ(mistaken.window.window(), 40 * kMss);
    EXPECT_EQ(mistaken.window.threshold(), threshold);

    Driver flow(CongestionControl::newreno, milliseconds(10));
    flow.set(80);
    flow.timeout();  // long ago
    flow.set(40);
    flow.window.on_loss(flow.config);
    flow.timeout(true);
    flow.window.undo_timeout();
    EXPECT_EQ(flow.window.window(), kMss);
    EXPECT_EQ(flow.window.threshold(), 20 * kMss);
}

// CUBIC: W(t) = C (t − K)³ + Wmax with C = 0.4, K = cbrt(Wmax (1 − β) / C), β = 0.7 (RFC 9438,
// 4.2). A sender aims at the window one RTT ahead and reaches it in one RTT. Its window at t is
// thus between W(t − RTT) and W(t + RTT), less the segment that is not yet earned.

double cubic(double t, double k, double maximum) {
    return 0.4 * (t - k) * (t - k) * (t - k) + maximum;
}

TEST(Congestion, CubicFollowsItsFormulaAfterALoss) {
    const double rtt_s = 0.1;  // so long that the formula, not the friendliness to Reno, decides
    Driver flow(CongestionControl::cubic, Time::from_seconds(rtt_s));
    flow.loss(1000);
    EXPECT_EQ(flow.window.window(), 700 * kMss);
    const double k = std::cbrt(1000 * 0.3 / 0.4);  // 9.09 s
    int beyond_plateau = 0;
    while (flow.now < base::seconds(16)) {
        flow.round_trip();
        const double t = flow.now.seconds();
        EXPECT_GE(flow.segments(), cubic(t - rtt_s, k, 1000) - 1) << t;
        EXPECT_LE(flow.segments(), cubic(t + rtt_s, k, 1000) + 1) << t;
        beyond_plateau += flow.segments() > 1010 ? 1 : 0;
    }
    EXPECT_GT(beyond_plateau, 20);
}

TEST(Congestion, ALossLeavesWholeSegments) {
    // CUBIC keeps 4.9 of 7 segments, NewReno 3.5, in whole segments; both keep at least two of 3.
    for (const auto& [congestion, of_seven] :
         {std::pair{CongestionControl::cubic, 4}, {CongestionControl::newreno, 3}}) {
        Driver flow(config_for(congestion), milliseconds(1), 7);
        EXPECT_EQ(flow.window.window(), of_seven * kMss);
        flow.loss(3);
        EXPECT_EQ(flow.window.window(), 2 * kMss);
    }
    // The factor 0.7 has no exact binary representation, but seven of ten segments are kept.
    for (Bytes tens = 1; tens < 100; ++tens) {
        const Driver flow(config_for(CongestionControl::cubic), milliseconds(1), 10 * tens);
        EXPECT_EQ(flow.window.window(), 7 * tens * kMss);
    }
}

/// Four of 7 segments are kept, K = cbrt(3 / 0.4) = 1.957 s. Linux rounds the distance to 7 down to
/// whole segments. At t = 50 and 100 ms, aiming 100 ms ahead, it is 2.6 and 2.4, so 2: the target
/// is 5, and four acknowledged segments, one round trip, earn the fifth. At 140 and 180 ms the
/// target is still 5. At 200 ms the distance is 1.99, so 1: the five segments acknowledged since
/// then earn the sixth at once, which is also the target of the third round trip.
TEST(Congestion, CubicsSmallWindowGrowsByWholeSegments) {
    Driver flow(config_for(CongestionControl::cubic), milliseconds(100), 7);
    ASSERT_EQ(flow.window.window(), 4 * kMss);
    EXPECT_EQ(flow.round_trips(3), (std::vector<Bytes>{5, 6, 6}));
}

/// 14 of 20 segments are kept, and 5.9 are missing: one more per 14 acknowledged. This rate of
/// growth lasts for a tick of 4 ms: four round trips, 14 + 15 + 16 + 17 acknowledged, four segments
/// more. At 4 ms the window is above the target and stays; while it stays, the rate stays for 250 /
/// 32 = 7 ticks, until 36 ms. Then Reno would have a larger window.
TEST(Congestion, CubicAimsOnceInATickAndWhileTheWindowStaysOnceInAThirtySecondOfASecond) {
    TcpConfig config = config_for(CongestionControl::cubic);
    config.timer_tick = milliseconds(4);
    Driver flow(config, milliseconds(1));
    flow.loss(20);
    const std::vector<Bytes> windows = flow.round_trips(40);
    EXPECT_EQ(windows[0], 15);
    EXPECT_EQ(windows[3], 18);
    EXPECT_EQ(windows[34], 18);
    EXPECT_GT(windows[39], 18);
}

TEST(Congestion, CubicConvergesFasterWhenItDidNotReachItsLastMaximum) {
    const double rtt_s = 1;
    Driver flow(CongestionControl::cubic, base::seconds(1));
    flow.loss(400);  // Wmax = 400
    flow.loss(300);  // below it: Wmax = 300 (1 + β) / 2 = 255, window 210
    EXPECT_EQ(flow.window.window(), 210 * kMss);
    const double k = std::cbrt((255 - 210) / 0.4);  // 4.83 s
    for (int i = 0; i < 9; ++i) {
        flow.round_trip();
        const double t = flow.now.seconds();
        EXPECT_GE(flow.segments(), cubic(t - rtt_s, k, 255) - 1) << t;
        EXPECT_LE(flow.segments(), cubic(t + rtt_s, k, 255) + 1) << t;
    }
}

TEST(Congestion, CubicIsNeverSlowerThanRenoWouldBe) {
    Driver flow(config_for(CongestionControl::cubic), milliseconds(1), 20);
    flow.round_trips(100);
    // In 0.1 s the cubic has not moved; Reno gains 3 (1 − β) / (1 + β) = 0.529 segments per RTT
    // (RFC 9438, 4.3): 14 + 52.9. The window follows within half a window per RTT and one segment.
    EXPECT_NEAR(flow.segments(), 14 + 52.9, 2);
}

TEST(Congestion, CubicDoesNotGrowForTimeInWhichNothingWasSent) {
    Driver busy(config_for(CongestionControl::cubic), milliseconds(100), 1000);
    Driver paused = busy;
    busy.round_trip();
    paused.round_trip();
    paused.now += base::seconds(30);
    paused.window.on_start(paused.now, base::seconds(30), paused.config);
    EXPECT_EQ(busy.round_trips(20), paused.round_trips(20));
    EXPECT_EQ(busy.window.window(), paused.window.window());
}

TEST(Congestion, CubicForgetsItsMaximumAtATimeout) {
    Driver flow(CongestionControl::cubic, milliseconds(100));
    flow.set(1000);
    flow.timeout();
    EXPECT_EQ(flow.window.threshold(), 700 * kMss);
    flow.set(700);
    const Time begin = flow.now;
    flow.round_trips(30);
    // K = 0 and origin 700 (RFC 9438, 4.8), but each acknowledged segment adds at least a twentieth
    // of a segment while no loss has set a maximum (as in Linux). This is 5 % per RTT, over 30 RTTs
    // more than the 0.4 · 3³ = 11 segments of the formula.
    const double least = 700 * std::pow(1.05, (flow.now - begin).seconds() / 0.1);
    EXPECT_NEAR(flow.segments(), least, 0.03 * least);
}

// HyStart, with Linux's constants, acts from 16 segments on. A queue is detected if each of the
// first 8 samples of a round trip exceeds the best RTT by an eighth of it (at least 4 ms, at most
// 16 ms), or if acknowledgements of one round trip, at most 2 ms apart, arrive for half of (best
// RTT + burst allowance); the allowance is at most 1 ms.

struct HyStart {
    HyStart() : config(config_for(CongestionControl::cubic)), window(config) {
        config.hystart = true;
        window.set_window(16 * kMss, config);
    }
    /// Delivers an acknowledgement, `pause` after the previous one; a round trip has one `nxt`.
    void ack(Time pause, Time rtt, std::uint64_t una, std::uint64_t nxt) {
        now += pause;
        window.on_ack({now, rtt, kMss, una, nxt, true, false}, config);
    }
    TcpConfig config;
    Congestion window;
    Time now = milliseconds(100);
};

TEST(Congestion, HyStartLeavesSlowStartWhenNineSamplesOfARoundTripAreLateByMoreThanAnEighth) {
    for (const int rtt_ms : {45, 46}) {  // the best: 40 ms, so that 45 ms are tolerated
        HyStart start;
        start.ack(Time::zero(), milliseconds(40), 1, 100);
        for (std::uint64_t i = 0; i < 50; ++i) {
            start.ack(milliseconds(3), milliseconds(rtt_ms), 101 + i, 200);
            EXPECT_EQ(start.window.in_slow_start(), rtt_ms == 45 || i < 8) << i;
        }
    }
}

TEST(Congestion, HyStartLeavesSlowStartWhenATrainWithoutPausesIsHalfAnRttLong) {
    // Best RTT 40 ms. The allowance for 2^18 B at two windows per RTT exceeds its limit of 1 ms, so
    // the train of acknowledgements may be 20.5 ms long.
    for (const bool pauses : {false, true}) {
        HyStart start;
        for (std::uint64_t i = 0; i <= 60; ++i) {
            const Time pause = i == 0 ? Time::zero() : milliseconds(pauses && i == 6 ? 3 : 1);
            start.ack(pause, milliseconds(40), 1 + i, 100);
            EXPECT_EQ(start.window.in_slow_start(), pauses || i <= 20) << i;
        }
    }
}

TEST(Congestion, HyStartLeavesSmallWindowsAlone) {
    HyStart start;
    start.window.set_window(10 * kMss, start.config);
    start.ack(Time::zero(), milliseconds(1), 1, 2);
    for (std::uint64_t i = 0; i < 5; ++i) {  // 10 → 15 segments
        start.ack(milliseconds(30), milliseconds(100), 3 + i, 100);
    }
    EXPECT_TRUE(start.window.in_slow_start());
}

TEST(Congestion, DctcpReducesByHalfTheFractionOfMarkedBytes) {
    Driver flow(CongestionControl::dctcp, milliseconds(1));
    flow.loss(64);  // out of slow start, at 32 segments
    EXPECT_DOUBLE_EQ(flow.window.control<Dctcp>().marked_fraction(), 1.0);
    // Without marks α decays by 1 − g = 15/16 at the end of every window (RFC 8257, 3.3).
    double alpha = 1;
    for (int i = 0; i < 10; ++i) {
        flow.round_trip();
        EXPECT_LE(flow.window.control<Dctcp>().marked_fraction(), alpha);
        alpha *= 15.0 / 16.0;
        EXPECT_GE(flow.window.control<Dctcp>().marked_fraction(), alpha * 15.0 / 16.0);
    }
    const Bytes before = flow.window.window();
    const double kept = 1 - flow.window.control<Dctcp>().marked_fraction() / 2;
    flow.window.on_mark(flow.config);
    EXPECT_EQ(flow.window.window(), before);  // falls to the threshold as segments arrive
    flow.window.end_reduction(flow.config);
    EXPECT_NEAR(static_cast<double>(flow.window.window()), kept * static_cast<double>(before), 1);
}

TEST(Congestion, DctcpTakesTheFractionFromBytesNotFromAcknowledgements) {
    const TcpConfig config = config_for(CongestionControl::dctcp);
    Congestion window(config);
    // Two windows; in the second, 1 of 4 kB is marked: α = 1 → 15/16 (first, unmarked) → ….
    window.on_delivery({milliseconds(1), milliseconds(1), 4 * kMss, 4000, 8000, true, false},
                       config);
    const double first = 1 + (0 - 1) / 16.0;
    EXPECT_DOUBLE_EQ(window.control<Dctcp>().marked_fraction(), first);
    window.on_delivery({milliseconds(2), milliseconds(1), 3 * kMss, 7000, 9000, true, false},
                       config);
    window.on_delivery({milliseconds(2), milliseconds(1), 1 * kMss, 8000, 9000, true, true},
                       config);
    EXPECT_DOUBLE_EQ(window.control<Dctcp>().marked_fraction(), first + (0.25 - first) / 16.0);
}

TEST(Congestion, AnIdleWindowIsHalvedForEveryRtoDownToTheInitialOne) {
    const TcpConfig config = config_for(CongestionControl::newreno);
    const Time rto = milliseconds(200);
    const auto after_idle = [&](Time idle) {
        Congestion window(config);
        window.set_window(160 * kMss, config);
        window.on_idle(idle, rto, config);
        return window;
    };
    EXPECT_EQ(after_idle(milliseconds(201)).window(), 80 * kMss);
    EXPECT_EQ(after_idle(milliseconds(401)).window(), 40 * kMss);
    EXPECT_EQ(after_idle(milliseconds(601)).window(), 20 * kMss);
    EXPECT_EQ(after_idle(base::seconds(3600)).window(), 10 * kMss);
}

TEST(Congestion, AfterIdlenessSlowStartReachesThreeQuartersOfTheOldWindow) {
    Driver flow(CongestionControl::newreno, milliseconds(10));
    flow.loss(320);  // window and threshold 160
    flow.timeout();  // threshold 80
    flow.set(160);
    flow.window.on_idle(base::seconds(60), milliseconds(200), flow.config);
    EXPECT_EQ(flow.window.threshold(), 120 * kMss);
    EXPECT_EQ(flow.window.window(), 10 * kMss);
}

TEST(Congestion, AStaticWindowStaysButForTheSegmentThatProbesAfterATimeout) {
    Driver flow(CongestionControl::static_window, milliseconds(10));
    EXPECT_EQ(flow.window.window(), 8 * kMss);
    flow.round_trip();
    flow.loss();
    flow.window.on_idle(base::seconds(9), milliseconds(200), flow.config);
    EXPECT_EQ(flow.window.window(), 8 * kMss);
    flow.timeout();
    EXPECT_EQ(flow.window.window(), kMss);
    flow.round_trip();
    EXPECT_EQ(flow.window.window(), 8 * kMss);
}

}  // namespace
}  // namespace daqloom::transport
