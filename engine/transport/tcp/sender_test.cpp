// Segments that may leave, without losses.
#include "transport/tcp/sender.hpp"

#include <utility>

#include "transport/tcp/by_hand_test.hpp"

namespace daqloom::transport {
namespace {

using base::milliseconds;

TEST(TcpSender, CutsWritesIntoSegmentsUpToTheInitialWindow) {
    TcpByHand bench(plain_config());
    bench.write(2500);
    ASSERT_EQ(bench.sent.size(), 3U);
    EXPECT_EQ(bench.sent[1].begin, 1000U);
    EXPECT_EQ(bench.sent[2].length, 500);
    bench.write(100 * kMss);  // 10 segments (RFC 6928) less the 2500 bytes: seven whole ones
    EXPECT_EQ(bench.sent.size(), 3U + 7U);
    EXPECT_EQ(bench.sender.in_flight(), 9500);
}

TcpConfig static_window(int segments, base::Bytes burst = 0) {
    TcpConfig config = plain_config();
    config.congestion = CongestionControl::static_window;
    config.static_window = segments * kMss;
    config.tso_burst = burst;
    return config;
}

TEST(TcpSender, AStaticWindowIsRefilledToTheByte) {
    TcpByHand bench(static_window(3));
    bench.write(10 * kMss);
    EXPECT_EQ(bench.sender.in_flight(), 3 * kMss);
    for (std::uint64_t next = 1000; next <= 7000; next += 1000) {
        bench.ack(next);
        EXPECT_EQ(bench.sender.in_flight(), 3 * kMss);
    }
}

TEST(TcpSender, SegmentationOffloadLeavesInBurstsOfAThirdOfTheWindow) {
    TcpByHand bench(static_window(30, 65536));
    bench.write(200 * kMss);
    EXPECT_EQ(bench.sent.size(), 30U);  // nothing to wait for: all at once
    for (std::uint64_t next = 1000; next <= 9000; next += 1000) {
        bench.ack(next);
        EXPECT_EQ(bench.sent.size(), 30U);
    }
    bench.ack(10'000);  // room for 10 segments = 30 / 3
    EXPECT_EQ(bench.sent.size(), 40U);
    TcpByHand end(static_window(30, 65536));  // of a message is not held back
    end.write(32 * kMss);
    end.ack(1000);
    EXPECT_EQ(end.sent.size(), 30U);
    end.ack(2000);
    EXPECT_EQ(end.sent.size(), 32U);
}

// Growth of the window: only a window that limited the sender grows, or, in slow start, a window of
// which more than half was in use (Linux's tcp_is_cwnd_limited).

TEST(TcpSender, AWindowOfWhichMoreThanHalfIsUsedGrowsInSlowStart) {
    for (const auto& [used, window] : {std::pair{5, 10}, {6, 16}, {10, 20}}) {
        TcpByHand bench(plain_config());
        bench.write(used * kMss);
        bench.ack(static_cast<std::uint64_t>(used * kMss));
        EXPECT_EQ(bench.window(), window * kMss) << used << " segments used";
    }
}

TEST(TcpSender, AReceiverLimitsAWindowThatThenDoesNotGrow) {
    TcpConfig config = plain_config();
    config.receive_window = 4500;
    TcpByHand bench(config);
    bench.write(100 * kMss);
    EXPECT_EQ(bench.sent.size(), 4U);
    for (std::uint64_t next = 1; next <= 40; ++next) {
        bench.now += milliseconds(10);
        bench.ack(next * kMss);
        EXPECT_EQ(bench.sent.size(), 4U + next);
    }
    EXPECT_EQ(bench.window(), 10 * kMss);
}

TEST(TcpSender, StartsAnewWithTheInitialWindowAfterIdleness) {
    for (const bool restart : {true, false}) {
        TcpConfig config = plain_config();
        config.restart_after_idle = restart;
        TcpByHand bench(config);
        bench.write(70 * kMss);
        for (const auto& [at_ms, next] : {std::pair{10, 10'000U}, {20, 30'000U}, {30, 70'000U}}) {
            bench.now = milliseconds(at_ms);
            bench.ack(next);  // the last 40 fill the window: 80 now
        }
        EXPECT_EQ(bench.window(), 80 * kMss);
        // The connection is idle from 20 ms on, when the last segment left; the RTO is 210 ms.
        // Seven RTOs later the window has been halved seven times and is at its initial size.
        bench.now = milliseconds(20 + 7 * 210 + 1);
        const std::size_t before = bench.sent.size();
        bench.write(100 * kMss);
        EXPECT_EQ(bench.sent.size() - before, restart ? 10U : 80U);
    }
    TcpByHand brief(plain_config());  // idle for less than the RTO
    brief.write(10 * kMss);
    brief.now = milliseconds(10);
    brief.ack(10'000);
    brief.now = milliseconds(210);
    brief.write(100 * kMss);
    EXPECT_EQ(brief.sent.size(), 10U + 20U);
}

// A peer may send any acknowledgement.

TEST(TcpSender, IgnoresAcknowledgementsOfUnsentBytes) {
    TcpByHand bench(plain_config());
    bench.write(3 * kMss);
    for (const std::uint64_t next :
         {std::uint64_t{3001}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
        bench.ack(next);
        bench.ack(next, {{1000, 2000}});
        EXPECT_EQ(bench.sender.una(), 0U);
        EXPECT_EQ(bench.sender.in_flight(), 3 * kMss);
    }
}

TEST(TcpSender, IgnoresSackBlocksOutsideOfTheBytesInFlight) {
    TcpByHand bench(plain_config());
    bench.write(6 * kMss);
    bench.now = milliseconds(10);
    bench.ack(2000);
    bench.ack(2000, {{0, 1000}, {1000, 3000}, {5000, 6001}});
    bench.ack(2000, {{4000, 3000}, {3000, 3000}, {2000, 3000}});
    EXPECT_EQ(bench.sender.in_flight(), 4 * kMss);
    bench.ack(2000, {{3500, 4500}});  // not on the borders of segments, but true
    EXPECT_EQ(bench.sender.in_flight(), 3 * kMss);
}

}  // namespace
}  // namespace daqloom::transport
