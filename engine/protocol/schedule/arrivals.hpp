// The arrival times of events.
#pragma once

#include <cstdint>
#include <vector>

#include "base/expected.hpp"
#include "base/fields.hpp"
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

    DAQLOOM_FIELDS(
        ArrivalsConfig, (Kind, kind, "Process of the arrivals.", Kind::poisson),
        (double, rate_hz,
         "Mean rate, 1 mHz to 1 THz; of accepted triggers for `lhc`; no meaning for `trace`."),
        (base::Time, bunch_spacing, "`lhc`: time between bunch crossings.", base::nanoseconds(25)),
        (std::vector<std::uint8_t>, filling_scheme,
         "`lhc`: an entry per crossing of an orbit, 0 if it is empty; without entries all are "
         "filled."),
        (std::uint32_t, simple_dead_time_bx,
         "`lhc`: crossings after an accepted one that are vetoed."),
        (std::vector<LeakyBucket>, complex_dead_time, "`lhc`: leaky buckets."),
        (std::vector<base::Time>, trace_times, "`trace`: times, not negative, not decreasing."))
};

/// The process that produces events.
class Arrivals {
  public:
    static base::expected<Arrivals> make(ArrivalsConfig config, base::RandomStream random);

    /// Time of the next event, never before the previous one; Time::never() after the end of a
    /// trace or of the clock (53 days).
    base::Time next();

  private:
    Arrivals(ArrivalsConfig config, base::RandomStream random);

    ArrivalsConfig config_;
    base::RandomStream random_;
    LhcTrigger trigger_;
    base::Time last_ = base::Time::zero();
    std::int64_t count_ = 0;
};

}  // namespace daqloom::protocol
