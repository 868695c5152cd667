#include "base/ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "base/random.hpp"

namespace daqloom::base {
namespace {

template <class T>
std::vector<T> contents(const Ring<T>& ring) {
    std::vector<T> values;
    for (std::uint32_t place = 0; place < ring.size(); ++place) {
        values.push_back(ring[place]);
    }
    return values;
}

TEST(Ring, AgreesWithADequeWhileItGrowsAndWraps) {
    RandomStream random(1, "ring");
    Ring<int> ring;
    std::deque<int> expected;
    for (int i = 0; i < 20'000; ++i) {
        // Alternate long phases of growth and of shrinkage.
        const bool growing = (i / 1'000) % 2 == 0;
        if (expected.empty() || random.uniform() < (growing ? 0.7 : 0.3)) {
            ring.push(i);
            expected.push_back(i);
        } else {
            ASSERT_EQ(ring.front(), expected.front());
            ring.pop();
            expected.pop_front();
        }
        ASSERT_EQ(ring.size(), expected.size());
        ASSERT_EQ(ring.empty(), expected.empty());
        if (!expected.empty()) {
            const auto place = random.uniform_int(expected.size());
            ASSERT_EQ(ring[static_cast<std::uint32_t>(place)], expected[place]);
            ASSERT_EQ(ring.back(), expected.back());
        }
    }
}

TEST(Ring, InsertsAndErasesInTheMiddleAsADequeWould) {
    RandomStream random(2, "ring");
    Ring<int> ring;
    std::deque<int> expected;
    for (int i = 0; i < 5'000; ++i) {
        const auto place = random.uniform_int(expected.size() + 1);
        const auto offset = static_cast<std::ptrdiff_t>(place);
        switch (random.uniform_int(4)) {
            case 0:
            case 1:
                ring.insert(static_cast<std::uint32_t>(place), i);
                expected.insert(expected.begin() + offset, i);
                break;
            case 2:
                if (place < expected.size()) {
                    ring.erase(static_cast<std::uint32_t>(place));
                    expected.erase(expected.begin() + offset);
                }
                break;
            default:
                if (!expected.empty()) {
                    ring.pop();
                    expected.pop_front();
                }
                break;
        }
        if (i % 97 == 0) {
            ASSERT_EQ(contents(ring), std::vector<int>(expected.begin(), expected.end()));
        }
    }
    EXPECT_EQ(contents(ring), std::vector<int>(expected.begin(), expected.end()));
    ring.clear();
    EXPECT_TRUE(ring.empty());
}

TEST(Ring, TakesItsContentsAlongWhenItMoves) {
    Ring<int> ring;
    for (int i = 0; i < 10; ++i) {
        ring.push(i);
    }
    ring.pop();
    const Ring<int> moved = std::move(ring);
    EXPECT_EQ(contents(moved), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Ring, StaysWhereItIsUpToTheSizeReserved) {
    Ring<int> ring;
    ring.push(7);
    ring.reserve(100);
    const int* const place = &ring.front();
    for (int i = 1; i < 100; ++i) {
        ring.push(i);
    }
    EXPECT_EQ(&ring.front(), place);
    EXPECT_EQ(*place, 7);
}

}  // namespace
}  // namespace daqloom::base
