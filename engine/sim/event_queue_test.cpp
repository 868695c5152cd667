// Every sequence is checked against a heap of (time, insertion number), whose order is total.
#include "sim/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <tuple>
#include <vector>

namespace daqloom::sim {
namespace {

using base::Time;

constexpr std::int64_t kFarthest = std::numeric_limits<std::int64_t>::max();

/// The queue under test and the reference side by side; `index` numbers the insertions.
class Pair {
  public:
    void push(std::int64_t at_ps) {
        queue_.push({Time{at_ps}, inserted_ * 7, inserted_});
        reference_.emplace(at_ps, inserted_);
        ++inserted_;
        peak_ = std::max(peak_, reference_.size());
    }

    void pop() {
        const auto [at_ps, index] = reference_.top();
        reference_.pop();
        if (inserted_ % 3 == 0) {
            ASSERT_EQ(queue_.next_time(), Time{at_ps});
        }
        ASSERT_EQ(queue_.pop(), (Event{Time{at_ps}, index * 7, index}));
        ASSERT_EQ(queue_.now(), Time{at_ps});
        ASSERT_EQ(queue_.size(), reference_.size());
        ASSERT_EQ(queue_.peak_size(), peak_);
    }

    void drain() {
        while (!reference_.empty()) {
            pop();
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
        ASSERT_TRUE(queue_.empty());
    }

    [[nodiscard]] std::int64_t now() const { return queue_.now().ps; }
    [[nodiscard]] std::size_t size() const { return reference_.size(); }

  private:
    EventQueue queue_;
    std::priority_queue<std::tuple<std::int64_t, std::uint32_t>,
                        std::vector<std::tuple<std::int64_t, std::uint32_t>>, std::greater<>>
        reference_;
    std::uint32_t inserted_ = 0;
    std::size_t peak_ = 0;
};

using Random = std::mt19937_64;

/// Keeps about `pending` events and moves `steps` of them, with increments from `increment`.
void hold(std::size_t pending, int steps, const std::function<std::int64_t(Random&)>& increment) {
    Pair pair;
    Random random(pending);
    for (std::size_t i = 0; i < pending; ++i) {
        pair.push(increment(random));
    }
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
        pair.pop();
        // Sometimes two or none, so that the size wanders and the front runs empty.
        for (auto n = pair.size() < pending ? random() % 3 : random() % 2; n > 0; --n) {
            pair.push(pair.now() + std::min(increment(random), kFarthest - pair.now()));
        }
        if (pair.size() == 0) {
            pair.push(pair.now());
        }
    }
    pair.drain();
}

TEST(EventQueue, AnEventPushedAloneComesBack) {
    for (int bit = 0; bit <= 62; ++bit) {
        EventQueue queue;
        const Event event{Time{std::int64_t{1} << bit}, 3, 4};
        queue.push(event);
        EXPECT_EQ(queue.next_time(), event.at);
        EXPECT_EQ(queue.pop(), event);
        EXPECT_TRUE(queue.empty());
    }
}

TEST(EventQueue, EqualTimesLeaveInOrderOfInsertion) {
    Pair pair;
    for (const std::int64_t at : {0, 1, 63, 64, 4096, 262144, 1 << 30}) {
        for (int i = 0; i < 100; ++i) {
            pair.push(at);
        }
    }
    pair.drain();
}

TEST(EventQueue, AnEventPushedForTheCurrentTimeLeavesAfterItsEquals) {
    Pair pair;
    for (int i = 0; i < 20; ++i) {
        pair.push(1000);
        pair.push(1001);
    }
    for (int i = 0; i < 30; ++i) {
        pair.pop();
        pair.push(pair.now());
        pair.push(pair.now() + 1);
    }
    pair.drain();
}

// A start of a run: everybody begins at once and does something else at once. A walk over the
// equals for each push would take minutes.
TEST(EventQueue, ManyEventsForTheCurrentTimeTakeNoWalk) {
    constexpr std::uint32_t kMany = 300'000;
    EventQueue queue;
    for (std::uint32_t i = 0; i < kMany; ++i) {
        queue.push({Time{1000}, 0, i});
    }
    for (std::uint32_t i = 0; i < 2 * kMany; ++i) {
        ASSERT_EQ(queue.pop().index, i);
        if (i < kMany) {
            queue.push({Time{1000}, 0, kMany + i});
        }
    }
    EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, EarlierEventsOvertakeACrowdedFront) {
    Pair pair;
    pair.push(0);
    for (int i = 0; i < 5; ++i) {
        pair.push(1'000'000'000);
    }
    pair.push(1'000'000'001);
    pair.pop();
    pair.pop();
    pair.push(1'000'000'001);
    pair.push(1'000'000'001);
    for (int i = 0; i < 50; ++i) {
        pair.push(1'000'000'000);
    }
    pair.drain();
}

TEST(EventQueue, DescendingInsertionIsSorted) {
    Pair pair;
    for (std::int64_t at = 5000; at >= 0; --at) {
        pair.push(at * 37);
    }
    pair.drain();
}

TEST(EventQueue, PushesBeforeTheEarliestEventAfterLookingAtIt) {
    EventQueue queue;
    queue.push({Time{kFarthest}, 0, 0});
    ASSERT_EQ(queue.next_time(), Time{kFarthest});
    for (std::uint32_t i = 0; i < 100; ++i) {
        queue.push({Time{1000 - i}, 0, i});
        ASSERT_EQ(queue.next_time(), Time{1000 - i});
    }
    for (std::uint32_t i = 0; i < 100; ++i) {
        ASSERT_EQ(queue.pop().at, Time{901 + i});
    }
    EXPECT_EQ(queue.pop().at, Time{kFarthest});
}

TEST(EventQueue, KeepsOrderWhenDense) {
    for (const std::size_t pending : {1U, 2U, 9U, 200U, 5000U}) {
        hold(pending, 30'000, [](Random& r) { return static_cast<std::int64_t>(r() % 4); });
        hold(pending, 30'000, [](Random& r) { return static_cast<std::int64_t>(r() % 1000); });
    }
}

TEST(EventQueue, KeepsOrderWithPacketsAndTimers) {
    for (const std::size_t pending : {10U, 200U, 20'000U}) {
        hold(pending, 60'000, [](Random& r) {
            const auto packet = static_cast<std::int64_t>(20'000 + r() % 2'000'000);
            return r() % 50 == 0 ? packet + 200'000'000'000 : packet;
        });
    }
}

TEST(EventQueue, KeepsOrderWithIncrementsOfEveryMagnitude) {
    for (const std::size_t pending : {3U, 100U, 3000U}) {
        hold(pending, 30'000,
             [](Random& r) { return static_cast<std::int64_t>(r() >> (2 + r() % 62)); });
        hold(pending, 30'000, [](Random& r) { return std::int64_t{1} << (r() % 58); });
        hold(pending, 30'000, [](Random& r) { return (std::int64_t{1} << (r() % 58)) - 1; });
    }
}

TEST(EventQueue, RemembersThePeakOfItsSize) {
    EventQueue queue;
    queue.reserve(5000);
    for (std::int64_t round = 0; round < 3; ++round) {
        for (std::int64_t i = 0; i < 1000 * (3 - round); ++i) {
            queue.push({queue.now() + Time{i * i}, 0, 0});
        }
        while (!queue.empty()) {
            queue.pop();
        }
    }
    EXPECT_EQ(queue.peak_size(), 3000U);
}

TEST(EventQueue, StartsAnewAfterClear) {
    EventQueue queue;
    for (std::int64_t i = 0; i < 100; ++i) {
        queue.push({Time{i << 40}, 0, 0});
    }
    for (int i = 0; i < 50; ++i) {
        queue.pop();
    }
    queue.clear();
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(queue.peak_size(), 0U);
    EXPECT_EQ(queue.now(), Time::zero());
    queue.push({Time{5}, 1, 2});
    queue.push({Time{4}, 3, 4});
    EXPECT_EQ(queue.pop(), (Event{Time{4}, 3, 4}));
    EXPECT_EQ(queue.pop(), (Event{Time{5}, 1, 2}));
}

}  // namespace
}  // namespace daqloom::sim
