// A histogram of durations over all magnitudes, in fixed memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/units.hpp"

namespace daqloom::sim {

/// Counts durations in buckets of at most 1/128 of their value, after HdrHistogram: 128 equal
/// buckets per power of two, and exact ones below 256 ps. Takes 58 KB. Mean, minimum and maximum
/// are exact, quantiles within 0.4 %.
class Histogram {
  public:
    struct Bucket {
        base::Time lowest;  // the bucket is [lowest, lowest + width)
        base::Time width;
        std::uint64_t count = 0;
    };

    Histogram() : counts_(kBuckets) {}

    /// Negative durations count as zero.
    void record(base::Time duration) {
        const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.ps, 0));
        ++counts_[bucket_of(value)];
        ++count_;
        sum_low_ += value;
        sum_high_ += static_cast<std::uint64_t>(sum_low_ < value);
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
    }

    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    /// Zero when empty, like mean, min and quantiles.
    [[nodiscard]] base::Time max() const { return time(max_); }
    [[nodiscard]] base::Time min() const { return time(empty() ? 0 : min_); }

    /// In picoseconds.
    [[nodiscard]] double mean_ps() const {
        const auto sum =
            std::ldexp(static_cast<double>(sum_high_), 64) + static_cast<double>(sum_low_);
        return empty() ? 0 : sum / static_cast<double>(count_);
    }

    /// The smallest duration that a share `q` of all does not exceed, 0 <= q <= 1: the middle of
    /// the bucket with the ⌈q·count⌉-th smallest, within [min, max].
    [[nodiscard]] base::Time quantile(double q) const {
        if (empty()) {
            return base::Time::zero();
        }
        const auto rank = std::max(1.0, std::ceil(q * static_cast<double>(count_)));
        std::uint64_t seen = 0;
        std::size_t bucket = 0;
        while (bucket + 1 < kBuckets && static_cast<double>(seen += counts_[bucket]) < rank) {
            ++bucket;
        }
        const auto middle = lowest_of(bucket) + (width_of(bucket) - 1) / 2;
        return time(std::clamp(middle, min_, max_));
    }

    /// The buckets that hold something, in rising order.
    [[nodiscard]] std::vector<Bucket> buckets() const {
        std::vector<Bucket> filled;
        for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
            if (counts_[bucket] != 0) {
                filled.push_back(
                    {time(lowest_of(bucket)), time(width_of(bucket)), counts_[bucket]});
            }
        }
        return filled;
    }

  private:
    static constexpr int kSubBits = 7;
    static constexpr std::size_t kSubBuckets = std::size_t{1} << kSubBits;
    static constexpr std::size_t kBuckets = (63 - kSubBits + 1) * kSubBuckets;

    static base::Time time(std::uint64_t ps) { return {static_cast<std::int64_t>(ps)}; }

    // A value of n > 7 bits falls by its 8 leading bits into a bucket of 2^(n-8) values. The
    // leading 1 of these 8 bits carries into the octave, hence octave · 128 + (128 … 255).
    static std::size_t bucket_of(std::uint64_t value) {
        const auto octave = std::max(static_cast<int>(std::bit_width(value)) - kSubBits - 1, 0);
        return (static_cast<std::size_t>(octave) << kSubBits) + (value >> octave);
    }

    static std::size_t octave_of(std::size_t bucket) {
        return bucket < 2 * kSubBuckets ? 0 : bucket / kSubBuckets - 1;
    }

    static std::uint64_t width_of(std::size_t bucket) {
        return std::uint64_t{1} << octave_of(bucket);
    }

    static std::uint64_t lowest_of(std::size_t bucket) {
        const auto octave = octave_of(bucket);
        return (bucket - octave * kSubBuckets) << octave;
    }

    std::vector<std::uint64_t> counts_;
    std::uint64_t count_ = 0;
    std::uint64_t sum_low_ = 0;  // of all durations, 128 bits
    std::uint64_t sum_high_ = 0;
    std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_ = 0;
};

}  // namespace daqloom::sim
