#include "protocol/data/byte_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;

TEST(ByteRing, HandsOutPiecesFromFrontToBackAndAround) {
    ByteRing ring(100);
    EXPECT_EQ(ring.push(0, 40), 0);
    EXPECT_EQ(ring.push(1, 50), 40);
    EXPECT_EQ(ring.push(2, 11), std::nullopt);  // 10 are left
    EXPECT_TRUE(ring.free(0));
    EXPECT_EQ(ring.push(2, 11), 0);  // the rest of 10 is left out
    EXPECT_EQ(ring.push(3, 29), 11);
    EXPECT_EQ(ring.push(4, 1), std::nullopt);  // up to piece 1
    EXPECT_EQ(ring.held(), 90);
}

TEST(ByteRing, UsesSpaceAgainInTheOrderInWhichItWasHandedOut) {
    ByteRing ring(30);
    ring.push(5, 10);
    ring.push(6, 10);
    ring.push(9, 10);
    EXPECT_TRUE(ring.free(6));
    EXPECT_EQ(ring.push(10, 10), std::nullopt);  // 5 is before it
    EXPECT_TRUE(ring.free(5));
    EXPECT_EQ(ring.push(10, 20), 0);
    EXPECT_FALSE(ring.free(6));
    EXPECT_FALSE(ring.free(7));
    EXPECT_FALSE(ring.free(11));
}

TEST(ByteRing, TakesAPieceOfItsFullSize) {
    ByteRing ring(7);
    EXPECT_EQ(ring.push(0, 8), std::nullopt);
    for (std::uint64_t tag = 0; tag < 3; ++tag) {
        EXPECT_EQ(ring.push(tag, 7), 0);
        EXPECT_EQ(ring.push(tag + 1, 1), std::nullopt);
        EXPECT_TRUE(ring.free(tag));
    }
}

TEST(ByteRing, NeverHandsOutAByteTwice) {
    base::RandomStream random(1, "pieces");
    ByteRing ring(1'000);
    std::map<std::uint64_t, std::pair<Bytes, Bytes>> held;
    std::vector<bool> taken(1'000, false);
    std::uint64_t tag = 0;
    std::uint64_t pushed = 0;
    for (int step = 0; step < 20'000; ++step) {
        if (random.uniform_int(2) == 0) {
            const auto bytes = static_cast<Bytes>(1 + random.uniform_int(200));
            const auto start = ring.push(tag, bytes);
            if (!start) {
                continue;
            }
            ++pushed;
            ASSERT_GE(*start, 0);
            ASSERT_LE(*start + bytes, 1'000);
            for (Bytes i = *start; i < *start + bytes; ++i) {
                ASSERT_FALSE(taken[static_cast<std::size_t>(i)]);
                taken[static_cast<std::size_t>(i)] = true;
            }
            held[tag++] = {*start, bytes};
        } else if (!held.empty()) {
            const auto piece = std::next(
                held.begin(), static_cast<std::ptrdiff_t>(
                                  random.uniform_int(std::min<std::size_t>(3, held.size()))));
            ASSERT_TRUE(ring.free(piece->first));
            for (Bytes i = 0; i < piece->second.second; ++i) {
                taken[static_cast<std::size_t>(piece->second.first + i)] = false;
            }
            held.erase(piece);
        }
    }
    EXPECT_GT(pushed, 5'000U);
}

}  // namespace
}  // namespace daqloom::protocol
