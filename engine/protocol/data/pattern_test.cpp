#include "protocol/data/pattern.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/goodness_of_fit_test.hpp"

namespace daqloom::protocol {
namespace {

using Payload = std::vector<std::uint8_t>;

Payload pattern(std::uint16_t source_id, std::uint64_t event, std::size_t bytes) {
    Payload payload(bytes);
    fill_pattern(source_id, event, payload);
    return payload;
}

TEST(Pattern, StartsWithTheHashThatSplitmixPublishes) {
    // The first two numbers of splitmix64 with seed 0, and the first with seeds 1 and 1234567.
    EXPECT_EQ(pattern_hash(0, 0), 0xe220a8397b1dcdaf);
    EXPECT_EQ(pattern_hash(1, 0), 0x6e789e6aa1b965f4);
    EXPECT_EQ(pattern_hash(0, 1), 0x910a2dec89025cc1);
    EXPECT_EQ(pattern_hash(0, 1234567), 6457827717110365317u);
}

TEST(Pattern, IsLittleEndianWordsCutOffAtItsSize) {
    // 0xe220a8397b1dcdaf + 0x9e3779b97f4a7c15 = 0x805821f2fa6849c4 modulo 2^64.
    const Payload words = {0xaf, 0xcd, 0x1d, 0x7b, 0x39, 0xa8, 0x20, 0xe2,
                           0xc4, 0x49, 0x68, 0xfa, 0xf2, 0x21, 0x58, 0x80};
    for (std::size_t bytes = 0; bytes <= words.size(); ++bytes) {
        EXPECT_EQ(pattern(0, 0, bytes), Payload(words.begin(), words.begin() + bytes));
    }
}

TEST(Pattern, IsRecognised) {
    for (std::size_t bytes = 0; bytes < 300; ++bytes) {
        EXPECT_EQ(check_pattern(7, 1000 + bytes, pattern(7, 1000 + bytes, bytes)), bytes);
    }
    EXPECT_EQ(check_pattern(7, 1, pattern(7, 1, 65'535)), 65'535);
}

TEST(Pattern, ShowsEveryFlippedBitAtItsPlace) {
    for (const auto bytes : std::initializer_list<std::size_t>{1, 7, 8, 9, 31, 40, 133}) {
        Payload payload = pattern(3, 4, bytes);
        for (std::size_t at = 0; at < bytes; ++at) {
            for (int bit = 0; bit < 8; ++bit) {
                payload[at] ^= static_cast<std::uint8_t>(1 << bit);
                ASSERT_EQ(check_pattern(3, 4, payload), at) << bytes;
                payload[at] ^= static_cast<std::uint8_t>(1 << bit);
            }
        }
    }
}

TEST(Pattern, ShowsAnotherSourceIdAnotherEventAndAnotherPlace) {
    const Payload payload = pattern(3, 4, 64);
    EXPECT_LT(check_pattern(4, 4, payload), 8);
    EXPECT_LT(check_pattern(3, 5, payload), 8);
    Payload exchanged = payload;
    std::swap_ranges(exchanged.begin() + 8, exchanged.begin() + 16, exchanged.begin() + 48);
    const std::size_t at = check_pattern(3, 4, exchanged);
    EXPECT_GE(at, 8);
    EXPECT_LT(at, 16);
}

TEST(PatternSizes, AreTheSameForTheSameArguments) {
    const PatternSizes a(FragmentSizes::poisson, 133, 5);
    const PatternSizes b(FragmentSizes::poisson, 133, 5);
    const PatternSizes other(FragmentSizes::poisson, 133, 6);
    int equal = 0;
    for (std::uint64_t event = 0; event < 1000; ++event) {
        ASSERT_EQ(a.size(2, event), b.size(2, event));
        equal += a.size(2, event) == other.size(2, event) ? 1 : 0;
    }
    EXPECT_LT(equal, 100);  // two draws of standard deviation 11.5 are equal once in 41
}

TEST(PatternSizes, HaveThePoissonianMeanAndVariance) {
    const double mean = 133;
    const PatternSizes sizes(FragmentSizes::poisson, 133, 1);
    constexpr int n = 100'000;
    std::vector<double> drawn;
    for (std::uint64_t event = 0; event < n; ++event) {
        drawn.push_back(sizes.size(9, event));
        ASSERT_LE(drawn.back(), sizes.largest());
    }
    const base::Moments moments = base::moments_of(drawn);
    // Standard errors: σ/√n and σ² √(2/n), for the 2^16 sizes in the table and for the draws from
    // the table.
    const double one_by = 1.0 / n + 1.0 / 65'536;
    EXPECT_NEAR(moments.mean, mean, 4 * std::sqrt(mean * one_by));
    EXPECT_NEAR(moments.variance / mean, 1, 4 * std::sqrt(2 * one_by));
}

TEST(PatternSizes, OfOneKindAreAllTheSame) {
    const PatternSizes sizes(FragmentSizes::fixed, 160, 1);
    EXPECT_EQ(sizes.largest(), 160);
    EXPECT_EQ(sizes.size(1, 2), 160);
    EXPECT_EQ(PatternSizes(FragmentSizes::poisson, 0, 1).largest(), 0);
}

TEST(PatternSizes, NeverExceedTheRangeOfAnMfp) {
    const PatternSizes sizes(FragmentSizes::poisson, 60'000, 1);
    EXPECT_GT(sizes.largest(), 60'000);
    EXPECT_LT(sizes.largest(), 60'000 + 6 * 245);  // six standard deviations
}

}  // namespace
}  // namespace daqloom::protocol
