#include "protocol/fragment_sizes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace daqloom::protocol {
namespace {

using base::Bytes;
using Kind = FragmentSizesConfig::Kind;

/// LHCb's three groups: RICH; calorimeters, VELO and muon; SciFi and UT. How many sources each has
/// is not published.
const FragmentSizesConfig lhcb{.event = 128'000, .groups = {{270, 0.28}, {318, 0.33}, {375, 0.39}}};

TEST(FragmentSizes, OfAllSourcesAddUpToTheEvent) {
    const FragmentSizes sizes = *FragmentSizes::make(lhcb);
    ASSERT_EQ(sizes.sources(), 963U);
    double event = 0;
    for (std::uint32_t source = 0; source < sizes.sources(); ++source) {
        event += sizes.mean_bytes(source);
    }
    EXPECT_NEAR(event, 128'000, 1e-6);
    EXPECT_DOUBLE_EQ(sizes.mean_bytes(269), 0.28 * 128'000 / 270);
    EXPECT_DOUBLE_EQ(sizes.mean_bytes(270), 0.33 * 128'000 / 318);
    EXPECT_DOUBLE_EQ(sizes.mean_bytes(962), 0.39 * 128'000 / 375);
}

TEST(FragmentSizes, OfPackedFragmentsHaveThePoissonianMeanAndVariance) {
    const FragmentSizes sizes = *FragmentSizes::make(lhcb);
    MfpSizes source = sizes.of(0, 1);
    const double mean = 30'000 * sizes.mean_bytes(0);  // about 4 MB
    constexpr int n = 20'000;
    double sum = 0;
    double squares = 0;
    for (int i = 0; i < n; ++i) {
        const auto deviation = static_cast<double>(source.next()) - mean;
        sum += deviation;
        squares += deviation * deviation;
    }
    // Of n draws, the mean has the standard error σ/√n, the variance σ² √(2/n); σ² = mean.
    EXPECT_NEAR(sum / n, 0, 4 * std::sqrt(mean / n));
    EXPECT_NEAR(squares / n / mean, 1, 4 * std::sqrt(2.0 / n));
}

TEST(FragmentSizes, OfOneDrawAreDistributedAsASumOfDraws) {
    // Three fragments of mean 2/3 B each, added up, against packing 3 in one draw: P(0) = exp(−2).
    FragmentSizesConfig config{.event = 2, .groups = {{3, 1.0}}, .packing = 3};
    MfpSizes packed = FragmentSizes::make(config)->of(0, 1);
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

TEST(FragmentSizes, OfASourceDependOnItsNumberAndTheSeedAlone) {
    FragmentSizesConfig more = lhcb;
    more.groups[2] = {400, 0.39};
    MfpSizes a = FragmentSizes::make(lhcb)->of(100, 5);
    MfpSizes b = FragmentSizes::make(more)->of(100, 5);
    MfpSizes other_seed = FragmentSizes::make(lhcb)->of(100, 6);
    MfpSizes other_source = FragmentSizes::make(lhcb)->of(101, 5);
    int equal = 0;
    for (int i = 0; i < 100; ++i) {
        const Bytes size = a.next();
        ASSERT_EQ(size, b.next());
        equal += size == other_seed.next() ? 1 : 0;
        equal += size == other_source.next() ? 1 : 0;
    }
    EXPECT_LT(equal, 5);
}

TEST(FragmentSizes, OfTheMaximumSizeModelAreAllTheSame) {
    // 160 B from each of 963 sources: MFPs of 4.8 MB, three of which fill 0.576 ms at 200 Gb/s.
    const FragmentSizesConfig config{
        .kind = Kind::fixed, .event = 963 * 160, .groups = {{963, 1.0}}, .overhead = 90'020};
    MfpSizes source = FragmentSizes::make(config)->of(7, 1);
    EXPECT_EQ(source.next(), 4'800'000 + 90'020);
    EXPECT_EQ(source.next(), 4'800'000 + 90'020);
}

TEST(FragmentSizes, RefusesAnImpossibleConfigurationInASentence) {
    const auto message = [](FragmentSizesConfig config) {
        return FragmentSizes::make(config).error().message;
    };
    EXPECT_EQ(message({.event = 0, .groups = {{1, 1.0}}}),
              "fragment sizes: event of 0 bytes; give 1 to 1099511627776");
    EXPECT_EQ(message({.event = 1, .groups = {{1, 0.5}, {1, 0.25}}}),
              "fragment sizes: 2 groups of sources with 0.75 of the event; give groups that share "
              "all of it");
    EXPECT_NE(message({.event = 1, .groups = {{0, 1.0}}}).find("group of 0 sources"),
              std::string::npos);
    EXPECT_NE(message({.event = 1'000'000'000, .groups = {{1, 1.0}}}).find("MFPs of"),
              std::string::npos);
    EXPECT_NE(message({.event = 1, .groups = {{1, 1.0}}, .packing = 0}).find("packing of 0"),
              std::string::npos);
}

TEST(FragmentSizes, HaveALimitToWhichPlacesAreCut) {
    EXPECT_EQ(largest_mfp(Kind::fixed, 10'000), 10'000);
    EXPECT_EQ(largest_mfp(Kind::fixed, 0), 1);
    EXPECT_EQ(largest_mfp(Kind::poisson, 10'000), 10'000 + 10 * 100 + 64);
}

}  // namespace
}  // namespace daqloom::protocol
