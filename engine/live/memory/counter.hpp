// Counters and histograms that one thread increments while others read.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/log_buckets.hpp"
#include "base/units.hpp"

namespace daqloom::live {

/// A counter that one thread writes and any thread reads, without locked instructions.
class Counter {
  public:
    Counter() = default;
    Counter(const Counter& other) : value_(other.get()) {}
    Counter& operator=(const Counter& other) {
        set(other.get());
        return *this;
    }

    void add(std::uint64_t more) { set(get() + more); }
    void add(base::Time more) { add(static_cast<std::uint64_t>(more.ps)); }
    void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

    Counter& operator++() {
        add(1);
        return *this;
    }
    Counter& operator+=(std::uint64_t more) {
        add(more);
        return *this;
    }
    operator std::uint64_t() const { return get(); }  // NOLINT: it is a number

  private:
    std::atomic<std::uint64_t> value_ = 0;
};

/// A counter of a current state: readings of several processes are not summed.
class Gauge : public Counter {};

/// Histogram of durations (ps), with buckets of at most 1/16 of their value. It takes 7.7 KB, and a
/// few nanoseconds per record. Counts only grow, so a reader can subtract two readings.
class LatencyHistogram {
  public:
    using Buckets = base::LogBuckets<4>;

    /// Negative durations count as zero.
    void record(base::Time duration) {
        const auto ps = static_cast<std::uint64_t>(std::max<std::int64_t>(duration.ps, 0));
        counts_[Buckets::of(ps)].add(1);
    }

    /// Calls see(bucket, count) for each filled bucket, in rising order.
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
