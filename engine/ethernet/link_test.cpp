#include "ethernet/link.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace daqloom::ethernet {
namespace {

using base::Bytes;
using base::gigabits_per_second;
using base::microseconds;
using base::nanoseconds;
using base::Time;

void queue(Link& link, Bytes bytes, Time now, std::uint16_t payload = 1) {
    Frame& frame = link.append(bytes, now);
    frame.bytes = static_cast<std::uint16_t>(bytes);
    frame.payload = payload;
}

/// Takes everything off a link; the times of arrival.
std::vector<Time> arrivals(Link& link) {
    std::vector<Time> times;
    while (!link.empty()) {
        times.push_back(link.next_delivery());
        link.deliver();
    }
    return times;
}

/// 10 Gb/s: 0.8 ns a byte. 1518 B and 20 B of preamble and gap take 1230.4 ns.
constexpr LinkConfig kTenGigabit{gigabits_per_second(10), microseconds(1)};
constexpr Time kFullFrame{1'230'400};

TEST(Link, AFrameArrivesAfterItsTimeOnTheWireAndTheDelay) {
    Link link(kTenGigabit);
    queue(link, 1518, microseconds(5));
    EXPECT_EQ(link.next_delivery(), microseconds(5) + kFullFrame + microseconds(1));
    EXPECT_EQ(link.free_at(), microseconds(5) + kFullFrame);
}

TEST(Link, FramesQueuedTogetherFollowBackToBack) {
    Link link(kTenGigabit);
    std::vector<Time> expected;
    for (int k = 1; k <= 100; ++k) {
        queue(link, 1518, Time::zero());
        expected.push_back(kFullFrame * k + microseconds(1));
    }
    EXPECT_EQ(arrivals(link), expected);
}

TEST(Link, FramesOfAllLengthsShareTheWireInOrder) {
    Link link(kTenGigabit);
    // 64 + 20 = 84 B take 67.2 ns, 9018 + 20 B 7230.4 ns, 1518 + 20 B 1230.4 ns.
    for (const Bytes bytes : {64, 9018, 1518}) {
        queue(link, bytes, Time::zero());
    }
    const Time delay = microseconds(1);
    EXPECT_EQ(arrivals(link),
              (std::vector<Time>{Time{67'200} + delay, Time{67'200 + 7'230'400} + delay,
                                 Time{67'200 + 7'230'400 + 1'230'400} + delay}));
}

TEST(Link, AFrameThatFindsTheWireIdleStartsAtOnce) {
    Link link(kTenGigabit);
    queue(link, 1518, Time::zero());
    queue(link, 1518, microseconds(3));  // the first has left at 1.2304 us
    EXPECT_EQ(arrivals(link), (std::vector<Time>{kFullFrame + microseconds(1),
                                                 microseconds(3) + kFullFrame + microseconds(1)}));
}

/// D/D/1: one frame of service time s each period T. T >= s: nobody waits. T < s: the k-th frame
/// (from 0) waits k·(s − T).
TEST(Link, PeriodicFramesWaitAsInTheQueueDD1) {
    for (const Time period : {kFullFrame, kFullFrame + nanoseconds(1), kFullFrame * 2}) {
        Link link(kTenGigabit);
        for (int k = 0; k < 50; ++k) {
            queue(link, 1518, period * k);
        }
        const auto at = arrivals(link);
        for (int k = 0; k < 50; ++k) {
            EXPECT_EQ(at[static_cast<std::size_t>(k)], period * k + kFullFrame + microseconds(1));
        }
    }
    Link link(kTenGigabit);
    const Time period = kFullFrame - nanoseconds(100);
    for (int k = 0; k < 50; ++k) {
        queue(link, 1518, period * k);
    }
    const auto at = arrivals(link);
    for (int k = 0; k < 50; ++k) {
        EXPECT_EQ(at[static_cast<std::size_t>(k)],
                  period * k + nanoseconds(100) * k + kFullFrame + microseconds(1));
    }
}

/// At 1 Gb/s a full frame takes 12.304 us; each still passes the wire at 10 Gb/s.
TEST(Link, ARateLimitSpacesFramesAndDoesNotStretchThem) {
    Link link({gigabits_per_second(10), microseconds(1), gigabits_per_second(1)});
    for (int k = 0; k < 10; ++k) {
        queue(link, 1518, Time::zero());
    }
    const auto at = arrivals(link);
    for (int k = 0; k < 10; ++k) {
        EXPECT_EQ(at[static_cast<std::size_t>(k)],
                  kFullFrame * 10 * k + kFullFrame + microseconds(1));
    }
}

TEST(Link, ARateLimitAboveTheLineRateLimitsNothing) {
    Link limited({gigabits_per_second(10), microseconds(1), gigabits_per_second(40)});
    Link plain(kTenGigabit);
    for (int k = 0; k < 10; ++k) {
        queue(limited, 1518, Time::zero());
        queue(plain, 1518, Time::zero());
    }
    EXPECT_EQ(arrivals(limited), arrivals(plain));
}

TEST(Link, ReportsEveryDepartedFrameOnceAndWhenItHasLeft) {
    Link link(kTenGigabit);
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
    // The first three were reported, the fourth counts as held until it is delivered.
    EXPECT_FALSE(link.deliver());
    EXPECT_FALSE(link.deliver());
    EXPECT_FALSE(link.deliver());
    EXPECT_TRUE(link.deliver());
    EXPECT_TRUE(link.empty());
}

TEST(Link, CountsWhatEnteredWhatWasDeliveredAndWhatIsInside) {
    Link link(kTenGigabit);
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
