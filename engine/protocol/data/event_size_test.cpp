#include "protocol/data/event_size.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/failure_test.hpp"
#include "base/goodness_of_fit_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;
using Kind = EventSizeConfig::Kind;

base::RandomStream stream() { return {1, "event sizes"}; }

std::vector<double> sizes(EventSizeConfig config, std::size_t count = 100'000) {
    auto made = base::value_of(EventSizes::make(std::move(config), stream()));
    std::vector<double> values(count);
    for (double& value : values) {
        const Bytes size = made.next();
        EXPECT_GE(size, 1);
        EXPECT_LE(size, Bytes{1} << 40);
        value = static_cast<double>(size);
    }
    return values;
}

TEST(EventSizes, FixedAreTheMean) {
    for (const double size : sizes({.kind = Kind::fixed, .mean = 5'000'000}, 100)) {
        EXPECT_EQ(size, 5e6);
    }
}

/// A gamma distribution whose spread equals its mean is exponential.
TEST(EventSizes, GaussianAndGammaHaveTheirDistributions) {
    base::expect_distribution(
        sizes({.kind = Kind::gaussian, .mean = 5'000'000, .spread_bytes = 5e5}),
        base::normal_of(5e6, 5e5));
    base::expect_distribution(sizes({.kind = Kind::gamma, .mean = 1'000'000, .spread_bytes = 1e6}),
                              base::exponential_of(1e6));
}

