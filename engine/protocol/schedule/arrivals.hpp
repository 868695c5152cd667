// The arrival times of events.
#pragma once

#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/random.hpp"
#include "base/units.hpp"
#include "protocol/schedule/lhc_trigger.hpp"

namespace daqloom::protocol {

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

    // ---- `lhc` only
    base::Time bunch_spacing = base::nanoseconds(25);
    /// One entry per crossing of an orbit, non-zero if it is filled; empty: every crossing is.
    std::vector<std::uint8_t> filling_scheme = {};
    /// Simple dead time: so many crossings after an accepted one are vetoed.
    std::uint32_t simple_dead_time_bx = 0;
    std::vector<LeakyBucket> complex_dead_time = {};

    // ---- `trace` only
    /// Not negative, not decreasing.
    std::vector<base::Time> trace_times = {};
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
    Arrivals(ArrivalsConfig config, base::RandomStream random);

    ArrivalsConfig config_;
    base::RandomStream random_;
    LhcTrigger trigger_;
    double mean_rate_hz_;
    base::Time last_ = base::Time::zero();
    std::int64_t count_ = 0;
};

}  // namespace daqloom::protocol
