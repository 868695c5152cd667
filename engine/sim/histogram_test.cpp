#include "sim/histogram.hpp"

#include <gtest/gtest.h>

#include <random>

namespace daqloom::sim {
namespace {

using base::Time;

TEST(Histogram, HoldsNothingAtFirstAndNegativeDurationsAsZero) {
    Histogram histogram;
    EXPECT_TRUE(histogram.empty());
    EXPECT_EQ(histogram.quantile(0.5), Time{0});
    EXPECT_EQ(histogram.min(), Time{0});
    EXPECT_EQ(histogram.max(), Time{0});
    EXPECT_EQ(histogram.mean_ps(), 0);
    EXPECT_TRUE(histogram.buckets().empty());
    histogram.record(Time{-5});
    EXPECT_EQ(histogram.max(), Time{0});
    EXPECT_EQ(histogram.count(), 1U);
}

/// Values 0 … 200 are below 256, with one bucket each: quantiles are exact order statistics.
TEST(Histogram, IsExactForSmallValues) {
    Histogram histogram;
    for (std::int64_t v = 200; v >= 0; --v) {
        histogram.record(Time{v});
    }
    EXPECT_EQ(histogram.count(), 201U);
    EXPECT_EQ(histogram.quantile(0), Time{0});
    EXPECT_EQ(histogram.quantile(0.5), Time{100});  // the 101st of 0 … 200
    EXPECT_EQ(histogram.quantile(1), Time{200});
    EXPECT_DOUBLE_EQ(histogram.mean_ps(), 100);
}

TEST(Histogram, BucketsTileEveryMagnitudeWithinOnePercent) {
    for (int bit = 0; bit < 63; ++bit) {
        for (const std::int64_t value :
             {std::int64_t{1} << bit, (std::int64_t{1} << bit) - 1 + (std::int64_t{1} << bit),
              std::int64_t{1} << bit | std::int64_t{1} << (bit / 2)}) {
            Histogram histogram;
            histogram.record(Time{value});
            const auto buckets = histogram.buckets();
            ASSERT_EQ(buckets.size(), 1U);
            const auto [lowest, width, count] = buckets.front();
            EXPECT_LE(lowest.ps, value);
            EXPECT_LT(value - lowest.ps, width.ps);
            EXPECT_LE(static_cast<double>(width.ps),
                      std::max(1.0, 0.01 * static_cast<double>(value)));
            EXPECT_EQ(count, 1U);
            EXPECT_EQ(histogram.quantile(0.5).ps, value);  // clamped to [min, max]
        }
    }
}

TEST(Histogram, NeighbouringBucketsTouch) {
    Histogram histogram;
    for (std::int64_t v = 0; v < 100'000; ++v) {
        histogram.record(Time{v});
    }
    const auto buckets = histogram.buckets();
    for (std::size_t i = 1; i < buckets.size(); ++i) {
        EXPECT_EQ(buckets[i - 1].lowest + buckets[i - 1].width, buckets[i].lowest);
        if (i + 1 < buckets.size()) {
            EXPECT_EQ(buckets[i].count, static_cast<std::uint64_t>(buckets[i].width.ps));
        }
    }
}

TEST(Histogram, QuantilesAgreeWithSortedSamples) {
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> latency(18, 2);  // around 65 µs, a tail over seconds
    std::vector<std::int64_t> samples(20'000);
    Histogram histogram;
    for (auto& sample : samples) {
        sample = static_cast<std::int64_t>(latency(random));
        histogram.record(Time{sample});
    }
    std::sort(samples.begin(), samples.end());
    for (const double q : {0.01, 0.1, 0.5, 0.9, 0.99, 0.999}) {
        const auto rank = static_cast<std::size_t>(std::ceil(q * 20'000));
        const auto expected = static_cast<double>(samples[rank - 1]);
        EXPECT_NEAR(static_cast<double>(histogram.quantile(q).ps), expected, 0.004 * expected);
    }
    EXPECT_EQ(histogram.min().ps, samples.front());
    EXPECT_EQ(histogram.max().ps, samples.back());
}

TEST(Histogram, TheMeanDoesNotOverflow) {
    Histogram histogram;
    for (int i = 0; i < 100; ++i) {
        histogram.record(Time{std::numeric_limits<std::int64_t>::max()});
    }
    EXPECT_DOUBLE_EQ(histogram.mean_ps(), std::ldexp(1.0, 63));
    EXPECT_EQ(histogram.quantile(0.5), Time::never());
}

}  // namespace
}  // namespace daqloom::sim
