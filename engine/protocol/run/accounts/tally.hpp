// Sums of a unit's counters that continue when its process is restarted, is reset or ends.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "protocol/run/accounts/named_counters.hpp"

namespace daqloom::protocol {

/// Names of gauges: counters of a current state, which are not summed.
using Gauges = std::set<std::string, std::less<>>;

/// Sums a unit's counters over all processes that the unit has had.
class Tally {
  public:
    explicit Tally(Gauges gauges = {}) : gauges_(std::move(gauges)) {}

    /// The sums until now.
    [[nodiscard]] const NamedCounters& totals() const { return totals_; }

    /// Whether a reading comes from a new process, or from a process that was reset.
    [[nodiscard]] bool begins_anew(const NamedCounters& counters) const {
        return counters.number(counter_names::elapsed_s) < read_s_;
    }

    /// Adds a new reading. A counter that is smaller than before has restarted at 0.
    void read(const NamedCounters& counters);

  private:
    Gauges gauges_;
    NamedCounters totals_;
    NamedCounters last_;
    double read_s_ = 0;
};

}  // namespace daqloom::protocol
