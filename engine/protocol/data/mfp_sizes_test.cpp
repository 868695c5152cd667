#include "protocol/data/mfp_sizes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/goodness_of_fit_test.hpp"

namespace daqloom::protocol {
namespace {

using base::Bytes;

MfpSizes poissonian(Bytes mean, std::uint64_t seed = 1) {
    return {FragmentSizes::poisson, mean, base::RandomStream(seed, "sizes")};
}

TEST(MfpSizes, OfPackedFragmentsHaveThePoissonianMeanAndVariance) {
    const Bytes mean = 30'000 * 133;
    MfpSizes stream = poissonian(mean);
    constexpr int n = 20'000;
    std::vector<double> deviations(n);
    std::ranges::generate(deviations, [&] { return static_cast<double>(stream.next() - mean); });
    // Standard errors for n draws: σ/√n of the mean, σ² √(2/n) of the variance; σ² = mean.
    const auto variance = static_cast<double>(mean);
    const base::Moments moments = base::moments_of(deviations);
    EXPECT_NEAR(moments.mean, 0, 4 * std::sqrt(variance / n));
    EXPECT_NEAR(moments.variance / variance, 1, 4 * std::sqrt(2.0 / n));
}

TEST(MfpSizes, OfOneDrawAreDistributedAsASumOfDraws) {
    // Sums of three fragments of mean 2/3 B against one draw of mean 2 B: P(0) = exp(−2).
    MfpSizes packed = poissonian(2);
    base::RandomStream random(1, "one by one");
    constexpr int n = 40'000;
    int packed_small = 0;
    int added_small = 0;
    for (int i = 0; i < n; ++i) {
        packed_small += packed.next() <= 1 ? 1 : 0;
        std::int64_t sum = 0;
        for (int k = 0; k < 3; ++k) {
            sum += random.poisson(2.0 / 3.0);
        }
        added_small += sum <= 1 ? 1 : 0;
    }
    const double p = 3 * std::exp(-2.0);  // P(0) + P(1)
    const double tolerance = 4 * std::sqrt(p * (1 - p) / n);
    EXPECT_NEAR(packed_small / double{n}, p, tolerance);
    EXPECT_NEAR(added_small / double{n}, p, tolerance);
}

TEST(MfpSizes, AreTheSameForTheSameSeed) {
    MfpSizes a = poissonian(10'000, 5);
    MfpSizes b = poissonian(10'000, 5);
    MfpSizes other = poissonian(10'000, 6);
    int equal = 0;
    for (int i = 0; i < 100; ++i) {
        const Bytes size = a.next();
        ASSERT_EQ(size, b.next());
        equal += size == other.next() ? 1 : 0;
    }
    EXPECT_LT(equal, 10);
}

TEST(MfpSizes, HaveALimitToWhichPlacesAreCutAndAreAByteAtLeast) {
    EXPECT_EQ(poissonian(0).next(), 1);
    // 30 000 equal fragments of 160 B; three such MFPs fill 0.576 ms at 200 Gb/s.
    MfpSizes stream(FragmentSizes::fixed, 30'000 * 160, base::RandomStream(1, "sizes"));
    EXPECT_EQ(stream.next(), 4'800'000);
    EXPECT_EQ(stream.next(), 4'800'000);
    EXPECT_EQ(largest_mfp(FragmentSizes::fixed, 10'000), 10'000);
    EXPECT_EQ(largest_mfp(FragmentSizes::fixed, 0), 1);
    EXPECT_EQ(largest_mfp(FragmentSizes::poisson, 10'000), 10'000 + 10 * 100 + 64);
}

}  // namespace
}  // namespace daqloom::protocol
