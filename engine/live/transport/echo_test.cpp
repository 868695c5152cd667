#include "live/transport/echo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <future>
#include <thread>

#include "live/memory/clock.hpp"

namespace daqloom::live {
namespace {

using base::seconds;

std::unique_ptr<Echo> end(bool begins, std::size_t bytes = 24) {
    auto made = Echo::make({.begins = begins, .bytes = bytes});
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
}

TEST(Echo, CountsEachMessageThereAndBack) {
    const auto one = end(true);
    const auto other = end(false);
    std::uint64_t answered = 0;
    bool is_timed = true;
    std::thread answering([&] {
        EXPECT_TRUE(other->connect(one->address(), now() + seconds(20)));
        const auto found = other->run(50, base::Time::zero(), now() + seconds(60));
        ASSERT_TRUE(found);
        answered = found->messages;
        is_timed = !found->times.empty();
    });
    ASSERT_TRUE(one->connect(other->address(), now() + seconds(20)));
    const auto begun = one->run(50, base::Time::zero(), now() + seconds(60));
    answering.join();
    ASSERT_TRUE(begun);
    EXPECT_EQ(begun->times.size(), 50U);
    EXPECT_GT(*std::ranges::min_element(begun->times), base::Time::zero());
    EXPECT_FALSE(is_timed);  // there nobody began
    EXPECT_EQ(begun->messages, 100U);
    EXPECT_EQ(answered, 100U);
    EXPECT_GT(begun->processor, base::Time::zero());
}

TEST(Echo, EndsWhenTheOtherOneIsGoneOrSilent) {
    const auto one = end(true);
    auto other = end(false);
    auto connecting = std::async(std::launch::async, [&] {
        return other->connect(one->address(), now() + seconds(20)).has_value();
    });
    ASSERT_TRUE(one->connect(other->address(), now() + seconds(20)));
    ASSERT_TRUE(connecting.get());
    const auto silent = one->run(1, base::Time::zero(), now());
    ASSERT_FALSE(silent);
    EXPECT_EQ(silent.error().message, "an echo took longer than it may");
    other.reset();
    const auto alone = one->run(1, base::Time::zero(), now() + seconds(60));
    ASSERT_FALSE(alone);
    EXPECT_EQ(alone.error().message, "the other end of an echo is gone");
}

TEST(Echo, OfNobodyOrOfNothingFails) {
    EXPECT_FALSE(Echo::make({.bytes = 0}));
    EXPECT_FALSE(Echo::make({.transport = "no such"}));
}

}  // namespace
}  // namespace daqloom::live
