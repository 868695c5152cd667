#include "live/transport/echo.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <thread>

#include "base/expected_test.hpp"
#include "live/memory/clock.hpp"

namespace daqloom::live {
namespace {

using base::seconds;

std::unique_ptr<Echo> unit(std::uint32_t number, std::uint32_t units = 2) {
    auto made = Echo::make({.units = units, .unit = number});
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
}

TEST(Echo, CountsEachMessageThereAndBack) {
    const auto one = unit(0);
    const auto other = unit(1);
    std::uint64_t answered = 0;
    bool is_timed = true;
    std::thread answering([&] {
        EXPECT_TRUE(other->connect({one->address()}, now() + seconds(20)));
        const auto found = other->run(50, 24, base::Time::zero(), now() + seconds(60));
        ASSERT_TRUE(found);
        answered = found->messages;
        is_timed = !found->times.empty();
    });
    ASSERT_TRUE(one->connect({other->address()}, now() + seconds(20)));
    const auto begun = one->run(50, 24, base::Time::zero(), now() + seconds(60));
    answering.join();
    ASSERT_TRUE(begun);
    EXPECT_EQ(begun->times.size(), 50U);
    EXPECT_GT(*std::ranges::min_element(begun->times), base::Time::zero());
    EXPECT_FALSE(is_timed);  // there nobody began
    EXPECT_EQ(begun->messages, 100U);
    EXPECT_EQ(answered, 100U);
    EXPECT_GT(begun->processor, base::Time::zero());
}

TEST(Echo, RequestsOfSeveralAtOnceHaveALatencyEach) {
    constexpr std::uint32_t units = 4;
    constexpr std::uint32_t rounds = 20;
    std::vector<std::unique_ptr<Echo>> all;
    for (std::uint32_t number = 0; number < units; ++number) {
        all.push_back(unit(number, units));
    }
    std::vector<std::future<base::expected<RoundTrips>>> answering;
    std::vector<std::vector<std::byte>> addresses;
    for (std::uint32_t number = 1; number < units; ++number) {
        addresses.push_back(all[number]->address());
        answering.push_back(std::async(std::launch::async, [&, number] {
            EXPECT_TRUE(all[number]->connect({all[0]->address()}, now() + seconds(20)));
            return all[number]->run(rounds, 24, base::Time::zero(), now() + seconds(60));
        }));
    }
    ASSERT_TRUE(all[0]->connect(addresses, now() + seconds(20)));
    const auto requester = all[0]->run(rounds, 24, base::Time::zero(), now() + seconds(60));
    ASSERT_TRUE(requester);
    EXPECT_EQ(requester->times.size(), rounds);
    EXPECT_TRUE(requester->latencies.empty());
    EXPECT_EQ(requester->messages, 2 * (units - 1) * rounds);
    const base::Time longest = *std::ranges::max_element(requester->times);
    for (auto& one : answering) {
        const auto responder = one.get();
        ASSERT_TRUE(responder);
        EXPECT_EQ(responder->messages, 2 * rounds);
        ASSERT_EQ(responder->latencies.size(), rounds);
        EXPECT_GT(*std::ranges::min_element(responder->latencies), base::Time::zero());
        EXPECT_LT(*std::ranges::max_element(responder->latencies), longest);
    }
}

TEST(Echo, EndsWhenTheOtherOneIsGoneOrSilent) {
    const auto one = unit(0);
    auto other = unit(1);
    auto connecting = std::async(std::launch::async, [&] {
        return other->connect({one->address()}, now() + seconds(20)).has_value();
    });
    ASSERT_TRUE(one->connect({other->address()}, now() + seconds(20)));
    ASSERT_TRUE(connecting.get());
    EXPECT_EQ(base::message_of(one->run(1, 24, base::Time::zero(), now())),
              "an echo took longer than it may");
    other.reset();
    EXPECT_EQ(base::message_of(one->run(1, 24, base::Time::zero(), now() + seconds(60))),
              "another unit of an echo is gone");
}

TEST(Echo, WithoutPeersOrBytesFails) {
    EXPECT_FALSE(Echo::make({.most_bytes = 7}));
    EXPECT_FALSE(Echo::make({.units = 1}));
    EXPECT_FALSE(Echo::make({.units = 2, .unit = 2}));
    EXPECT_FALSE(unit(0, 3)->connect({unit(1, 3)->address()}, now()));
    EXPECT_FALSE(Echo::make({.transport = "no such"}));
}

}  // namespace
}  // namespace daqloom::live
