#include "softswitch/timing_wheel.hpp"

#include <gtest/gtest.h>

#include <map>

#include "base/random.hpp"

namespace daqloom::softswitch {
namespace {

using base::Time;

std::vector<std::uint32_t> due_at(TimingWheel& wheel, Time now) {
    std::vector<std::uint32_t> due;
    wheel.take_due(now, [&](std::uint32_t number) { due.push_back(number); });
    return due;
}

TEST(TimingWheel, ANumberIsDueWhenItsSlotBegins) {
    TimingWheel wheel(2, Time{1024});
    EXPECT_EQ(wheel.width(), Time{1024});
    EXPECT_EQ(TimingWheel(1, Time{1023}).width(), Time{512});
    EXPECT_EQ(TimingWheel(1, base::nanoseconds(500)).width(), Time{1 << 18});
    wheel.put(1, Time{3 * 1024 + 500});
    EXPECT_EQ(wheel.next_due(), Time{3 * 1024});
    EXPECT_TRUE(due_at(wheel, Time{3 * 1024 - 1}).empty());
    EXPECT_EQ(due_at(wheel, Time{3 * 1024}), (std::vector<std::uint32_t>{1}));
    EXPECT_TRUE(wheel.empty());
    EXPECT_EQ(wheel.next_due(), Time::never());
}

/// For any pauses between calls, each number is due at the first call after its slot begins, and
/// `next_due` is never later than a number's time.
TEST(TimingWheel, IsAsAMapOfTimes) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
        base::RandomStream random(seed, "wheel");
        constexpr std::uint32_t numbers = 200;
        TimingWheel wheel(numbers, Time{64});
        std::map<std::uint32_t, std::int64_t> expected;  // slot of each that waits
        std::int64_t now = 0;
        for (int step = 0; step < 2'000; ++step) {
            const auto number = static_cast<std::uint32_t>(random.uniform_int(numbers));
            const auto ahead = static_cast<std::int64_t>(
                64 + random.uniform_int(random.uniform() < 0.1 ? 1'000'000 : 2'000));
            if (!expected.contains(number)) {
                wheel.put(number, Time{now + ahead});
                expected[number] = (now + ahead) / 64;
            }
            now += static_cast<std::int64_t>(
                random.uniform_int(random.uniform() < 0.02 ? 600'000 : 300));
            for (const std::uint32_t due : due_at(wheel, Time{now})) {
                ASSERT_LE(expected.at(due), now / 64);
                expected.erase(due);
            }
            for (const auto& [waits, slot] : expected) {
                ASSERT_GT(slot, now / 64) << waits;
                ASSERT_LE(wheel.next_due(), Time{slot * 64});
            }
        }
    }
}

}  // namespace
}  // namespace daqloom::softswitch
