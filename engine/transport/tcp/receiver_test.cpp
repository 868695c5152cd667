#include "transport/tcp/receiver.hpp"

#include "ethernet/frame.hpp"
#include "transport/tcp/by_hand_test.hpp"
#include "transport/tcp/stream_offset.hpp"

namespace daqloom::transport {
namespace {

using base::Bytes;
using base::milliseconds;
using base::Time;
using Reaction = TcpReceiver::Reaction;

struct Receiver {
    Receiver() {
        config.mss = kMss;
        config.quick_acks = false;
    }

    Reaction take(std::uint64_t seq, Bytes length = kMss, bool marked = false) {
        const Reaction reaction = tcp.on_segment(seq, length, marked, now, config);
        if (reaction == Reaction::acknowledge) {
            duplicate = tcp.duplicate();
            tcp.on_acknowledged();
        }
        return reaction;
    }
    [[nodiscard]] std::vector<StreamRange> blocks(std::uint32_t limit = 3) const {
        const SackBlocks sack = tcp.sack_blocks(limit);
        return {sack.blocks.begin(), sack.blocks.begin() + sack.count};
    }

    TcpConfig config;
    TcpReceiver tcp;
    Time now;
    bool duplicate = false;
};

TEST(TcpReceiver, AcknowledgesEverySecondSegmentAtOnce) {
    Receiver receiver;
    EXPECT_EQ(receiver.take(0), Reaction::none);
    EXPECT_EQ(receiver.take(1000), Reaction::acknowledge);
    EXPECT_EQ(receiver.take(2000), Reaction::none);
    EXPECT_EQ(receiver.take(3000), Reaction::acknowledge);
    EXPECT_EQ(receiver.tcp.next(), 4000U);
    // More than one MSS has arrived, in segments of any size, as in Linux.
    EXPECT_EQ(receiver.take(4000, 500), Reaction::none);
    EXPECT_EQ(receiver.take(4500, 500), Reaction::none);
    EXPECT_EQ(receiver.take(5000, 1), Reaction::acknowledge);
}

TEST(TcpReceiver, AcknowledgesALoneSegmentAfter40MillisecondsFromItsArrival) {
    Receiver receiver;
    EXPECT_EQ(receiver.tcp.ack_due(), Time::never());
    receiver.now = milliseconds(7);
    receiver.take(0, 100);
    EXPECT_EQ(receiver.tcp.ack_due(), milliseconds(47));
    receiver.now = milliseconds(20);
    receiver.take(100, 100);  // the first one is what the sender waits for
    EXPECT_EQ(receiver.tcp.ack_due(), milliseconds(47));
    receiver.tcp.on_acknowledged();
    EXPECT_EQ(receiver.tcp.ack_due(), Time::never());
}

TEST(TcpReceiver, AcknowledgesOutOfOrderSegmentsAtOnce) {
    Receiver receiver;
    EXPECT_EQ(receiver.take(1000), Reaction::acknowledge);
    EXPECT_EQ(receiver.tcp.next(), 0U);
    EXPECT_EQ(receiver.blocks(), (std::vector<StreamRange>{{1000, 2000}}));
    EXPECT_EQ(receiver.take(0), Reaction::acknowledge);  // and what fills a gap (RFC 5681, 4.2)
    EXPECT_EQ(receiver.tcp.next(), 2000U);
    EXPECT_FALSE(receiver.tcp.has_gap());
    EXPECT_EQ(receiver.take(2000), Reaction::none);
}

TEST(TcpReceiver, ReportsTheBlockThatChangedLastFirst) {  // RFC 2018, 4
    Receiver receiver;
    receiver.take(2000);
    receiver.take(4000);
    receiver.take(6000);
    EXPECT_EQ(receiver.blocks(),
              (std::vector<StreamRange>{{6000, 7000}, {4000, 5000}, {2000, 3000}}));
    receiver.take(3000);  // joins two
    EXPECT_EQ(receiver.blocks(), (std::vector<StreamRange>{{2000, 5000}, {6000, 7000}}));
    receiver.take(8000);
    receiver.take(10'000);
    receiver.take(12'000);
    EXPECT_EQ(receiver.blocks(3),
              (std::vector<StreamRange>{{12'000, 13'000}, {10'000, 11'000}, {8000, 9000}}));
    EXPECT_EQ(receiver.blocks(4).back(), (StreamRange{2000, 5000}));
}

TEST(TcpReceiver, ReportsDuplicatesAndTakesTheNewPartOfASegmentThatOverlaps) {  // RFC 2883
    Receiver receiver;
    receiver.take(0);
    receiver.take(0);
    EXPECT_TRUE(receiver.duplicate);
    receiver.take(3000);
    EXPECT_FALSE(receiver.duplicate);
    receiver.take(3000);
    EXPECT_TRUE(receiver.duplicate);
    EXPECT_EQ(receiver.blocks(), (std::vector<StreamRange>{{3000, 4000}}));
    receiver.take(500);
    EXPECT_EQ(receiver.tcp.next(), 1500U);
    EXPECT_FALSE(receiver.duplicate);
}

TEST(TcpReceiver, RefusesSegmentsBeyondItsWindow) {
    Receiver receiver;
    receiver.config.receive_window = 10 * kMss;
    EXPECT_EQ(receiver.take(9001), Reaction::acknowledge);
    EXPECT_FALSE(receiver.tcp.has_gap());
    receiver.take(9000);
    EXPECT_TRUE(receiver.tcp.has_gap());
    // Offsets before the start of the stream, which unwrap returns for a random sequence number.
    EXPECT_EQ(receiver.take(unwrap(0xffff'ff00, 0)), Reaction::acknowledge);
    EXPECT_EQ(receiver.tcp.next(), 0U);
    EXPECT_EQ(receiver.blocks(), (std::vector<StreamRange>{{9000, 10'000}}));
}

// DCTCP (RFC 8257, 3.2): the echo changes at the exact segment at which marking changes.

TEST(TcpReceiver, AcknowledgesBeforeTheSegmentAtWhichMarkingChanges) {
    Receiver receiver;
    receiver.config.congestion = CongestionControl::dctcp;
    EXPECT_EQ(receiver.take(0), Reaction::none);
    receiver.now = milliseconds(1);
    EXPECT_EQ(receiver.take(1000, kMss, true), Reaction::acknowledge_before_and_delay);
    EXPECT_EQ(receiver.tcp.previous(), 1000U);  // acknowledged without echo …
    EXPECT_TRUE(receiver.tcp.marked());         // … the rest will be with it
    EXPECT_EQ(receiver.tcp.ack_due(), milliseconds(41));
    EXPECT_EQ(receiver.take(2000, kMss, true), Reaction::acknowledge);
    // No segment is unacknowledged when marking ends, so no separate acknowledgement is necessary.
    EXPECT_EQ(receiver.take(3000), Reaction::none);
    EXPECT_FALSE(receiver.tcp.marked());
    Receiver other;  // other controls echo marks only as they come
    EXPECT_EQ(other.take(0), Reaction::none);
    EXPECT_EQ(other.take(1000, kMss, true), Reaction::acknowledge);
}

// Quick acknowledgements, as Linux has them.

struct QuickReceiver : Receiver {
    QuickReceiver() { config.quick_acks = true; }

    /// Receives the next `count` segments in order; returns how many were acknowledged immediately.
    int acknowledged_of(int count, Bytes length = kMss) {
        int acknowledged = 0;
        for (int i = 0; i < count; ++i) {
            acknowledged += take(tcp.next(), length) == Reaction::acknowledge ? 1 : 0;
        }
        return acknowledged;
    }
};

TEST(TcpReceiver, AcknowledgesTheFirst16SegmentsSingly) {
    QuickReceiver receiver;
    EXPECT_EQ(receiver.acknowledged_of(16), 16);
    EXPECT_EQ(receiver.acknowledged_of(10), 5);
}

TEST(TcpReceiver, AcknowledgesSinglyAgainAfterASilenceOfMoreThanARetransmissionTimeout) {
    QuickReceiver receiver;
    receiver.acknowledged_of(16);
    receiver.now = milliseconds(210);
    receiver.tcp.watch_silence(receiver.now, milliseconds(210));
    EXPECT_EQ(receiver.acknowledged_of(2), 1);
    receiver.now = milliseconds(421);
    receiver.tcp.watch_silence(receiver.now, milliseconds(210));
    EXPECT_EQ(receiver.acknowledged_of(18), 17);
}

TEST(TcpReceiver, DelaysAcknowledgementsWhileAnswersFollowWithinTheirDelay) {
    QuickReceiver receiver;
    receiver.tcp.on_answer(receiver.now, receiver.config);  // nothing came that it could answer
    EXPECT_EQ(receiver.take(0), Reaction::acknowledge);
    receiver.now = milliseconds(40);
    receiver.tcp.on_answer(receiver.now, receiver.config);  // too late to be waited for
    EXPECT_EQ(receiver.take(1000), Reaction::acknowledge);
    receiver.now = milliseconds(79);
    receiver.tcp.on_answer(receiver.now, receiver.config);
    EXPECT_EQ(receiver.acknowledged_of(10), 5);
    EXPECT_EQ(receiver.take(12'000, 100), Reaction::none);  // the end of a message
    // No answer has come, so the end of the next message is acknowledged without delay.
    receiver.tcp.on_delay_over();
    EXPECT_EQ(receiver.take(12'100, 100), Reaction::acknowledge);
}

TEST(TcpReceiver, AcknowledgesTheEndOfAMessageThatNoAnswerIsExpectedTo) {
    QuickReceiver receiver;
    receiver.acknowledged_of(16);
    EXPECT_EQ(receiver.take(16'000, 999), Reaction::acknowledge);
    EXPECT_EQ(receiver.take(16'999, 1000), Reaction::none);
    QuickReceiver expecting;
    expecting.acknowledged_of(1);
    expecting.tcp.on_answer(expecting.now, expecting.config);
    EXPECT_EQ(expecting.acknowledged_of(4, 100), 2) << "the second of two small ones all the same";
}

TEST(TcpReceiver, AcknowledgesSinglyAfterADuplicate) {
    QuickReceiver receiver;
    receiver.acknowledged_of(16);
    receiver.tcp.on_answer(receiver.now, receiver.config);
    receiver.take(0);  // its own acknowledgement is the first of the sixteen
    EXPECT_EQ(receiver.acknowledged_of(17), 16);
    // A segment received twice beyond a gap does not prove that an acknowledgement was lost.
    receiver.take(50'000);
    receiver.take(50'000);
    receiver.take(33'000, 17'000);
    EXPECT_EQ(receiver.tcp.next(), 51'000U);
    EXPECT_EQ(receiver.acknowledged_of(2), 1);
}

TEST(TcpReceiver, ReportsADuplicateBeforeTheIslandsAndWithinTheSameLimit) {  // RFC 2883
    Receiver receiver;
    for (const std::uint64_t begin : {2000U, 4000U, 6000U, 6000U}) {
        receiver.take(begin);
    }
    ASSERT_TRUE(receiver.duplicate);
    const SackBlocks sack = receiver.tcp.sack_blocks(3, {6000, 7000});
    EXPECT_EQ(std::vector(sack.blocks.begin(), sack.blocks.begin() + sack.count),
              (std::vector<StreamRange>{{6000, 7000}, {6000, 7000}, {4000, 5000}}));
}

}  // namespace
}  // namespace daqloom::transport
