#include "live/node/epoch/slot_clock.hpp"

#include <gtest/gtest.h>

namespace daqloom::live {
namespace {

using base::microseconds;
using base::nanoseconds;

TEST(SlotClock, CountsSlotsSince1970) {
    // 12 345 µs after 1970 lies in slot 12 of 1 ms, 345 µs after its begin.
    const SlotClock clock(base::milliseconds(1), microseconds(5'000), 12'345'000);
    EXPECT_EQ(clock.slot_at(microseconds(5'000)), 12);
    EXPECT_EQ(clock.slot_at(microseconds(5'654)), 12);
    EXPECT_EQ(clock.slot_at(microseconds(5'655)), 13);
    EXPECT_EQ(clock.begin_of(13), microseconds(5'655));
    EXPECT_EQ(clock.begin_of(15), microseconds(7'655));
}

TEST(SlotClock, OfTwoUnitsAgreesWheneverTheyBegan) {
    const base::Time slot = microseconds(7);
    const SlotClock early(slot, nanoseconds(1'000), 1'700'000'000'000'000'123);
    const SlotClock late(slot, nanoseconds(91'000), 1'700'000'000'000'090'123);
    for (const std::int64_t at : {91'000, 93'500, 99'999, 1'000'000}) {
        EXPECT_EQ(early.slot_at(nanoseconds(at)), late.slot_at(nanoseconds(at))) << at;
    }
}

}  // namespace
}  // namespace daqloom::live
