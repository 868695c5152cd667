// The log of a run, for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/states.hpp"

namespace daqloom::protocol {

/// Subject of an entry of a run's log.
enum class About : std::uint8_t {
    course,   ///< the run follows its goal
    unit,     ///< trouble with a unit: it is lost, did not join or cannot write
    fault,    ///< a fault injected on purpose, or repaired
    failure,  ///< the whole run fails
};

[[nodiscard]] constexpr std::string_view name_of(About about) {
    constexpr std::string_view names[] = {"course", "unit", "fault", "failure"};
    return names[static_cast<std::size_t>(about)];
}

struct RunEvent {
    DAQLOOM_FIELDS(RunEvent, (base::Time, time, "Time since the start of the run control."),
                   (std::string, text, "Text of the entry."),
                   (About, about, "Subject of the entry.", About::course),
                   (RunPhase, phase, "Phase of the run from then on.", RunPhase::waiting),
                   (std::size_t, members, "Number of members from then on."),
                   (std::optional<UnitIndex>, lost, "The unit that is declared lost, or None."))

    /// Whether the entry is about trouble with a unit or with the whole run.
    [[nodiscard]] bool is_trouble() const {
        return about == About::unit || about == About::failure;
    }
};

/// Counts over the whole run.
struct RunCounts {
    DAQLOOM_FIELDS(RunCounts, (std::uint64_t, units_lost, "Units declared lost."),
                   (std::uint64_t, regroupings, "Halts after which the run was to go on."),
                   (std::uint64_t, run_events, "Entries of the log, including those not kept."))
};

class RunLog {
  public:
    /// Limit on entries kept; later ones are only counted.
    static constexpr std::size_t most_events = 10'000;

    void note(RunEvent event) {
        ++counts.run_events;
        if (events_.size() < most_events) {
            events_.push_back(std::move(event));
        }
    }

    [[nodiscard]] const std::vector<RunEvent>& events() const { return events_; }

    RunCounts counts;

  private:
    std::vector<RunEvent> events_;
};

}  // namespace daqloom::protocol
