#include "softswitch/ring_memory.hpp"

#include <gtest/gtest.h>

#include <set>

namespace daqloom::softswitch {
namespace {

TEST(RingMemory, HasAsManyChunksAsRingsCanFill) {
    RingMemory memory(10 * RingMemory::kPerChunk, 3);  // and two for each ring
    std::set<std::uint32_t> taken;
    for (int i = 0; i < 10 + 2 * 3; ++i) {
        EXPECT_TRUE(taken.insert(memory.take()).second);
    }
    EXPECT_EQ(memory.take(), RingMemory::kNone);
    EXPECT_EQ(memory.used(), 16U);
}

TEST(RingMemory, TouchesNoMoreThanWasUsedAtATime) {
    RingMemory memory(1'000'000, 100);
    EXPECT_EQ(memory.touched(), 0U);
    for (int turn = 0; turn < 100; ++turn) {
        const std::uint32_t one = memory.take();
        const std::uint32_t other = memory.take();
        memory.give_back(one);
        memory.give_back(other);
    }
    EXPECT_EQ(memory.touched(), 2 * 1024U);
    EXPECT_EQ(memory.used(), 0U);
}

}  // namespace
}  // namespace daqloom::softswitch
