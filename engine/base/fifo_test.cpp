#include "base/fifo.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.hpp"

namespace daqloom::base {
namespace {

TEST(Fifo, GivesBackWhatADequeWouldWhileItGrowsAndWraps) {
    RandomStream random(1, "fifo");
    Fifo<int> fifo;
    std::deque<int> expected;
    for (int i = 0; i < 20'000; ++i) {
        // Alternate long phases of growth and of shrinkage.
        const bool growing = (i / 1'000) % 2 == 0;
        if (expected.empty() || random.uniform() < (growing ? 0.7 : 0.3)) {
            fifo.push(i);
            expected.push_back(i);
        } else {
            ASSERT_EQ(fifo.front(), expected.front());
            ASSERT_EQ(fifo.pop(), expected.front());
            expected.pop_front();
        }
        ASSERT_EQ(fifo.size(), expected.size());
        ASSERT_EQ(fifo.empty(), expected.empty());
    }
}

TEST(Fifo, KeepsItsContentsWhenRoomIsReserved) {
    Fifo<int> fifo;
    fifo.reserve(3);
    for (int i = 0; i < 3; ++i) {
        fifo.push(i);
    }
    fifo.pop();
    fifo.push(3);
    fifo.reserve(100);
    fifo.reserve(1);
    EXPECT_EQ(fifo.pop(), 1);
    EXPECT_EQ(fifo.pop(), 2);
    EXPECT_EQ(fifo.pop(), 3);
    EXPECT_TRUE(fifo.empty());
}

}  // namespace
}  // namespace daqloom::base
