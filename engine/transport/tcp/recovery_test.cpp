// Detection and repair of losses, event by event.

#include "transport/tcp/by_hand_test.hpp"

namespace daqloom::transport {
namespace {

using base::microseconds;
using base::milliseconds;
using base::Time;

// One loss in the middle.

TEST(TcpRecovery, OneLossIsMendedInOneRttByEitherMethod) {
    for (const bool rack : {false, true}) {
        LossyRun pipe(lossy_config(rack, false), 20, first_copies({3}));
        EXPECT_EQ(times_of_segment(pipe, 3), (std::vector{Time::zero(), milliseconds(10)}));
        EXPECT_EQ(pipe.sent().size(), 21U);
        EXPECT_EQ(pipe.sender().counters().fast_retransmissions, 1U);
        EXPECT_EQ(pipe.sender().counters().recoveries, 1U);
        EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
        // At the loss, 23 segments: 20, and one for each of the first three acknowledged. The
        // window is half of that, in whole segments.
        EXPECT_EQ(pipe.sender().congestion().window(), 11 * kMss);
    }
}

TEST(TcpRecovery, SeveralLossesOfOneWindowReduceOnce) {
    for (const bool rack : {false, true}) {
        LossyRun pipe(lossy_config(rack, false), 20, first_copies({0, 5, 6, 11}));
        EXPECT_EQ(pipe.sent().size(), 24U);
        EXPECT_EQ(pipe.sender().counters().recoveries, 1U);
        EXPECT_EQ(pipe.sender().congestion().window(), 10 * kMss);
        EXPECT_EQ(last_ack_arrives(pipe), milliseconds(20));
    }
}

/// The timer for a retransmission starts at the retransmission.
TEST(TcpRecovery, TheThirdSegmentSackedAboveMakesALossWithRackToo) {
    for (const bool rack : {false, true}) {
        SacksByHand bench(lossy_config(rack, false));
        EXPECT_EQ(bench.sender.timer(), milliseconds(210));
        bench.sack(0, 1, 3);
        EXPECT_EQ(bench.sent_again(), Numbers{});
        EXPECT_EQ(bench.sender.timer(), rack ? microseconds(12'500) : milliseconds(210));
        bench.sack(0, 1, 4);
        EXPECT_EQ(bench.sent_again(), Numbers{0});
        EXPECT_EQ(bench.sender.timer(), milliseconds(220));
    }
}

TEST(TcpRecovery, RackWaitsAQuarterOfTheRttForReordering) {
    SacksByHand bench(lossy_config(true, false));
    bench.sack(0, 1, 2);
    EXPECT_EQ(bench.sent_again(), Numbers{});
    // Segment 0 was sent at 0 and overtaken by one that took 10 ms; a quarter of this is grace.
    EXPECT_EQ(bench.sender.timer(), microseconds(12'500));
    bench.timer();
    EXPECT_EQ(bench.sent_again(), Numbers{0});

    SacksByHand late(lossy_config(true, false));
    late.sack(0, 1, 2);
    late.now = milliseconds(12);
    late.ack(2);
    EXPECT_EQ(late.sent_again(), Numbers{});
    EXPECT_EQ(late.sender.counters().recoveries, 0U);

    SacksByHand more(lossy_config(true, true), 40);
    more.sack(0, 1, 2);
    EXPECT_EQ(more.sent_new().size(), 21U);  // the SACK made room for one
    EXPECT_EQ(more.sender.timer(), microseconds(12'500));
}

TEST(TcpRecovery, ARetransmissionDoesNotMakeRackForgetOtherSuspects) {
    // Three segments leave 1 ms apart; 0 and 1 are lost, 2 arrives, and no segment after it.
    SacksByHand bench(lossy_config(true, true), 1);
    for (const int at : {1, 2}) {
        bench.now = milliseconds(at);
        bench.write(kMss);
    }
    bench.now = milliseconds(12);
    bench.sack(0, 2, 3);
    // The RTT of segment 2 is 10 ms; RACK adds a quarter: 0 is lost at 12.5 ms and 1 at 13.5 ms.
    EXPECT_EQ(bench.sender.timer(), microseconds(13'500));
    bench.now = milliseconds(13);
    bench.sack(0, 2, 3);
    EXPECT_EQ(bench.sent_again(), Numbers{0});
    EXPECT_EQ(bench.sender.timer(), microseconds(13'500));
    bench.timer();
    EXPECT_EQ(bench.sent_again(), (Numbers{0, 1}));
    EXPECT_EQ(bench.sender.counters().timeouts(), 0U);
}

TEST(TcpRecovery, OnlyRackFindsALostRetransmissionWithoutATimeout) {
    // 3 and 12 are lost, and also the first retransmission of 3. RACK detects this loss when the
    // retransmission of 12 arrives, which left at the same time but is later in the stream. Without
    // RACK the timer runs from the retransmission of the first segment in flight, at 10 ms; SACKs
    // do not extend it (RFC 6298, 5.3). Ten samples of 10 ms leave the timeout at RTT + 200 ms.
    for (const bool rack : {false, true}) {
        int copies_of_3 = 0;
        LossyRun pipe(lossy_config(rack, false), 20, [&](const TcpPipe::Segment& s) {
            return (s.begin == 3 * kMss && ++copies_of_3 <= 2) ||
                   (s.begin == 12 * kMss && !s.again);
        });
        EXPECT_EQ(times_of_segment(pipe, 3),
                  (std::vector{Time::zero(), milliseconds(10), milliseconds(rack ? 20 : 220)}));
        EXPECT_EQ(pipe.sender().counters().timeouts_retransmission, rack ? 0U : 1U);
        EXPECT_EQ(pipe.sender().counters().timeouts(), rack ? 0U : 1U);
    }
}

TEST(TcpRecovery, ALossAfterTheRecoveryPointIsALossOfItsOwn) {
    // Segment 30 leaves at 10 ms, during the recovery from the loss of segment 3.
    LossyRun pipe(lossy_config(true, false), 60, first_copies({3, 30}));
    EXPECT_EQ(pipe.sender().counters().recoveries, 2U);
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
}

TEST(TcpRecovery, FurtherLossSlowsRecoveryAndItsRestIsANewLoss) {
    SacksByHand bench(lossy_config(true, false), 22);  // 0 … 19 have left
    // 0 … 16 are lost. No segment is in flight, the threshold is 10; three arrived, so three leave.
    bench.sack(0, 17, 20);
    EXPECT_EQ(bench.sent_again(), (Numbers{0, 1, 2}));
    // Each segment that arrives lets two leave, up to ten in flight.
    bench.now = milliseconds(20);
    for (std::uint64_t next = 1; next <= 3; ++next) {
        bench.ack(next);
        EXPECT_EQ(bench.sent_again().size(), 3 + 2 * next);
    }
    bench.now = milliseconds(30);
    for (std::uint64_t next = 4; next <= 9; ++next) {
        bench.ack(next);
    }
    EXPECT_EQ(bench.sent_again().size(), 17U);
    EXPECT_EQ(bench.sent_new().size(), 22U);
    bench.now = milliseconds(40);
    for (std::uint64_t next = 10; next <= 16; ++next) {
        bench.ack(next);
    }
    // 16 is lost again, and 20 is lost; 21 arrives: one arrival without progress lets one leave.
    bench.sack(16, 21, 22);
    EXPECT_EQ(bench.sent_again().size(), 18U);
    EXPECT_EQ(bench.sent_again().back(), 16U);
    EXPECT_EQ(bench.sender.counters().recoveries, 1U);
    // The first recovery is complete; 20 is still missing, and causes another reduction.
    bench.now = milliseconds(50);
    bench.ack(20);
    EXPECT_EQ(bench.sender.counters().recoveries, 2U);
    EXPECT_EQ(bench.sender.congestion().threshold(), 5 * kMss);
    EXPECT_EQ(bench.sent_again().back(), 20U);
}

TEST(TcpRecovery, SegmentationOffloadHoldsNothingBackInRecovery) {
    TcpConfig config = lossy_config(true, false);
    config.tso_burst = 65536;
    SacksByHand bench(config, 40);
    bench.sack(0, 1, 3);
    EXPECT_EQ(bench.sent_new().size(), 20U);  // room for two waits for a third of the window
    bench.sack(0, 1, 4);
    bench.sack(0, 1, 12);
    // 20 are outstanding, 11 SACKed, one sent again: one may leave below the threshold of 10.
    EXPECT_EQ(bench.sent_again(), Numbers{0});
    EXPECT_EQ(bench.sent_new().size(), 21U);
}

TEST(TcpRecovery, TheWindowFallsInProportionToArrivals) {  // RFC 9937
    for (const bool rack : {false, true}) {
        SacksByHand bench(lossy_config(rack, false), 100);  // 20 in flight, 80 to send
        bench.sack(0, 1, 2);  // before a loss is known each SACK lets one new segment go
        bench.sack(0, 1, 3);  // (limited transmit, RFC 3042)
        EXPECT_EQ(bench.sent_new().size(), 22U);
        // Recovery: 22 outstanding, of which two have arrived. The window was 20, the threshold is
        // 10: segments sent in recovery are always half of those that arrived in it, rounded up.
        for (std::uint64_t k = 3; k <= 19; ++k) {
            bench.sack(0, 1, k + 1);
            const std::uint64_t delivered = k - 2;
            const std::uint64_t allowed = (delivered * 10 + 19) / 20;
            const std::uint64_t left = bench.sent_again().size() + bench.sent_new().size() - 22;
            if (bench.in_flight() > 10) {
                EXPECT_EQ(left, allowed) << k;
            }
        }
        EXPECT_EQ(bench.sent_again(), Numbers{0});
        EXPECT_NEAR(static_cast<double>(bench.in_flight()), 10, 1);
        bench.now = milliseconds(20);
        bench.ack(22);
        EXPECT_EQ(bench.sender.congestion().window(), 10 * kMss);
    }
}

TEST(TcpRecovery, AfterHeavyLossTheWindowGrowsBackToTheThresholdAsFastAsInSlowStart) {
    // 18 of 20 are lost: pipe 1, threshold 10. Each acknowledgement with progress lets one segment
    // leave in addition to those that it delivered (RFC 9937's slow start, because this is safe).
    LossyRun pipe(lossy_config(true, true), 20,
                  [](const TcpPipe::Segment& s) { return !s.again && number_of(s) < 18; });
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
    EXPECT_EQ(pipe.sent().size(), 38U);
    // The SACKs of 18 and 19 arrive at 10 ms. After the reordering time, at 12.5 ms, 0 leaves. Its
    // acknowledgement releases 1 and 2 at 22.5 ms. 4 more leave at 32.5 ms, 8 more by 52.5 ms.
    EXPECT_EQ(times_of_segment(pipe, 0).back(), microseconds(12'500));
    EXPECT_LE(times_of_segment(pipe, 17).back(), microseconds(52'500));
}

TEST(TcpRecovery, AStaticWindowRepairsAtOnceAndKeepsItsSize) {
    TcpConfig config = lossy_config(true, false);
    config.congestion = CongestionControl::static_window;
    config.static_window = 20 * kMss;
    SacksByHand bench(config, 40);
    for (const std::uint64_t arrived : {1, 3, 5, 7}) {  // 0, 2, 4, 6 did not
        bench.now += microseconds(1);
        bench.sack(0, arrived, arrived + 1);
        EXPECT_EQ(bench.in_flight(), 20);
    }
    EXPECT_EQ(bench.sent_again(), (Numbers{0, 2, 4, 6}));
    EXPECT_EQ(bench.sent_new().size(), 24U);
    EXPECT_EQ(bench.sender.congestion().window(), 20 * kMss);
}

}  // namespace
}  // namespace daqloom::transport
