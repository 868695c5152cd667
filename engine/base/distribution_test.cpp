#include "base/distribution.hpp"

#include <gtest/gtest.h>

#include "base/goodness_of_fit_test.hpp"

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

/// A uniform delay covers mean − spread to mean + spread.
TEST(DelayDistribution, ExponentialAndUniformHaveTheirDistributions) {
    expect_distribution(draws_us({Kind::exponential, microseconds(20), Time::zero()}),
                        exponential_of(20));
    expect_distribution(draws_us({Kind::uniform, microseconds(10), microseconds(4)}),
                        [](double x) { return (x - 6) / 8; });
}

TEST(DelayDistribution, GaussianHasItsMeanAndSpread) {
    const Moments m = moments_of(draws_us({Kind::gaussian, microseconds(100), microseconds(10)}));
    EXPECT_NEAR(m.mean, 100, 5 * m.error);
    // The relative error of a sampled normal standard deviation is 1/√(2n).
    EXPECT_NEAR(std::sqrt(m.variance), 10, 10 * 5 / std::sqrt(2 * 50'000.0));
}

TEST(DelayDistribution, NegativeDrawsCountAsZero) {
    // Half the mass of a gaussian around zero is negative, and counts as zero; the rest stays.
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

TEST(DelayDistribution, MeasuredDrawsEachValueAsOftenAsItWasMeasured) {
    DelayDistribution delay{Kind::measured};
    delay.values = {microseconds(1), microseconds(2), microseconds(10)};
    delay.cumulative_weights = {700, 990, 1000};
    std::vector<double> values = draws_us(delay);
    // Standard errors of 50 000 draws: 0.005 us for the mean of 1.38 us, 0.05 % for a share of 1 %.
    EXPECT_NEAR(moments_of(values).mean, 0.7 * 1 + 0.29 * 2 + 0.01 * 10, 0.02);
    std::sort(values.begin(), values.end());
    EXPECT_EQ(values.front(), 1);
    EXPECT_EQ(values[values.size() / 2], 1);
    EXPECT_EQ(values[values.size() * 75 / 100], 2);
    EXPECT_EQ(values[values.size() * 985 / 1000], 2);
    EXPECT_EQ(values[values.size() * 995 / 1000], 10);
    EXPECT_EQ(values.back(), 10);
    delay.values = {microseconds(3)};
    delay.cumulative_weights = {0.5};
    EXPECT_EQ(draws_us(delay), std::vector<double>(50'000, 3.0));
}

}  // namespace
}  // namespace daqloom::base
