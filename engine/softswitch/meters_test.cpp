#include "softswitch/meters.hpp"

#include <gtest/gtest.h>

namespace daqloom::softswitch {
namespace {

using base::Time;
using enum MeterConfig::Unit;

constexpr MeterIndex kMeter{1};

Meters meters_with(const MeterConfig& config) {
    Meters meters(2);
    meters.set(kMeter, config);
    return meters;
}

/// Number of frames that pass, out of `frames` frames sent every `every`.
std::uint64_t passing(Meters& meters, int frames, std::uint32_t bytes, Time every,
                      Time first = {}) {
    std::uint64_t passed = 0;
    for (int i = 0; i < frames; ++i) {
        passed += meters.passes(kMeter, bytes, first + every * i) ? 1 : 0;
    }
    return passed;
}

TEST(Meters, DropTheExcessOverTheirRate) {
    // 1000 B take 8 us at 1 Gb/s. Every 2 us is four times the rate: one frame in four passes.
    for (const std::uint64_t excess : {1U, 4U}) {
        Meters meters = meters_with({.unit = bits, .per_second = 1'000'000'000});
        const Time every = base::microseconds(8) / static_cast<std::int64_t>(excess);
        EXPECT_EQ(passing(meters, 1000, 1000, every), 1000 / excess);
        EXPECT_EQ(meters.counters(kMeter).packets, 1000U);
        EXPECT_EQ(meters.counters(kMeter).bytes, 1'000'000U);
        EXPECT_EQ(meters.counters(kMeter).dropped, 1000 - 1000 / excess);
        EXPECT_EQ(meters.counters(kMeter).dropped_bytes, 1'000'000 - 1'000'000 / excess);
    }
}

TEST(Meters, ABurstPassesAtOnceAndAgainAfterAPause) {
    // Eleven packets pass together, with a burst of ten; at 1000/s ten more pass after 10 ms.
    Meters meters = meters_with({.unit = packets, .per_second = 1000, .burst = 10});
    EXPECT_EQ(passing(meters, 50, 9000, {}), 11U);
    EXPECT_EQ(passing(meters, 50, 9000, {}, base::milliseconds(10)), 10U);
    EXPECT_EQ(passing(meters, 50, 9000, {}, base::seconds(10)), 11U);
}

TEST(Meters, ASetMeterCountsAnew) {
    Meters meters = meters_with({.unit = packets, .per_second = 1});
    EXPECT_EQ(passing(meters, 2, 100, {}), 1U);
    meters.set(kMeter, {.unit = packets, .per_second = 0});  // the slowest that there is
    EXPECT_EQ(meters.counters(kMeter).packets, 0U);
    EXPECT_EQ(passing(meters, 2, 100, {}), 1U);
}

TEST(Meters, TheLongestFramesAndBurstsHaveTimes) {
    Meters meters = meters_with({.unit = bits, .per_second = 0, .burst = ~std::uint64_t{0}});
    // A frame of 16 kB takes 128 000 s at 1 b/s: longer than the longest burst.
    EXPECT_EQ(passing(meters, 100, 16'000, base::milliseconds(1)), 1U);
}

}  // namespace
}  // namespace daqloom::softswitch
