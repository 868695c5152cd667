// The tail of a flight, or the whole flight, is lost: probes and timeouts.
#include <gtest/gtest.h>

#include "transport/tcp/by_hand_test.hpp"

namespace daqloom::transport {
namespace {

using base::Bytes;
using base::milliseconds;
using base::seconds;
using base::Time;

// The tail of a flight: a tail is lost if no segment after the lost ones arrives.

TEST(TcpTail, WithoutProbesALostTailCostsOneRto) {
    for (const bool rack : {false, true}) {
        LossyRun pipe(lossy_config(rack, false), 10, first_copies({8, 9}));
        // Segments 8 and 9 are lost. ACKs of 0 … 7 came at 10 ms, the RTO is 210 ms: 8, then 9.
        EXPECT_EQ(times_of_segment(pipe, 8), (std::vector{Time::zero(), milliseconds(220)}));
        EXPECT_EQ(times_of_segment(pipe, 9), (std::vector{Time::zero(), milliseconds(230)}));
        EXPECT_EQ(pipe.sender().counters().timeouts(), 1U);
        EXPECT_EQ(pipe.sender().counters().timeouts_tail, 1U);
        EXPECT_EQ(last_ack_arrives(pipe), milliseconds(240));
    }
}

TEST(TcpTail, WithProbesALostTailCostsOneProbeTimeout) {
    LossyRun pipe(lossy_config(true, true), 10, first_copies({8, 9}));
    // The probe, at 10 + 2 · 10 + 2 ms, repeats 9; the SACK for 9 shows at 42 ms that 8 is lost.
    EXPECT_EQ(times_of_segment(pipe, 9), (std::vector{Time::zero(), milliseconds(32)}));
    EXPECT_EQ(times_of_segment(pipe, 8), (std::vector{Time::zero(), milliseconds(42)}));
    EXPECT_EQ(last_ack_arrives(pipe), milliseconds(52));
    EXPECT_EQ(pipe.sender().counters().timeouts(), 0U);
    EXPECT_EQ(pipe.sender().counters().probe_retransmissions, 1U);
}

TEST(TcpTail, AProbeThatMendsALossReducesTheWindow) {
    TcpPipe pipe(lossy_config(true, true), milliseconds(5));
    pipe.loses = first_copies({9});
    pipe.write(10 * kMss);
    pipe.run(milliseconds(300));
    // One segment is outstanding at 10 ms: its probe waits for the RTO at 220 ms.
    EXPECT_EQ(times_of_segment(pipe, 9), (std::vector{Time::zero(), milliseconds(220)}));
    EXPECT_EQ(pipe.sender().congestion().window(), 20 * kMss);
    // No duplicate was reported until later data are acknowledged: the segment was lost.
    pipe.write(kMss);
    pipe.run(milliseconds(400));
    EXPECT_EQ(pipe.sender().congestion().window(), 10 * kMss);
}

TEST(TcpTail, AProbeThatWasNotNeededChangesNothing) {
    // The acknowledgement of the last two segments is lost. The probe's acknowledgement has a
    // D-SACK.
    TcpPipe pipe(lossy_config(true, true), milliseconds(5));
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

// Timeouts.

TEST(TcpTail, ATimeoutInRecoveryReducesNoFurther) {
    SacksByHand bench(lossy_config(false, false));
    bench.sack(0, 1, 4);
    EXPECT_EQ(bench.sender.congestion().threshold(), 10 * kMss);
    bench.timer();
    EXPECT_EQ(bench.sender.counters().timeouts(), 1U);
    EXPECT_EQ(bench.sender.congestion().threshold(), 10 * kMss);
    EXPECT_EQ(bench.sent_again(), (Numbers{0, 0}));
}

TEST(TcpTail, SegmentsSentShortlyBeforeATimeoutAreNotCountedLost) {  // RFC 8985, 6.3
    for (const bool rack : {false, true}) {
        SacksByHand bench(lossy_config(rack, false), 3);
        bench.ack(1);  // RTT 10 ms; 1 and 2 are outstanding, RTO at 220 ms
        bench.now = milliseconds(215);
        bench.write(kMss);
        bench.timer();
        EXPECT_EQ(bench.now, milliseconds(220));
        // Segment 1 leaves again; 2 is counted lost; 3 may still be under way.
        EXPECT_EQ(bench.sent_again(), Numbers{1});
        EXPECT_EQ(bench.in_flight(), rack ? 2 : 1);
    }
}

TEST(TcpTail, AMistakenTimeoutIsTakenBack) {
    // A sudden queue blocks all segments for 300 ms, and the RTO expires at 210 ms. When segments
    // that were sent once are acknowledged, no further segment is repeated (RFC 5682).
    TcpPipe pipe(lossy_config(true, false), milliseconds(5));
    pipe.jitter = [&] { return std::max(milliseconds(300) - pipe.now(), Time::zero()); };
    pipe.write(10 * kMss);
    pipe.run(seconds(2));
    EXPECT_EQ(pipe.receiver().next(), 10 * kMss);
    EXPECT_EQ(pipe.sender().counters().timeouts(), 1U);
    // Sent again: the first segment, and two that its acknowledgement released before the next one.
    EXPECT_LE(pipe.sent().size(), 10U + 3U);
    EXPECT_GE(pipe.sender().congestion().window(), 20 * kMss);
    // Three segments were sent twice and give no RTT; seven took 310 ms: 310 − 300 · (7/8)⁷.
    EXPECT_NEAR(pipe.sender().smoothed_rtt().seconds(), 0.1922, 0.0001);
}

TEST(TcpTail, APeerThatDiscardsSackedSegmentsIsServedAgain) {  // RFC 2018, 8
    SacksByHand bench(lossy_config(true, false), 4);
    bench.sack(0, 2, 4);
    bench.now = milliseconds(20);
    bench.ack(2);  // and no word of 2 and 3 any more
    EXPECT_EQ(bench.in_flight(), 0);
    bench.timer();
    EXPECT_EQ(bench.sent_again().back(), 2U);
    bench.ack(3);
    bench.ack(4);
    EXPECT_EQ(bench.sender.una(), 4U * kMss);
    EXPECT_EQ(bench.sender.timer(), Time::never());
}

}  // namespace
}  // namespace daqloom::transport
