// A random trigger on LHC bunch crossings, with dead time.
#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace daqloom::protocol {

/// Complex dead time: a leaky bucket that holds `triggers` triggers and leaks evenly, `triggers`
/// per `window_bx` bunch crossings; while it has no room for a whole trigger, crossings are vetoed.
/// A bucket that ATLAS calls X/R (X triggers, one leaks every R crossings) is {X, X · R}.
struct LeakyBucket {
    std::uint32_t triggers = 1;
    std::uint32_t window_bx = 1;
};

/// A trigger that accepts each filled crossing with one probability, unless dead time vetoes it.
///
/// A veto does not depend on the triggers that it suppresses. Therefore vetoed crossings need not
/// be simulated: the next accepted one is a geometric number of filled crossings after the first
/// live one.
class LhcTrigger {
  public:
    /// A filled orbit of one crossing without dead time.
    LhcTrigger() = default;

    /// `filling_scheme`: an entry per crossing of an orbit, non-zero if it is filled, at least one
    /// of them; empty: all are filled. `simple_dead_time_bx`: number of vetoed crossings after an
    /// accepted one.
    LhcTrigger(const std::vector<std::uint8_t>& filling_scheme, std::uint32_t simple_dead_time_bx,
               const std::vector<LeakyBucket>& complex_dead_time);

    /// Makes accepted crossings `filled_crossings` (at least 1) filled ones apart in the mean, or
    /// as close as the dead time permits. Returns the mean distance reached: exact without dead
    /// time, otherwise measured, within 1e-4 where a few percent of the crossings are vetoed and
    /// within one percent where most are.
    double set_mean_distance(double filled_crossings);

    /// The number of the next accepted crossing, counted from the start of the run, filled or not.
    std::int64_t next(base::RandomStream& random);

  private:
    /// Counts in 1 / window_bx of a trigger, so that every level is a whole number.
    struct Bucket {
        std::int64_t leak_per_bx;
        std::int64_t trigger;
        std::int64_t capacity;
        std::int64_t level = 0;  ///< at crossing `at`, its trigger included
        std::int64_t at = 0;

        [[nodiscard]] std::int64_t first_crossing_with_room() const;
        void fill(std::int64_t crossing);
    };

    [[nodiscard]] double measured_mean_distance(double inverse_probability) const;
    [[nodiscard]] std::int64_t first_live_crossing() const;
    /// Filled crossings have numbers of their own: 0 for the first of the run.
    [[nodiscard]] std::int64_t first_filled_from(std::int64_t crossing) const;
    [[nodiscard]] std::int64_t crossing_of(std::int64_t filled) const;

    std::int64_t orbit_ = 1;
    std::vector<std::int64_t> filled_{0};  ///< crossings of an orbit, ascending
    std::int64_t simple_dead_time_ = 0;
    std::vector<Bucket> buckets_;
    double probability_ = 1;
    std::int64_t last_crossing_ = -1;  ///< accepted
    std::int64_t last_filled_ = -1;    ///< the same one's number among the filled
    std::int64_t vetoed_ = 0;          ///< filled crossings
};

}  // namespace daqloom::protocol
