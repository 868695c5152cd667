// A step function over time, such as the occupancy of a switch, in bins for plots.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/units.hpp"

namespace daqloom::sim {

/// Maximum and time-weighted mean of a step function in equal bins of [start, end), and its
/// overall peak with the time at which it was first reached.
///
///     value      ┌──┐                  set(t, v): the function is v from t on, until the next
///             ┌──┘  └─────┐            set. A value that lasts no time counts for the maximum,
///         ────┘           └────        not for the mean. The function starts at 0 and is never
///         |     bin     |     bin      negative. A bin includes its start, not its end.
///
/// Before `start` and from `end` on, values only carry over into the bins.
///
/// If the exact value is expensive but an upper bound is known, the caller may omit calls of set
/// that cannot change a maximum. Maxima and peak stay exact as long as the function rises only at
/// calls; means are then those of the function through the points that were set.
///
///     if (series.would_raise(now, upper_bound)) {
///         while (series.bin_end() <= now) { series.set(series.bin_end(), exact_value_then); }
///         series.set(now, exact_value);
///     }
class TimeSeries {
  public:
    struct Bin {
        std::int64_t max = 0;
        double mean = 0;
    };

    struct Peak {
        std::int64_t value = 0;
        base::Time at;
    };

    /// The bins are (end - start) / bins long, rounded up to a picosecond; the last bin ends at
    /// `end` and may be shorter. Requires start < end and bins > 0.
    TimeSeries(base::Time start, base::Time end, std::size_t bins)
        : start_(start),
          end_(end),
          width_{((end - start).ps + static_cast<std::int64_t>(bins) - 1) /
                 static_cast<std::int64_t>(bins)},
          bin_end_(start) {
        assert(start < end && bins > 0);
        bins_.reserve(bins);
    }

    /// Sets the function to `value` from `now` on. `now` must never decrease.
    void set(base::Time now, std::int64_t value) {
        if (now >= bin_end_) {
            close_bins(now);
            if (now == since_ && now < end_) {
                bin_max_ = kUnset;  // the earlier value does not count for the new bin
            }
        }
        area_ += area_until(now);
        since_ = now;
        value_ = value;
        if (value > bin_max_) {
            bin_max_ = value;
            bin_max_at_ = now;
            if (value > peak_.value) {
                peak_ = {value, now};
            }
        }
    }

    /// Whether a value of at most `upper_bound` at `now` could raise the maximum of a bin.
    [[nodiscard]] bool would_raise(base::Time now, std::int64_t upper_bound) const {
        return upper_bound > bin_max_ || now >= bin_end_;
    }

    /// Time at which the next bin starts; never() after the last bin.
    [[nodiscard]] base::Time bin_end() const { return bin_end_; }

    /// Extends the last value to `now` and closes the bin of `now`. Called once, at the end of a
    /// run.
    void finish(base::Time now) {
        now = std::min(now, end_);
        close_bins(now);
        if (now > bin_start()) {
            close_bin(now);
        }
    }

    /// The bins closed so far; after finish(end), all bins.
    [[nodiscard]] const std::vector<Bin>& bins() const { return bins_; }
    [[nodiscard]] base::Time start() const { return start_; }
    [[nodiscard]] base::Time bin_width() const { return width_; }
    /// Peak of all values set. A value carried over `start` is included after finish() at the
    /// latest.
    [[nodiscard]] Peak peak() const { return peak_; }

  private:
    static constexpr std::int64_t kUnset = -1;
    static constexpr std::int64_t kClosed = std::numeric_limits<std::int64_t>::max();

    [[nodiscard]] base::Time bin_start() const {
        return start_ + width_ * static_cast<std::int64_t>(bins_.size());
    }

    [[nodiscard]] double area_until(base::Time now) const {
        return static_cast<double>(value_) * static_cast<double>((now - since_).ps);
    }

    void close_bins(base::Time now) {
        while (now >= bin_end_) {
            close_bin(bin_end_);
        }
    }

    /// Ends the current bin, or the time before the first bin, and starts the next bin.
    void close_bin(base::Time at) {
        if (at > start_) {
            area_ += area_until(at);
            bins_.push_back({bin_max_, area_ / static_cast<double>((at - bin_start()).ps)});
            if (bin_max_ > peak_.value) {
                peak_ = {bin_max_, bin_max_at_};
            }
        }
        const bool was_last = at == end_;
        since_ = bin_max_at_ = at;
        area_ = 0;
        bin_max_ = was_last ? kClosed : value_;
        bin_end_ = was_last ? base::Time::never() : std::min(at + width_, end_);
    }

    base::Time start_;
    base::Time end_;
    base::Time width_;
    base::Time bin_end_;  ///< end of the current bin; `start_` before the first
    base::Time since_;    ///< the current bin is accounted for up to here
    std::int64_t value_ = 0;
    std::int64_t bin_max_ = kClosed;  ///< outside the bins, nothing is a maximum
    base::Time bin_max_at_;
    /// Integral over the current bin, in value · ps; an int64 would overflow at 1 GB · 10 s.
    double area_ = 0;
    std::vector<Bin> bins_;
    Peak peak_;
};

}  // namespace daqloom::sim
