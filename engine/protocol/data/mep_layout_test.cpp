#include "protocol/data/mep_layout.hpp"

#include <gtest/gtest.h>

#include <array>

namespace daqloom::protocol {
namespace {

using base::Bytes;

TEST(MepLayout, PutsMfpsOneAfterTheOther) {
    constexpr std::array<Bytes, 4> sizes = {100, 0, 7, 1};
    std::array<Bytes, 4> offsets{};
    EXPECT_EQ(lay_out({}, sizes, offsets), 108);
    EXPECT_EQ(offsets, (std::array<Bytes, 4>{0, 100, 100, 107}));
}

TEST(MepLayout, AlignsEveryMfp) {
    constexpr std::array<Bytes, 4> sizes = {100, 64, 0, 65};
    std::array<Bytes, 4> offsets{};
    // The header of 20 B takes one unit of 64 B; MFPs of 100, 64 and 65 B take 2, 1 and 2 units.
    EXPECT_EQ(lay_out({.header = 20, .alignment = 64}, sizes, offsets), 384);
    EXPECT_EQ(offsets, (std::array<Bytes, 4>{64, 192, 256, 256}));
}

TEST(MepLayout, OfTheLargestSizesIsExact) {
    constexpr std::array<Bytes, 2> sizes = {largest_mfp_size, largest_mfp_size};
    std::array<Bytes, 2> offsets{};
    EXPECT_EQ(lay_out({.alignment = 4}, sizes, offsets), Bytes{2} << 32);
    EXPECT_EQ(offsets[1], Bytes{1} << 32);
}

}  // namespace
}  // namespace daqloom::protocol
