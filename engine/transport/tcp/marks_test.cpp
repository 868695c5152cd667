// A mark reduces the window over a round trip, acknowledgement by acknowledgement, as in Linux.
//
// DCTCP with ten segments in flight. α is 1 at first and stays 1 while all segments are marked, so
// that the threshold is half of the window.

#include <array>
#include <vector>

#include "transport/tcp/by_hand_test.hpp"

namespace daqloom::transport {
namespace {

using base::Bytes;
using base::milliseconds;

TcpConfig dctcp_config() {
    TcpConfig config = plain_config();
    config.congestion = CongestionControl::dctcp;
    config.rack = false;  // losses are found by counting, whatever the time
    return config;
}

/// Ten segments in flight and 90 to send; all acknowledgements arrive at 10 ms, one RTT later.
struct TenInFlight : TcpByHand {
    explicit TenInFlight(const TcpConfig& c = dctcp_config()) : TcpByHand(c) {
        write(100 * kMss);
        now = milliseconds(10);
    }
    void ack_segments(std::uint64_t next, bool echo) { ack(next * kMss, {}, echo); }
    [[nodiscard]] std::size_t sent_since() const { return sent.size() - 10; }
    [[nodiscard]] Bytes threshold() const { return sender.congestion().threshold(); }
};

TEST(TcpMarks, TheWindowFallsToTheThresholdOverARoundTrip) {
    TenInFlight bench;
    // After k of 10 segments ⌈k · 5 / 10⌉ may have left while more than 5 are in flight, and the
    // window equals the data in flight including these:
    //   k            1   2   3   4   5   6   7   8   9  10
    //   left         1   1   2   2   3   3   4   4   4   5
    //   in flight   10   9   9   8   8   7   7   6   5   5
    // At k = 9 five are in flight, the threshold; at k = 10 the sender fills up to the threshold.
    const std::array<std::size_t, 10> left{1, 1, 2, 2, 3, 3, 4, 4, 4, 5};
    for (std::uint64_t k = 1; k <= 10; ++k) {
        bench.ack_segments(k, true);
        EXPECT_EQ(bench.sent_since(), left[k - 1]) << k;
        EXPECT_EQ(bench.window(), static_cast<Bytes>(10 - k + left[k - 1]) * kMss) << k;
        EXPECT_EQ(bench.threshold(), 5 * kMss) << "one reduction for one window of data";
    }
    // The first segment sent during the reduction is acknowledged: the reduction is over, and
    // growth by one segment per window begins.
    for (std::uint64_t k = 11; k < 15; ++k) {
        bench.ack_segments(k, false);
        EXPECT_EQ(bench.window(), 5 * kMss) << k;
    }
    bench.ack_segments(15, false);
    EXPECT_EQ(bench.window(), 6 * kMss);
}

TEST(TcpMarks, OneMarkReducesByTheShareThatIsMarkedByThen) {
    // The first acknowledgement ends the first window, which had no marks: α = 15/16. The second
    // segment is marked, so the window is multiplied by 1 − α / 2 = 1 − 15/32.
    TenInFlight bench;
    bench.ack_segments(1, false);
    const Bytes window = bench.window();  // slow start: one more
    EXPECT_EQ(window, 11 * kMss);
    bench.ack_segments(2, true);
    EXPECT_EQ(bench.threshold(), static_cast<Bytes>(static_cast<double>(window) * (1 - 15.0 / 32)));
}

TEST(TcpMarks, MarksOfTheNextRoundTripReduceAgainDownToTwoSegments) {
    TenInFlight bench;
    for (std::uint64_t k = 1; k <= 60; ++k) {
        bench.ack_segments(k, true);
        EXPECT_GE(bench.window(), 2 * kMss) << k;
        if (k == 10 || k == 11) {
            EXPECT_EQ(bench.threshold(), k == 10 ? 5 * kMss : 5 * kMss / 2);
        }
    }
    EXPECT_EQ(bench.window(), 2 * kMss);
}

TEST(TcpMarks, TheShortLastSegmentOfAMessageCountsAsOne) {
    TcpByHand bench(dctcp_config());
    bench.write(2 * kMss + 500);
    // A mark with little in flight: two segments arrived, so that two may leave, and one for the
    // progress, in addition to the 500 B that are outstanding.
    bench.ack(2000, {}, true);
    EXPECT_EQ(bench.window(), 500 + 3 * kMss);
    // All three have arrived and none left since: three may leave, and one for the progress.
    bench.ack(2500, {}, true);
    EXPECT_EQ(bench.window(), 4 * kMss);
    // Nothing is outstanding. The peer repeats its acknowledgement and echo, which has no effect.
    bench.ack(2500, {}, true);
    EXPECT_EQ(bench.window(), 4 * kMss);
    EXPECT_EQ(bench.sender.congestion().threshold(), 5 * kMss);
    // The next message leaves in the window after the reduction, which then grows to the threshold.
    bench.write(20 * kMss);
    EXPECT_EQ(bench.sent.size(), 3U + 4U);
    bench.ack(3500);
    EXPECT_EQ(bench.window(), 5 * kMss);

    TcpByHand idle(dctcp_config());  // an echo with nothing outstanding reduces nothing
    idle.write(2 * kMss);
    idle.ack(2000);
    idle.ack(2000, {}, true);
    EXPECT_GT(idle.sender.congestion().threshold(), 100 * kMss);
    EXPECT_EQ(idle.window(), 10 * kMss);
}

TEST(TcpMarks, ALossMeanwhileDeepensTheReduction) {
    TenInFlight bench;
    bench.ack_segments(1, true);  // segment 1 is lost, 2 … 9 arrive
    bench.ack(1000, {{2000, 3000}}, true);
    bench.ack(1000, {{2000, 4000}}, true);
    EXPECT_EQ(bench.window(), 9 * kMss);
    // The third SACK reveals the loss: the threshold is half of 9, in whole segments. With seven in
    // flight, ⌈4 · 4 / 10⌉ = 2 segments may have left, and two have.
    bench.ack(1000, {{2000, 5000}}, true);
    EXPECT_EQ(bench.threshold(), 4 * kMss);
    EXPECT_EQ(bench.window(), 7 * kMss);
    EXPECT_EQ(bench.sent_since(), 2U);
    // ⌈5 · 4 / 10⌉ is 2 as well.
    bench.ack(1000, {{2000, 6000}}, true);
    EXPECT_EQ(bench.sent_since(), 2U);
    // ⌈6 · 4 / 10⌉ is 3: the retransmission leaves.
    bench.ack(1000, {{2000, 7000}}, true);
    ASSERT_EQ(bench.sent_since(), 3U);
    EXPECT_TRUE(bench.sent.back().again);
    EXPECT_EQ(bench.sent.back().begin, 1000U);
    // The reduction ends when all data in flight at the mark have arrived.
    bench.ack(9999, {}, false);
    EXPECT_EQ(bench.sender.counters().recoveries, 1U);
    bench.ack(10'000, {}, false);
    EXPECT_EQ(bench.window(), 4 * kMss);
    EXPECT_EQ(bench.threshold(), 4 * kMss);
}

TEST(TcpMarks, ATimeoutMeanwhileCostsNoSecondReduction) {
    TenInFlight bench;
    bench.ack_segments(1, true);
    bench.timer();
    EXPECT_EQ(bench.sender.counters().timeouts(), 1U);
    EXPECT_EQ(bench.threshold(), 5 * kMss);
    EXPECT_EQ(bench.window(), kMss);
}

TEST(TcpMarks, AProbeStillLooksForALostTail) {
    TcpConfig config = dctcp_config();
    config.tail_loss_probe = true;
    TenInFlight bench(config);
    bench.ack_segments(1, true);
    // Timer: 10 ms, 2 SRTT of 10 ms each, and 2 ms of margin (RFC 8985, 7.2).
    EXPECT_EQ(bench.sender.timer(), milliseconds(32));
}

TEST(TcpMarks, SegmentationOffloadStillWaitsForABurst) {
    TcpConfig config = dctcp_config();
    config.tso_burst = 65'536;
    TenInFlight bench(config);
    // A third of the window must be free before a burst leaves. Nothing leaves, so that after k
    // segments 10 − k are in flight. The room is ⌈k / 2⌉ above the threshold, at least one segment
    // with five in flight, and below the threshold the difference to five.
    //   k         1    2    3    4    5    6    7
    //   room      1    1    2    2    1    1    2
    //   window   10    9    9    8    6    5    5
    for (std::uint64_t k = 1; k <= 6; ++k) {
        bench.ack_segments(k, true);
        EXPECT_EQ(bench.sent_since(), 0U) << k;
    }
    bench.ack_segments(7, true);
    EXPECT_EQ(bench.sent_since(), 2U);
}

TEST(TcpMarks, AnEchoMeansNothingToOtherControls) {
    for (const auto congestion :
         {CongestionControl::newreno, CongestionControl::cubic, CongestionControl::static_window}) {
        TcpConfig config = dctcp_config();
        config.congestion = congestion;
        config.static_window = 10 * kMss;
        std::vector<Bytes> windows;
        for (const bool echo : {false, true}) {
            TenInFlight bench(config);
            bench.ack_segments(5, echo);
            windows.push_back(bench.window());
        }
        EXPECT_EQ(windows[0], windows[1]);
    }
}

}  // namespace
}  // namespace daqloom::transport
