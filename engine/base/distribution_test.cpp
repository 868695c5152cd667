#include "base/distribution.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/goodness_of_fit.hpp"

namespace daqloom::base {
namespace {

using Kind = DelayDistribution::Kind;

std::vector<double> draws_us(DelayDistribution delay) {
    RandomStream random(1, "delay");
    std::vector<double> values(50'000);
    for (double& value : values) {
        const Time time = delay.draw(random);
        EXPECT_GE(time, Time::zero());
        value = time.seconds() * 1e6;
    }
    return values;
}

TEST(DelayDistribution, FixedIsItsMeanAndDrawsNothing) {
    RandomStream random(1, "delay");
    const DelayDistribution delay{Kind::fixed, microseconds(3), microseconds(1)};
    EXPECT_EQ(delay.draw(random), microseconds(3));
    EXPECT_EQ(random(), RandomStream(1, "delay")());
}

TEST(DelayDistribution, ExponentialHasItsDistribution) {
    const auto values = draws_us({Kind::exponential, microseconds(20), Time::zero()});
    EXPECT_LT(kolmogorov_smirnov(values, [](double x) { return 1 - std::exp(-x / 20); }),
              kolmogorov_smirnov_limit);
}

TEST(DelayDistribution, GaussianHasItsMeanAndSpread) {
    const Moments m = moments_of(draws_us({Kind::gaussian, microseconds(100), microseconds(10)}));
    EXPECT_NEAR(m.mean, 100, 5 * m.error);
    // The relative error of a sampled normal standard deviation is 1/√(2n).
    EXPECT_NEAR(std::sqrt(m.variance), 10, 10 * 5 / std::sqrt(2 * 50'000.0));
}

TEST(DelayDistribution, UniformCoversMeanMinusToMeanPlusSpread) {
    const auto values = draws_us({Kind::uniform, microseconds(10), microseconds(4)});
    EXPECT_LT(kolmogorov_smirnov(values, [](double x) { return (x - 6) / 8; }),
              kolmogorov_smirnov_limit);
}

TEST(DelayDistribution, NegativeDrawsCountAsZero) {
    // Half the mass of a gaussian around zero is negative; the other half is untouched.
    const auto values = draws_us({Kind::gaussian, Time::zero(), microseconds(1)});
    const auto zeros = static_cast<double>(std::count(values.begin(), values.end(), 0.0));
    EXPECT_NEAR(zeros, 25'000, 5 * std::sqrt(50'000 * 0.25));
    RandomStream random(1, "delay");
    const DelayDistribution negative{Kind::fixed, microseconds(-1), Time::zero()};
    EXPECT_EQ(negative.draw(random), Time::zero());
}

TEST(DelayDistribution, AnEndlessDelayDoesNotOverflow) {
    RandomStream random(1, "delay");
    for (const Kind kind : {Kind::fixed, Kind::exponential, Kind::gaussian, Kind::uniform}) {
        const DelayDistribution delay{kind, Time::never(), Time::never()};
        for (int i = 0; i < 100; ++i) {
            EXPECT_LE(delay.draw(random), Time{std::int64_t{1} << 62});
        }
    }
}

}  // namespace
}  // namespace daqloom::base
