#include "base/crc32c.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/random.hpp"

namespace daqloom::base {
namespace {

/// The vectors of RFC 3720, appendix B.4, and the usual check value.
TEST(Crc32c, GivesThePublishedValues) {
    std::vector<std::byte> bytes(32);
    EXPECT_EQ(crc32c(bytes), 0x8a9136aaU);
    std::ranges::fill(bytes, std::byte{0xff});
    EXPECT_EQ(crc32c(bytes), 0x62a8ab43U);
    for (unsigned i = 0; i < 32; ++i) {
        bytes[i] = std::byte(i);
    }
    EXPECT_EQ(crc32c(bytes), 0x46dd794eU);
    std::ranges::reverse(bytes);
    EXPECT_EQ(crc32c(bytes), 0x113fdb5cU);
    EXPECT_EQ(crc32c(std::as_bytes(std::span(std::string_view("123456789")))), 0xe3069283U);
    EXPECT_EQ(crc32c({}), 0U);
}

TEST(Crc32c, IsTheSameByEachMethodAndInPiecesForAllLengthsAndPlaces) {
    RandomStream random(1, "checksums");
    std::vector<std::byte> bytes(40'000);
    for (std::byte& each : bytes) {
        each = std::byte(random.uniform_int(256));
    }
    const Crc32cMethod& tables = crc32c_methods().back();
    for (std::size_t round = 0; round < 3'000; ++round) {
        const std::size_t begin = random.uniform_int(64);
        const std::size_t length =
            round < 900 ? round : random.uniform_int(bytes.size() - begin + 1);
        const auto part = std::span(bytes).subspan(begin, length);
        const std::size_t cut = random.uniform_int(length + 1);
        const std::uint32_t expected = tables(part);
        for (const Crc32cMethod& method : crc32c_methods()) {
            ASSERT_EQ(method(part), expected) << method.name << ", " << begin << ", " << length;
            ASSERT_EQ(method(part.subspan(cut), method(part.first(cut))), expected);
        }
    }
}

}  // namespace
}  // namespace daqloom::base
