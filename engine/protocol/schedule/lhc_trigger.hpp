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

/// A trigger that accepts all filled crossings with equal probability, unless dead time vetoes
/// them.
///
/// Vetoed crossings need not be simulated, because a veto does not depend on the triggers that it
/// suppresses: the next accepted crossing is a geometric number of filled crossings after the first
/// one that is not vetoed.
class LhcTrigger {
  public:
    /// A filled orbit of one crossing without dead time.
    LhcTrigger() = default;

    /// `filling_scheme`: an entry per crossing of an orbit, non-zero if it is filled, with at least
    /// one filled; empty: all crossings are filled. `simple_dead_time_bx`: number of vetoed
    /// crossings after an accepted one.
    LhcTrigger(const std::vector<std::uint8_t>& filling_scheme, std::uint32_t simple_dead_time_bx,
               const std::vector<LeakyBucket>& complex_dead_time);

    /// Sets the probability such that accepted crossings are on average `filled_crossings` (at
    /// least 1) filled crossings apart, or as close as the dead time permits. Returns the mean
    /// distance reached: exact without dead time, otherwise measured, within 1e-4 if a few percent
    /// of the crossings are vetoed and within one percent if most are.
    double set_mean_distance(double filled_crossings);

    /// Number of the next accepted crossing. All crossings, filled or not, are numbered from 0.
    std::int64_t next(base::RandomStream& random);

  private:
    /// Leaky bucket. Its unit is 1 / window_bx of a trigger, so that every level is an integer.
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
    /// Number, among the filled crossings of the run, of the first one from `crossing` on.
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
