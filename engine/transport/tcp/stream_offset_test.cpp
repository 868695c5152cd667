#include "transport/tcp/stream_offset.hpp"

#include <gtest/gtest.h>

namespace daqloom::transport {
namespace {

TEST(StreamOffset, IsUnwrappedToTheOneNearestToTheReference) {
    EXPECT_EQ(unwrap(5, 0), 5U);
    EXPECT_EQ(unwrap(5, 0xffff'fff0), 0x1'0000'0005U);
    EXPECT_EQ(unwrap(0xffff'fff0, 0x1'0000'0005), 0xffff'fff0U);
    for (std::uint64_t reference = 0; reference < 20'000'000'000; reference += 999'999'937) {
        for (const std::int64_t off : {-2'000'000'000LL, -1LL, 0LL, 1LL, 2'000'000'000LL}) {
            const std::uint64_t offset = reference + static_cast<std::uint64_t>(off);
            if (static_cast<std::int64_t>(offset) >= 0) {
                EXPECT_EQ(unwrap(static_cast<std::uint32_t>(offset), reference), offset);
            }
        }
    }
}

}  // namespace
}  // namespace daqloom::transport
