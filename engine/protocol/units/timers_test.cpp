#include "protocol/units/timers.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace daqloom::protocol {
namespace {

using base::Time;
using What = UnitTimer::What;

TEST(Timers, ComeInTheOrderOfTheirTimesAndThenOfTheirSetting) {
    Timers timers;
    for (const auto& [at, event] :
         {std::pair{30, 0}, {10, 1}, {20, 2}, {10, 3}, {10, 4}, {20, 5}}) {
        timers.set(Time{at}, {What::response, EventId{static_cast<std::uint64_t>(event)}});
    }
    std::vector<std::uint64_t> taken;
    while (const auto timer = timers.take(Time{20})) {
        taken.push_back(static_cast<std::uint64_t>(timer->event));
    }
    EXPECT_EQ(taken, (std::vector<std::uint64_t>{1, 3, 4, 2, 5}));
    EXPECT_EQ(timers.next(), Time{30});
}

TEST(Timers, NoneIsDueBeforeItsTimeAndNoneOfNone) {
    Timers timers(1);
    EXPECT_EQ(timers.next(), Time::never());
    EXPECT_FALSE(timers.take(Time::never()));
    timers.set(Time{5}, {What::phase});
    EXPECT_FALSE(timers.take(Time{4}));
    const auto timer = timers.take(Time{5});
    ASSERT_TRUE(timer);
    EXPECT_EQ(timer->what, What::phase);
    EXPECT_EQ(timers.next(), Time::never());
}

}  // namespace
}  // namespace daqloom::protocol
