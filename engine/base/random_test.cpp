#include "base/random.hpp"

#include <gtest/gtest.h>

#include <array>

#include "base/goodness_of_fit_test.hpp"

namespace daqloom::base {
namespace {

constexpr std::size_t sample_size = 100'000;

template <class Draw>
std::vector<double> sample(Draw draw) {
    std::vector<double> values(sample_size);
    for (double& value : values) {
        value = static_cast<double>(draw());
    }
    return values;
}

TEST(RandomStream, IsTheStandardGeneratorSeededByTheSeedsHalvesAndTheName) {
    std::seed_seq words{0x9abcdef0U, 0x12345678U, unsigned{'t'}, unsigned{'o'}, unsigned{'r'}};
    std::mt19937_64 expected(words);
    RandomStream stream(0x12345678'9abcdef0U, "tor");
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(stream(), expected());
    }
}

TEST(SmallStream, IsSplitMix64FromTheFirstNumberOfItsStreamOn) {
    SmallStream stream(1, "host");
    std::uint64_t state = RandomStream(1, "host")();
    for (int i = 0; i < 1000; ++i) {
        state += 0x9e3779b97f4a7c15U;
        const std::uint64_t first = (state ^ state >> 30) * 0xbf58476d1ce4e5b9U;
        const std::uint64_t second = (first ^ first >> 27) * 0x94d049bb133111ebU;
        ASSERT_EQ(stream(), second ^ second >> 31);
    }
}

TEST(RandomStream, UniformFillsTheUnitIntervalEvenly) {
    RandomStream random(1, "uniform");
    const auto values = sample([&] { return random.uniform(); });
    for (const double x : values) {
        ASSERT_GE(x, 0.0);
        ASSERT_LT(x, 1.0);
    }
    expect_distribution(values, [](double x) { return x; });
}

TEST(RandomStream, DrawsExponentialNormalAndGammaNumbersOfTheirDistributions) {
    RandomStream random(1, "distributions");
    expect_distribution(sample([&] { return random.exponential(3.0); }), exponential_of(3.0));
    expect_distribution(sample([&] { return random.normal(-2.0, 5.0); }), normal_of(-2.0, 5.0));
    // Gamma of shape 2 is a sum of two exponentials: F(x) = 1 − (1 + x/θ) exp(−x/θ).
    expect_distribution(sample([&] { return random.gamma(2.0, 4.0); }),
                        [](double x) { return 1 - (1 + x / 4.0) * std::exp(-x / 4.0); });
}

TEST(RandomStream, UniformIntegersAreEquallyLikely) {
    RandomStream random(1, "uniform_int");
    constexpr std::size_t n = 7;
    std::array<double, n> counts{};
    for (std::size_t i = 0; i < sample_size; ++i) {
        const std::uint64_t value = random.uniform_int(n);
        ASSERT_LT(value, n);
        ++counts[value];
    }
    // Each count is binomial: it must be within five standard deviations of sample_size / n.
    const double p = 1.0 / n;
    const double mean = sample_size * p;
    for (const double count : counts) {
        EXPECT_NEAR(count, mean, 5 * std::sqrt(mean * (1 - p)));
    }
    EXPECT_EQ(random.uniform_int(1), 0U);
}

TEST(RandomStream, PoissonHasEqualMeanAndVarianceForSmallAndLargeMeans) {
    // The variance of the sample variance is close to (2 + 1/µ) µ²/n (fourth moment µ + 3µ²).
    for (const double mean : {0.3, 4.0, 5e6}) {
        RandomStream random(1, "poisson");
        const Moments m = moments_of(sample([&] { return random.poisson(mean); }));
        EXPECT_NEAR(m.mean, mean, 5 * m.error);
        EXPECT_NEAR(m.variance, mean, 5 * mean * std::sqrt((2 + 1 / mean) / sample_size));
    }
}

TEST(RandomStream, GeometricCountsTheFailuresBeforeASuccess) {
    RandomStream random(1, "geometric");
    constexpr double p = 0.3;
    std::array<double, 10> counts{};
    for (std::size_t i = 0; i < sample_size; ++i) {
        const auto failures = static_cast<std::size_t>(random.geometric(p));
        if (failures < counts.size()) {
            ++counts[failures];
        }
    }
    for (std::size_t k = 0; k < counts.size(); ++k) {
        const double probability = p * std::pow(1 - p, static_cast<double>(k));
        const double mean = sample_size * probability;
        EXPECT_NEAR(counts[k], mean, 5 * std::sqrt(mean * (1 - probability))) << k;
    }
    // A certain success, and one that is practically impossible.
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(random.geometric(1.0), 0);
        EXPECT_EQ(random.geometric(1e-300), 1'000'000'000'000'000);
    }
}

}  // namespace
}  // namespace daqloom::base
