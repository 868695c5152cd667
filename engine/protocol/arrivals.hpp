// When events come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/units.hpp"

namespace daqloom::protocol {

/// Complex dead time: a leaky bucket that holds `triggers` triggers and leaks evenly, `triggers`
/// per `window_bx` bunch crossings; while it has no room for a whole trigger, crossings are vetoed.
/// A bucket that ATLAS calls X/R (X triggers, one leaks every R crossings) is {X, X · R}.
struct LeakyBucket {
    std::uint32_t triggers = 1;
    std::uint32_t window_bx = 1;
};

struct ArrivalsConfig {
    enum class Kind {
        poisson,        ///< independent events: exponential intervals
        deterministic,  ///< the k-th event at k / rate, k = 1, 2, …
        lhc,            ///< random filled bunch crossings, thinned by dead time
        trace,          ///< the times in `trace_times`
    };

    Kind kind = Kind::poisson;

    /// Mean rate; of accepted triggers for `lhc`. 1 mHz … 1 THz; no meaning for `trace`.
    double rate_hz = 0;

    // lhc only
    base::Time bunch_spacing = base::nanoseconds(25);
    /// One entry per crossing of an orbit, non-zero if it is filled; empty: every crossing is.
    std::vector<std::uint8_t> filling_scheme;
    /// Simple dead time: so many crossings after an accepted one are vetoed.
    std::uint32_t simple_dead_time_bx = 0;
    std::vector<LeakyBucket> complex_dead_time;

    /// For `trace`: not negative, not decreasing.
    std::vector<base::Time> trace_times;
};

/// The process that produces events.
class Arrivals {
  public:
    static base::expected<Arrivals> make(ArrivalsConfig config, base::RandomStream random);

    /// The next arrival, not before the last one; Time::never() after the end of a trace (and of
    /// the clock, after 53 days).
    base::Time next();

    /// The mean rate that `next` produces: the configured one, or less where the dead times of
    /// `lhc` do not permit it; of a trace, its events over its last instant (0 if that is 0).
    [[nodiscard]] double mean_rate_hz() const { return mean_rate_hz_; }

  private:
    /// A random thinning of an orbit's filled crossings.
    ///
    /// A veto never looks at what it vetoes, so the crossings during a dead time need no draw: the
    /// next accepted one is a geometric number of filled crossings after the first live one.
    class Thinning {
      public:
        Thinning() = default;
        explicit Thinning(const ArrivalsConfig& config);

        /// The chance of a live, filled crossing to be accepted.
        void set_probability(double probability) { probability_ = probability; }

        /// The number of the next accepted crossing, counted from the start of the run.
        std::int64_t next(base::RandomStream& random);

        /// Filled crossings that dead time has vetoed so far.
        [[nodiscard]] std::int64_t vetoed() const { return vetoed_; }
        [[nodiscard]] double filled_fraction() const;

      private:
        struct Bucket {
            std::int64_t leak_per_bx;  ///< in units of 1 / window of a trigger …
            std::int64_t trigger;      ///< … so that a trigger is `window_bx` of them
            std::int64_t capacity;
            std::int64_t level = 0;  ///< at crossing `at`
            std::int64_t at = 0;

            [[nodiscard]] std::int64_t first_with_room() const;
            void fill(std::int64_t crossing);
        };

        [[nodiscard]] std::int64_t first_live_crossing() const;
        /// Filled crossings are numbered too: 0 for the first of the run.
        [[nodiscard]] std::int64_t first_filled_from(std::int64_t crossing) const;
        [[nodiscard]] std::int64_t crossing_of(std::int64_t filled) const;

        std::int64_t orbit_ = 1;
        std::vector<std::int64_t> filled_{0};  ///< crossings of an orbit, ascending
        std::int64_t simple_dead_time_ = 0;
        std::vector<Bucket> buckets_;
        double probability_ = 1;
        std::int64_t last_crossing_ = -1;  ///< accepted
        std::int64_t last_filled_ = -1;    ///< the same one's number among the filled
        std::int64_t vetoed_ = 0;
    };

    Arrivals(ArrivalsConfig config, base::RandomStream random);

    /// Sets the thinning's probability so that the accepted rate is the configured one.
    void calibrate_thinning();

    ArrivalsConfig config_;
    base::RandomStream random_;
    Thinning thinning_;
    double mean_rate_hz_;
    base::Time last_ = base::Time::zero();
    std::int64_t count_ = 0;
};

}  // namespace daqloom::protocol
