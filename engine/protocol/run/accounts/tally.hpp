// Sums of a unit's counters that continue when its process is restarted, is reset or ends.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/fields.hpp"
#include "protocol/run/accounts/named_counters.hpp"

namespace daqloom::protocol {

/// Names of gauges: counters of a current state, which are not summed.
using Gauges = std::set<std::string, std::less<>>;

/// State of a tally.
struct TallySnapshot {
    DAQLOOM_FIELDS(TallySnapshot, (NamedCounters, totals, "Sums until now."),
                   (NamedCounters, last, "Last reading of the unit's node."),
                   (double, read_s, "Age of the unit's node at the last reading."),
                   (double, made_s,
                    "Time at which the node was made, by its own clock; 0: unknown."))
};

/// Sums a unit's counters over all processes that the unit has had.
class Tally {
  public:
    explicit Tally(Gauges gauges = {}) : gauges_(std::move(gauges)) {}

    /// The sums until now.
    [[nodiscard]] const NamedCounters& totals() const { return state_.totals; }

    /// Whether a reading comes from a new process, or from a process that was reset.
    [[nodiscard]] bool begins_anew(const NamedCounters& counters) const {
        const double made_s = counters.number(counter_names::made_s);
        return made_s != 0 && state_.made_s != 0
                   ? made_s != state_.made_s
                   : counters.number(counter_names::elapsed_s) < state_.read_s;
    }

    /// Adds a new reading. A counter that is smaller than before has restarted at 0.
    void read(const NamedCounters& counters);

    [[nodiscard]] const TallySnapshot& snapshot() const { return state_; }
    void resume(TallySnapshot state) { state_ = std::move(state); }

  private:
    Gauges gauges_;
    TallySnapshot state_;
};

}  // namespace daqloom::protocol
