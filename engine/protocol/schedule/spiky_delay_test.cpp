#include "protocol/schedule/spiky_delay.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace daqloom::protocol {
namespace {

using base::microseconds;

TEST(SpikyDelay, IsASpikeAsOftenAsItShould) {
    const SpikyDelay delay{.usual = {.mean = microseconds(2)},
                           .spike = {.mean = microseconds(900)},
                           .spike_probability = 0.01};
    base::RandomStream random(1, "acknowledge");
    constexpr int n = 100'000;
    int spikes = 0;
    for (int i = 0; i < n; ++i) {
        const base::Time drawn = delay.draw(random);
        ASSERT_TRUE(drawn == microseconds(2) || drawn == microseconds(900));
        spikes += drawn == microseconds(900) ? 1 : 0;
    }
    EXPECT_NEAR(spikes, n * 0.01, 4 * std::sqrt(n * 0.01 * 0.99));
}

TEST(SpikyDelay, WithoutSpikesIsTheUsualOne) {
    const base::DelayDistribution usual{base::DelayDistribution::Kind::exponential, microseconds(2),
                                        base::Time::zero()};
    base::RandomStream random(1, "acknowledge");
    base::RandomStream same(1, "acknowledge");
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(SpikyDelay{.usual = usual}.draw(random), usual.draw(same));
    }
}

}  // namespace
}  // namespace daqloom::protocol
