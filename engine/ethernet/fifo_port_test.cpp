#include "ethernet/fifo_port.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace daqloom::ethernet {
namespace {

using base::Bytes;
using base::gigabits_per_second;
using base::microseconds;
using base::nanoseconds;
using base::Time;

void queue(FifoPort& link, Bytes bytes, Time now, std::uint16_t payload = 1) {
    Frame& frame = link.append(bytes, now);
    frame.bytes = static_cast<std::uint16_t>(bytes);
    frame.payload = payload;
}

/// Delivers all frames of a link; returns the times of their arrival.
std::vector<Time> arrivals(FifoPort& link) {
    std::vector<Time> times;
    while (!link.empty()) {
        times.push_back(link.next_delivery());
        link.deliver();
    }
    return times;
}

/// A link at 10 Gb/s, 0.8 ns per byte: 1518 B and 20 B of preamble and gap take 1230.4 ns.
constexpr LinkConfig kTenGigabit{gigabits_per_second(10), microseconds(1)};
constexpr Time kFullFrame{1'230'400};

TEST(FifoPort, FramesArriveInOrderAfterTheirTimesOnTheWireAndTheDelay) {
    FifoPort link(kTenGigabit);
    // 64 + 20 = 84 B take 67.2 ns, 9018 + 20 B 7230.4 ns, 1518 + 20 B 1230.4 ns.
    for (const Bytes bytes : {64, 9018, 1518}) {
        queue(link, bytes, Time::zero());
    }
    queue(link, 1518, microseconds(20));  // finds the wire idle
    EXPECT_EQ(link.free_at(), microseconds(20) + kFullFrame);
    const Time delay = microseconds(1);
    EXPECT_EQ(arrivals(link),
              (std::vector<Time>{Time{67'200} + delay, Time{67'200 + 7'230'400} + delay,
                                 Time{67'200 + 7'230'400 + 1'230'400} + delay,
                                 microseconds(20) + kFullFrame + delay}));
}

/// A bucket of b bytes at rate r lets b + r·t bytes leave in any time t (RFC 2697); after a pause
/// it has b tokens. With tokens for two and a half frames, two frames leave at once, the third when
/// half a frame of tokens has come in, and each further frame one frame time later. At 20 frame
/// times the last frame left 7.5 frame times ago, and the bucket is full again.
TEST(FifoPort, AShaperSendsItsBucketAtOnceAndThenKeepsTheRate) {
    FifoPort link({gigabits_per_second(10), microseconds(1), {}, false, 2 * 1538 + 769});
    std::vector<Time> expected;
    for (const Time pause : {Time::zero(), kFullFrame * 20}) {
        for (int k = 0; k < 10; ++k) {
            queue(link, 1518, pause);
            const Time late = kFullFrame * (k - 2) + kFullFrame / 2;
            expected.push_back(pause + (k < 2 ? Time::zero() : late) + microseconds(1));
        }
    }
    EXPECT_EQ(arrivals(link), expected);
    EXPECT_EQ(link.alone(1518), Time::zero());
}

/// A bucket smaller than a frame: the frame leaves when its last tokens have come.
TEST(FifoPort, AShapersFrameWaitsForMissingTokens) {
    FifoPort link({gigabits_per_second(10), Time::zero(), {}, false, 1000});
    queue(link, 1518, microseconds(5));
    const Time rest = nanoseconds(538 * 8 / 10) + Time{400};  // 538 B at 0.8 ns
    EXPECT_EQ(link.next_delivery(), microseconds(5) + rest);
    EXPECT_EQ(link.alone(1518), rest);
}

/// D/D/1 queue: one frame of service time s in each period T. For T >= s no frame waits; for T < s
/// frame k (from 0) waits k·(s − T). For T = 0, frames queued together follow back to back.
TEST(FifoPort, PeriodicFramesWaitAsInTheQueueDD1) {
    for (const Time period : {Time::zero(), kFullFrame - nanoseconds(100), kFullFrame,
                              kFullFrame + nanoseconds(1), kFullFrame * 2}) {
        FifoPort link(kTenGigabit);
        for (int k = 0; k < 50; ++k) {
            queue(link, 1518, period * k);
        }
        const auto at = arrivals(link);
        const Time wait = std::max(kFullFrame - period, Time::zero());  // more with each frame
        for (int k = 0; k < 50; ++k) {
            EXPECT_EQ(at[static_cast<std::size_t>(k)],
                      period * k + wait * k + kFullFrame + microseconds(1));
        }
    }
}

/// A full frame takes 1.2304 us at 10 Gb/s, and twelve times as long at a twelfth of this rate.
TEST(FifoPort, ANewRateIsThatOfFramesQueuedFromThenOn) {
    FifoPort link(kTenGigabit);
    queue(link, 1518, Time::zero());
    link.set_rate({10'000'000'000 / 12});
    queue(link, 1518, Time::zero());
    EXPECT_EQ(arrivals(link),
              (std::vector<Time>{kFullFrame + microseconds(1), kFullFrame * 13 + microseconds(1)}));
}

TEST(FifoPort, ReportsEveryDepartedFrameOnceAndWhenItHasLeft) {
    FifoPort link(kTenGigabit);
    for (int k = 0; k < 4; ++k) {
        queue(link, 1518, Time::zero());
    }
    const auto released_by = [&link](Time now) {
        int released = 0;
        link.release_departed(now, [&](const Frame& left) {
            EXPECT_EQ(left.bytes, 1518);
            ++released;
        });
        return released;
    };
    EXPECT_EQ(released_by(kFullFrame - Time{1}), 0);
    EXPECT_EQ(released_by(kFullFrame), 1);
    EXPECT_EQ(released_by(kFullFrame), 0);
    EXPECT_EQ(released_by(kFullFrame * 3), 2);
    // The first three frames were released; the fourth counts as buffered until it is delivered.
    EXPECT_FALSE(link.deliver());
    EXPECT_FALSE(link.deliver());
    EXPECT_FALSE(link.deliver());
    EXPECT_TRUE(link.deliver());
    EXPECT_TRUE(link.empty());
}

TEST(FifoPort, CountsEnteredDeliveredAndQueuedFrames) {
    FifoPort link(kTenGigabit);
    queue(link, 1518, Time::zero());
    queue(link, 70, Time::zero(), 0);
    queue(link, 1000, Time::zero());
    link.deliver();
    link.deliver();
    EXPECT_EQ(link.counters().frames, 2U);
    EXPECT_EQ(link.counters().ack_frames, 1U);
    EXPECT_EQ(link.counters().frame_bytes, 1588);
    EXPECT_EQ(link.counters().wire_bytes(), 1588 + 2 * 20);
    EXPECT_EQ(link.bytes_inside(), 1000);
}

}  // namespace
}  // namespace daqloom::ethernet
