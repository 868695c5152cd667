// Logarithmic buckets for histograms over all magnitudes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace daqloom::base {

/// Buckets as in HdrHistogram: 2^SubBits equal buckets per power of two, each at most 1/2^SubBits
/// of its value wide, and exact buckets below 2^(SubBits + 1). Values must be below 2^63.
template <int SubBits>
struct LogBuckets {
    static constexpr std::size_t per_octave = std::size_t{1} << SubBits;
    static constexpr std::size_t count = (63 - SubBits + 1) * per_octave;

    /// Bucket of a value. The SubBits + 1 leading bits of a value with n > SubBits bits select a
    /// bucket of 2^(n - SubBits - 1) values. The leading 1 of these bits carries into the octave.
    static constexpr std::size_t of(std::uint64_t value) {
        const auto octave = std::max(static_cast<int>(std::bit_width(value)) - SubBits - 1, 0);
        return (static_cast<std::size_t>(octave) << SubBits) + (value >> octave);
    }
    /// The bucket is [lowest, lowest + width).
    static constexpr std::uint64_t lowest(std::size_t bucket) {
        return (bucket - octave_of(bucket) * per_octave) << octave_of(bucket);
    }
    static constexpr std::uint64_t width(std::size_t bucket) {
        return std::uint64_t{1} << octave_of(bucket);
    }

  private:
    static constexpr std::size_t octave_of(std::size_t bucket) {
        return bucket < 2 * per_octave ? 0 : bucket / per_octave - 1;
    }
};

}  // namespace daqloom::base
