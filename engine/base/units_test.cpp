#include "base/units.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace daqloom::base {
namespace {

TEST(Time, RoundsSecondsToTheNearestPicosecond) {
    EXPECT_EQ(Time::from_seconds(1.5e-12).ps, 2);
    EXPECT_EQ(Time::from_seconds(1.4e-12).ps, 1);
    EXPECT_EQ(Time::from_seconds(-1.4e-12).ps, -1);
    EXPECT_EQ(Time::from_seconds(25e-9), nanoseconds(25));
    EXPECT_EQ(Time::from_seconds(5), seconds(5));
    EXPECT_DOUBLE_EQ(milliseconds(200).seconds(), 0.2);
}

TEST(Time, NeverComesAfterEveryInstantOfARun) {
    EXPECT_GT(Time::never(), seconds(9'000'000));
    EXPECT_LT(Time::zero(), nanoseconds(1));
}

/// A byte takes 8e12 ps·bit/s / rate: 800 ps at 10 Gb/s, 320 at 25, 80 at 100, 10 at 800 Gb/s.
TEST(WireClock, IsExactWhereAByteTakesAWholeNumberOfPicoseconds) {
    for (const std::int64_t gigabits : {1, 10, 25, 40, 100, 200, 400, 800}) {
        const WireClock wire(gigabits_per_second(gigabits));
        for (const Bytes bytes : {1, 64, 84, 1538, 9038, 65'555, 1 << 20}) {
            EXPECT_EQ(wire(bytes).ps, bytes * (8'000 / gigabits)) << gigabits << " Gb/s";
        }
    }
}

/// With the exact t = bytes · 8e12 / rate: |time − t| · rate <= (1 ps + bytes · 1e-6 ps) · rate.
TEST(WireClock, IsWithinAPicosecondAndAMillionthPerByteAtAnyRate) {
    for (const std::int64_t bps : {780'000'000LL, 799'760'000LL, 1'000'001LL, 2'999'999'999LL,
                                   103'125'000'000LL, 799'999'999'999LL}) {
        const WireClock wire({bps});
        for (Bytes bytes = 1; bytes <= 65'555; bytes += bytes < 2000 ? 1 : 997) {
            const double exact = static_cast<double>(bytes) * 8e12 / static_cast<double>(bps);
            const double error = static_cast<double>(wire(bytes).ps) - exact;
            ASSERT_LE(std::abs(error), 1 + 1e-6 * static_cast<double>(bytes))
                << bytes << " B at " << bps << " b/s";
        }
    }
}

}  // namespace
}  // namespace daqloom::base
