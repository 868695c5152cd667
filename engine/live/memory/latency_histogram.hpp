// A histogram of latencies, counted by one thread and read by others.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/log_buckets.hpp"
#include "base/units.hpp"
#include "live/memory/counter.hpp"

namespace daqloom::live {

/// Buckets of picoseconds, 1/16 of their value wide at most. Takes 7.7 KB, and a few nanoseconds to
/// count. It only grows: a reader takes the difference of two readings.
class LatencyHistogram {
  public:
    using Buckets = base::LogBuckets<4>;

    /// Negative durations count as zero.
    void record(base::Time duration) {
        const auto ps = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.ps, 0));
        counts_[Buckets::of(ps)].add(1);
    }

    /// Calls see(bucket, count) for those that hold something, in rising order.
    template <class See>
    void each(See see) const {
        for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
            if (const std::uint64_t count = counts_[bucket].get(); count != 0) {
                see(bucket, count);
            }
        }
    }

  private:
    std::array<Counter, Buckets::count> counts_;
};

}  // namespace daqloom::live
