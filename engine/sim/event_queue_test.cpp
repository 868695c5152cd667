// Both event queues, the radix wheel and the calendar in front of it: every sequence of operations
// is compared with a heap of (time, insertion number), which has a total order.

#include "sim/event_queue.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>

namespace daqloom::sim {
namespace {

using base::Time;

constexpr std::int64_t kFarthest = std::numeric_limits<std::int64_t>::max();

/// The queue under test and the reference side by side; `index` is the number of the insertion.
template <class Queue>
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
    Queue queue_;
    std::priority_queue<std::tuple<std::int64_t, std::uint32_t>,
                        std::vector<std::tuple<std::int64_t, std::uint32_t>>, std::greater<>>
        reference_;
    std::uint32_t inserted_ = 0;
    std::size_t peak_ = 0;
};

using Random = std::mt19937_64;

/// Keeps about `pending` events and moves `steps` of them, with increments from `increment`.
template <class Queue>
void hold(std::size_t pending, int steps, const std::function<std::int64_t(Random&)>& increment) {
    Pair<Queue> pair;
    Random random(pending);
    for (std::size_t i = 0; i < pending; ++i) {
        pair.push(increment(random));
    }
    for (int i = 0; i < steps && !testing::Test::HasFatalFailure(); ++i) {
        pair.pop();
        // In some steps two events or none, so that the size varies and the front runs empty.
        for (auto n = pair.size() < pending ? random() % 3 : random() % 2; n > 0; --n) {
            pair.push(pair.now() + std::min(increment(random), kFarthest - pair.now()));
        }
        if (pair.size() == 0) {
            pair.push(pair.now());
        }
    }
    pair.drain();
}

template <class Queue>
class AnyEventQueue : public testing::Test {};

struct Names {
    template <class Queue>
    static std::string GetName(int /*index*/) {
        return std::is_same_v<Queue, RadixWheel> ? "Wheel" : "Calendar";
    }
};
using Queues = testing::Types<RadixWheel, EventQueue>;
TYPED_TEST_SUITE(AnyEventQueue, Queues, Names);

TYPED_TEST(AnyEventQueue, AnEventPushedAloneComesBack) {
    for (int bit = 0; bit <= 62; ++bit) {
        TypeParam queue;
        const Event event{Time{std::int64_t{1} << bit}, 3, 4};
        queue.push(event);
        EXPECT_EQ(queue.next_time(), event.at);
        EXPECT_EQ(queue.pop(), event);
        EXPECT_TRUE(queue.empty());
    }
}

/// Time steps cover many orders of magnitude, so that some next events wait in the wheel.
TEST(EventQueue, TheUpcomingEventIsTheOnePoppedNextUnlessAnEarlierOneIsPushed) {
    EventQueue queue;
    std::mt19937_64 random(7);
    int known = 0;
    for (std::uint32_t i = 0; i < 20'000; ++i) {
        queue.push(
            {queue.now() + Time{static_cast<std::int64_t>(random() % (1ULL << (i % 40)))}, 0, i});
        const Event* upcoming = queue.upcoming();
        if (upcoming != nullptr) {
            const Event expected = *upcoming;
            ASSERT_EQ(queue.next_time(), expected.at);
            ASSERT_EQ(queue.pop(), expected);
            ++known;
        } else {
            queue.pop();
        }
        if (i % 3 != 0) {
            queue.push({queue.now() + Time{1'000'000}, 1, i});
        }
    }
    EXPECT_GT(known, 10'000);
}

TYPED_TEST(AnyEventQueue, EqualTimesLeaveInOrderOfInsertion) {
    Pair<TypeParam> pair;
    for (const std::int64_t at : {0, 1, 63, 64, 4096, 262144, 1 << 30}) {
        for (int i = 0; i < 100; ++i) {
            pair.push(at);
        }
    }
    pair.drain();
}

TYPED_TEST(AnyEventQueue, AnEventPushedForTheCurrentTimeLeavesAfterItsEquals) {
    Pair<TypeParam> pair;
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

/// The start of a run: all nodes begin at one time and continue at one time. A walk over equal
/// times for each push would take minutes.
TYPED_TEST(AnyEventQueue, ManyEventsForTheCurrentTimeTakeNoWalk) {
    constexpr std::uint32_t kMany = 300'000;
    TypeParam queue;
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

TYPED_TEST(AnyEventQueue, EarlierEventsOvertakeACrowdedFront) {
    Pair<TypeParam> pair;
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

TYPED_TEST(AnyEventQueue, DescendingInsertionIsSorted) {
    Pair<TypeParam> pair;
    for (std::int64_t at = 5000; at >= 0; --at) {
        pair.push(at * 37);
    }
    pair.drain();
}

TYPED_TEST(AnyEventQueue, PushesBeforeTheEarliestEventAfterLookingAtIt) {
    TypeParam queue;
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

TYPED_TEST(AnyEventQueue, KeepsOrderWhenDense) {
    for (const std::size_t pending : {1U, 2U, 9U, 200U, 5000U}) {
        hold<TypeParam>(pending, 30'000,
                        [](Random& r) { return static_cast<std::int64_t>(r() % 4); });
        hold<TypeParam>(pending, 30'000,
                        [](Random& r) { return static_cast<std::int64_t>(r() % 1000); });
    }
}

TYPED_TEST(AnyEventQueue, KeepsOrderWithPacketsAndTimers) {
    for (const std::size_t pending : {10U, 200U, 20'000U}) {
        hold<TypeParam>(pending, 60'000, [](Random& r) {
            const auto packet = static_cast<std::int64_t>(20'000 + r() % 2'000'000);
            return r() % 50 == 0 ? packet + 200'000'000'000 : packet;
        });
    }
}

/// The spacing of events changes a thousandfold and back: a calendar must adapt with events in it
/// and beyond its horizon.
TYPED_TEST(AnyEventQueue, KeepsOrderWhenTheSpacingChanges) {
    Pair<TypeParam> pair;
    Random random(1);
    for (const std::int64_t spacing :
         {100, 100'000, 100'000'000, 1'000, 1, 10'000'000, 100, 1'000'000'000}) {
        for (int i = 0; i < 3'000; ++i) {
            pair.push(pair.now() + static_cast<std::int64_t>(random() % 1'000) * spacing);
        }
        for (int i = 0; i < 40'000 && !testing::Test::HasFatalFailure(); ++i) {
            pair.pop();
            const auto step = static_cast<std::int64_t>(random() % 1'000) * spacing;
            pair.push(pair.now() + (random() % 20 == 0 ? step * 5'000 : step));
        }
        for (int i = 0; i < 2'900; ++i) {
            pair.pop();
        }
    }
    pair.drain();
}

/// Dense events shorten the days of a calendar queue, sparse ones lengthen them. A change of the
/// length on any day must keep events on the last day before the horizon there.
TYPED_TEST(AnyEventQueue, KeepsOrderWhenTheHorizonEndsOnAnyDay) {
    constexpr std::int64_t kDay = 256;
    constexpr std::int64_t kApart = 129 * kDay;
    for (std::int64_t shift = 0; shift < 4; ++shift) {
        Pair<TypeParam> pair;
        Random random(1);
        for (int i = 0; i < 10; ++i) {
            pair.push(static_cast<std::int64_t>(random() % 100));
        }
        for (int i = 0; i < 2 * 16384; ++i) {
            pair.pop();
            pair.push(pair.now() + static_cast<std::int64_t>(random() % 100));
        }
        pair.drain();
        const std::int64_t begin = (pair.now() / kDay + 10 + shift) * kDay;
        for (std::int64_t i = 0; i < 128; ++i) {
            pair.push(begin + i * kApart);
        }
        for (int i = 0; i < 60'000 && !testing::Test::HasFatalFailure(); ++i) {
            pair.pop();
            pair.push(pair.now() + 16383 * kDay + kApart);
        }
    }
}

TYPED_TEST(AnyEventQueue, KeepsOrderWithIncrementsOfEveryMagnitude) {
    for (const std::size_t pending : {3U, 100U, 3000U}) {
        hold<TypeParam>(pending, 30'000,
                        [](Random& r) { return static_cast<std::int64_t>(r() >> (2 + r() % 62)); });
        hold<TypeParam>(pending, 30'000, [](Random& r) { return std::int64_t{1} << (r() % 58); });
        hold<TypeParam>(pending, 30'000,
                        [](Random& r) { return (std::int64_t{1} << (r() % 58)) - 1; });
    }
}

TYPED_TEST(AnyEventQueue, RemembersThePeakOfItsSize) {
    TypeParam queue;
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

TYPED_TEST(AnyEventQueue, StartsAnewAfterClear) {
    TypeParam queue;
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
