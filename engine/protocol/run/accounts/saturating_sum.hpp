// Saturating sums: a unit may report any number, and a sum of reports must not overflow.
#pragma once

#include <cstdint>
#include <limits>

namespace daqloom::protocol {

/// a + b, or the closest representable number.
[[nodiscard]] constexpr std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
    std::int64_t sum = 0;
    if (!__builtin_add_overflow(a, b, &sum)) {
        return sum;
    }
    return b < 0 ? std::numeric_limits<std::int64_t>::min()
                 : std::numeric_limits<std::int64_t>::max();
}

/// The whole part of a number, or the closest representable one; 0 for NaN.
[[nodiscard]] constexpr std::int64_t saturating_whole(double value) {
    constexpr double kEnd = 9223372036854775808.0;  // 2^63
    if (value >= kEnd) {
        return std::numeric_limits<std::int64_t>::max();
    }
    if (value <= -kEnd) {
        return std::numeric_limits<std::int64_t>::min();
    }
    return value == value ? static_cast<std::int64_t>(value) : 0;
}

}  // namespace daqloom::protocol
