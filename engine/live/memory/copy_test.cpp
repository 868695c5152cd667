#include "live/memory/copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.hpp"

namespace daqloom::live {
namespace {

std::vector<std::byte> random_bytes(std::size_t count, base::RandomStream& random) {
    std::vector<std::byte> bytes(count);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
    return bytes;
}

/// Checks a copy, and that the bytes around its target do not change.
void check(const StreamingCopy& way, std::size_t bytes, std::size_t from_offset,
           std::size_t to_offset, base::RandomStream& random) {
    SCOPED_TRACE(std::string(way.name) + ", " + std::to_string(bytes) + " bytes, from offset " +
                 std::to_string(from_offset) + " to " + std::to_string(to_offset));
    constexpr std::size_t kGuard = 256;
    const auto source = random_bytes(from_offset + bytes + 1, random);
    const auto before = random_bytes(kGuard + to_offset + bytes + kGuard, random);
    auto target = before;
    auto expected = before;
    std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from_offset), bytes,
                expected.begin() + static_cast<std::ptrdiff_t>(kGuard + to_offset));

    way.copy(target.data() + kGuard + to_offset, source.data() + from_offset, bytes);
    fence_copies();

    EXPECT_TRUE(target == expected);
}

std::vector<StreamingCopy> every_way() {
    const auto streaming = streaming_copies();
    std::vector<StreamingCopy> ways(streaming.begin(), streaming.end());
    ways.push_back({"copy", copy});
    return ways;
}

TEST(ACopy, IsExactForEveryShortLength) {
    base::RandomStream random(1, "copy");
    for (const auto& way : every_way()) {
        for (std::size_t bytes = 0; bytes <= 300; ++bytes) {
            check(way, bytes, random.uniform_int(64), random.uniform_int(64), random);
        }
    }
}

TEST(ACopy, IsExactForEveryAlignmentOfSourceAndTarget) {
    base::RandomStream random(2, "copy");
    for (const auto& way : every_way()) {
        for (std::size_t offset = 0; offset < 64; ++offset) {
            check(way, 513, offset, random.uniform_int(64), random);
            check(way, 513, random.uniform_int(64), offset, random);
        }
    }
}

TEST(ACopy, IsExactForRandomLengthsAroundTheThresholdAndAbove) {
    base::RandomStream random(3, "copy");
    for (const auto& way : every_way()) {
        check(way, kStreamedFrom - 1, 1, 1, random);
        check(way, kStreamedFrom, 1, 1, random);
        for (int i = 0; i < 100; ++i) {
            check(way, random.uniform_int(100'000), random.uniform_int(5000),
                  random.uniform_int(5000), random);
        }
    }
}

}  // namespace
}  // namespace daqloom::live
