#include "base/pool.hpp"

#include <gtest/gtest.h>

namespace daqloom::base {
namespace {

TEST(Pool, TakesTheLatestFreeSlotAndANewOneOnlyWhereNoneIsFree) {
    Pool<int> pool;
    for (int value = 0; value < 5; ++value) {
        EXPECT_EQ(pool.put(10 * value), static_cast<std::uint32_t>(value));
    }
    EXPECT_EQ(pool.in_use(), 5U);
    for (const std::uint32_t slot : {1U, 4U, 0U}) {
        pool.release(slot);
    }
    EXPECT_EQ(pool.in_use(), 2U);
    for (const std::uint32_t slot : {0U, 4U, 1U, 5U}) {
        EXPECT_EQ(pool.put(7), slot);
        EXPECT_EQ(pool[slot], 7);
    }
    EXPECT_EQ(pool.in_use(), 6U);
    EXPECT_EQ(pool[2], 20);
    EXPECT_EQ(pool[3], 30);
}

TEST(Pool, ReleasesAllThatWasEverInUse) {
    Pool<int> pool;
    for (int round = 1; round <= 100; ++round) {
        for (int i = 0; i < round; ++i) {
            pool.put(i);
        }
        EXPECT_EQ(pool.in_use(), static_cast<std::size_t>(round));
        for (std::uint32_t slot = 0; slot < static_cast<std::uint32_t>(round); ++slot) {
            pool.release(slot);
        }
        EXPECT_EQ(pool.in_use(), 0U);
    }
}

}  // namespace
}  // namespace daqloom::base