TEST(EventSizes, GammaHaveTheirMeanAndSpread) {
    const base::Moments m =
        base::moments_of(sizes({.kind = Kind::gamma, .mean = 2'000'000, .spread_bytes = 8e5}));
    EXPECT_NEAR(m.mean, 2e6, 5 * m.error);
    // Excess kurtosis 6/shape with shape (2e6/8e5)² = 6.25: the relative error of the variance is
    // √((2 + 6/6.25)/n).
    EXPECT_NEAR(m.variance / 6.4e11, 1, 5 * std::sqrt(2.96 / 100'000));
}

TEST(EventSizes, PoissonAreMultiplesOfTheQuantumWithThatVariance) {
    const auto values = sizes({.kind = Kind::poisson, .mean = 5'000'000, .quantum = 50'000});
    for (const double size : values) {
        ASSERT_EQ(std::fmod(size, 50'000), 0) << size;
    }
    // The mean is 100 quanta, so the variance is 100 quanta².
    const base::Moments m = base::moments_of(values);
    EXPECT_NEAR(m.mean, 5e6, 5 * m.error);
    EXPECT_NEAR(m.variance / (100 * 50'000.0 * 50'000.0), 1, 5 * std::sqrt(2.01 / 100'000));
}

TEST(EventSizes, AnEmptyPoissonEventCountsOneByte) {
    // The mean is one quantum, so a share 1/e of the events has no quantum (size 1).
    double ones = 0;
    for (const double size : sizes({.kind = Kind::poisson, .mean = 1000, .quantum = 1000})) {
        ones += size == 1 ? 1 : 0;
    }
    EXPECT_NEAR(ones / 100'000, std::exp(-1), 5 * std::sqrt(0.25 / 100'000));
}

TEST(EventSizes, OfAHistogramFollowTheWeightsAndFillTheBins) {
    EventSizeConfig config{.kind = Kind::histogram};
    config.histogram = {{100, 100, 1}, {200, 203, 2}, {300, 399, 0}, {500, 501, 1}};
    std::map<double, double> counts;
    for (const double size : sizes(config)) {
        ++counts[size];
    }
    const std::map<double, double> expected{{100, 0.25},  {200, 0.125}, {201, 0.125}, {202, 0.125},
                                            {203, 0.125}, {500, 0.125}, {501, 0.125}};
    ASSERT_EQ(counts.size(), expected.size());
    for (const auto& [size, share] : expected) {
        EXPECT_NEAR(counts[size] / 100'000, share, 5 * std::sqrt(share / 100'000)) << size;
    }
}

TEST(EventSizes, RefuseAnImpossibleConfigurationInASentence) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const auto histogram = [](std::vector<EventSizeConfig::Bin> bins) {
        EventSizeConfig config{.kind = Kind::histogram};
        config.histogram = std::move(bins);
        return config;
    };
    const std::vector<std::pair<EventSizeConfig, std::string>> cases{
        {{.kind = Kind::fixed, .mean = 0}, "mean of 0 bytes"},
        {{.kind = Kind::fixed, .mean = (Bytes{1} << 40) + 1}, "mean of 1099511627777 bytes"},
        {{.kind = Kind::gaussian, .mean = 90, .spread_bytes = 31}, "gaussian spread of 31 bytes"},
        {{.kind = Kind::gaussian, .mean = 90, .spread_bytes = nan}, "gaussian spread of nan"},
        {{.kind = Kind::gamma, .mean = 90, .spread_bytes = 0}, "gamma spread of 0 bytes"},
        {{.kind = Kind::poisson, .mean = 90, .quantum = 0}, "quantum of 0 bytes"},
        {{.kind = Kind::poisson, .mean = 90, .quantum = 91}, "quantum of 91 bytes"},
        {histogram({}), "histogram of 0 bins"},
        {histogram({{5, 5, 1}, {0, 5, 1}}), "bin 2 from 0 to 5"},
        {histogram({{6, 5, 1}}), "bin 1 from 6 to 5"},
        {histogram({{5, 5, -1}}), "bin 1 of weight -1"},
        {histogram({{5, 5, nan}}), "bin 1 of weight nan"},
        {histogram({{5, 5, 0}}), "weights are all 0"},
    };
    for (const auto& [config, words] : cases) {
        EXPECT_TRUE(
            base::message_of(EventSizes::make(config, stream())).starts_with("event size: "));
        EXPECT_TRUE(base::fails_with(words, EventSizes::make(config, stream())));
    }
}

TEST(FragmentSize, AddsUpToTheEventAndDiffersByAtMostAByte) {
    for (const Bytes event : {Bytes{1}, Bytes{47}, Bytes{48}, Bytes{5'000'000}, Bytes{1} << 40}) {
        for (const std::uint32_t readouts : {1U, 2U, 48U, 600U}) {
            Bytes sum = 0;
            for (const ReadoutIndex readout : base::IndexRange<ReadoutIndex>(readouts)) {
                const Bytes fragment = fragment_size(event, readout, readouts);
                EXPECT_LE(
                    std::abs(static_cast<double>(fragment) - static_cast<double>(event) / readouts),
                    1.0);
                sum += fragment;
            }
            EXPECT_EQ(sum, event);
        }
    }
}

TEST(FragmentShares, AreAsTheWeightsAndAddUpToTheEvent) {
    const std::vector<double> weights{3, 0.1, 7, 1.0 / 3.0, 2};
    const FragmentShares shares(5, weights);
    const double total = 3 + 0.1 + 7 + 1.0 / 3.0 + 2;
    for (const Bytes event : {Bytes{1'000}, Bytes{5'000'000}, Bytes{999'999'999'989}}) {
        Bytes sum = 0;
        for (const ReadoutIndex readout : base::IndexRange<ReadoutIndex>(5)) {
            const Bytes fragment = shares.fragment(event, readout);
            EXPECT_NEAR(static_cast<double>(fragment),
                        static_cast<double>(event) * weights[readout.value()] / total, 1.0);
            sum += fragment;
        }
        EXPECT_EQ(sum, event);
    }
}

TEST(FragmentShares, WithoutWeightsAreEqual) {
    const FragmentShares shares(48, {});
    // 5 MB over 48 readout units: 104 166 bytes each, with 32 bytes left over.
    for (const auto& [readout, bytes] : {std::pair{0U, 104'167}, {31U, 104'167}, {32U, 104'166}}) {
        EXPECT_EQ(shares.fragment(5'000'000, ReadoutIndex(readout)), bytes);
        EXPECT_EQ(fragment_size(5'000'000, ReadoutIndex(readout), 48), bytes);
    }
}

TEST(FragmentShares, LetAReadoutUnitWithoutAByteAnswerWithOne) {
    const FragmentShares equal(48, {});
    EXPECT_EQ(equal.fragment(47, ReadoutIndex(46)), 1);
    EXPECT_EQ(equal.fragment(47, ReadoutIndex(47)), 1);
    const FragmentShares weighted(2, {1, 1'000'000});
    EXPECT_EQ(weighted.fragment(100, ReadoutIndex(0)), 1);
    EXPECT_EQ(weighted.fragment(100, ReadoutIndex(1)), 100);
}

}  // namespace
}  // namespace daqloom::protocol
