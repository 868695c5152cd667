// A histogram of durations of any magnitude, in fixed memory.
#pragma once

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/fields.hpp"
#include "base/log_buckets.hpp"
#include "base/units.hpp"

namespace daqloom::sim {

/// Counts durations in buckets like HdrHistogram: 128 equal buckets per power of two, each at most
/// 1/128 of its value wide, and exact buckets below 256 ps; 58 KB. Mean, minimum and maximum are
/// exact, quantiles within 0.4 %.
class Histogram {
  public:
    struct Bucket {
        DAQLOOM_FIELDS(Bucket, (base::Time, lowest, "Shortest duration of each bucket."),
                       (base::Time, width, "Width of each bucket."),
                       (std::uint64_t, count, "Number of durations in each bucket."))
    };

    Histogram() : counts_(Buckets::count) {}

    /// Records a duration; a negative one counts as zero.
    void record(base::Time duration) {
        const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.ps, 0));
        ++counts_[Buckets::of(value)];
        ++count_;
        sum_low_ += value;
        sum_high_ += static_cast<std::uint64_t>(sum_low_ < value);
        min_ = std::min(min_, value);
        max_ = std::max(max_, value);
    }

    [[nodiscard]] std::uint64_t count() const { return count_; }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    /// Largest duration; zero if empty, as are mean, min and quantiles.
    [[nodiscard]] base::Time max() const { return time(max_); }
    [[nodiscard]] base::Time min() const { return time(empty() ? 0 : min_); }

    /// Mean in picoseconds; 0 when empty.
    [[nodiscard]] double mean_ps() const {
        const auto sum =
            std::ldexp(static_cast<double>(sum_high_), 64) + static_cast<double>(sum_low_);
        return empty() ? 0 : sum / static_cast<double>(count_);
    }

    /// The smallest duration that a share `q` of all durations does not exceed, 0 <= q <= 1: the
    /// middle of the bucket with the ⌈q·count⌉-th smallest duration, within [min, max].
    [[nodiscard]] base::Time quantile(double q) const {
        if (empty()) {
            return base::Time::zero();
        }
        const auto rank = std::max(1.0, std::ceil(q * static_cast<double>(count_)));
        std::uint64_t counted = 0;
        std::size_t bucket = 0;
        while (bucket + 1 < Buckets::count &&
               static_cast<double>(counted += counts_[bucket]) < rank) {
            ++bucket;
        }
        const auto middle = Buckets::lowest(bucket) + (Buckets::width(bucket) - 1) / 2;
        return time(std::clamp(middle, min_, max_));
    }

    /// The buckets that are not empty, in ascending order.
    [[nodiscard]] std::vector<Bucket> buckets() const {
        std::vector<Bucket> filled;
        for (std::size_t bucket = 0; bucket < Buckets::count; ++bucket) {
            if (counts_[bucket] != 0) {
                filled.push_back(
                    {time(Buckets::lowest(bucket)), time(Buckets::width(bucket)), counts_[bucket]});
            }
        }
        return filled;
    }

  private:
    using Buckets = base::LogBuckets<7>;

    static base::Time time(std::uint64_t ps) { return {static_cast<std::int64_t>(ps)}; }

    std::vector<std::uint64_t> counts_;
    std::uint64_t count_ = 0;
    std::uint64_t sum_low_ = 0;  ///< sum of all durations, 128 bits
    std::uint64_t sum_high_ = 0;
    std::uint64_t min_ = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t max_ = 0;
};

}  // namespace daqloom::sim
