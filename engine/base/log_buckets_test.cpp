#include "base/log_buckets.hpp"

#include <gtest/gtest.h>

namespace daqloom::base {
namespace {

using Buckets = LogBuckets<4>;

TEST(LogBuckets, FollowEachOtherWithoutGaps) {
    std::uint64_t next = 0;
    for (std::size_t bucket = 0; bucket < Buckets::count; ++bucket) {
        ASSERT_EQ(Buckets::lowest(bucket), next);
        ASSERT_EQ(Buckets::of(next), bucket);
        next += Buckets::width(bucket);
        ASSERT_EQ(Buckets::of(next - 1), bucket);
    }
    EXPECT_EQ(next, std::uint64_t{1} << 63);
}

TEST(LogBuckets, AreExactForSmallValuesAndASixteenthOfTheirValueWideAtMost) {
    for (std::uint64_t value = 0; value < 32; ++value) {
        EXPECT_EQ(Buckets::width(Buckets::of(value)), 1U) << value;
    }
    for (std::uint64_t value = 32; value < (std::uint64_t{1} << 62); value += value / 3) {
        const std::size_t bucket = Buckets::of(value);
        EXPECT_LE(Buckets::width(bucket) * 16, Buckets::lowest(bucket)) << value;
    }
}

}  // namespace
}  // namespace daqloom::base
