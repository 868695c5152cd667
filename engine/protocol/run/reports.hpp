// Reports of units to the run control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/fields.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/named_counters.hpp"
#include "protocol/run/states.hpp"

namespace daqloom::protocol::reports {

/// Activity and progress of a unit.
struct Pulse {
    DAQLOOM_FIELDS(Pulse, (std::uint32_t, epoch, "Epoch of the unit."),
                   (UnitState, state, "State of the unit."),
                   (std::optional<std::uint64_t>, beats,
                    "Iterations of the data loop: they rise while the data thread runs."),
                   (std::optional<std::uint64_t>, steps,
                    "Progress of event building: it rises with writes made and MEPs built."),
                   (bool, waits,
                    "Whether it waits for its own source or sink: no progress is expected."),
                   (std::uint64_t, next_mep, "First MEP not yet answered by a builder unit."),
                   (std::vector<UnitIndex>, suspects, "Units that the unit cannot reach."),
                   (std::string, failure, "Cause of the unit's error; empty without an error."))
};

/// The periodic report of a unit.
struct Heartbeat {
    DAQLOOM_FIELDS(Heartbeat, (std::uint64_t, number, "Number of the report; numbers rise."),
                   (Pulse, pulse, "Activity and progress of the unit."),
                   (std::optional<std::uint32_t>, ended,
                    "Last epoch of a node that has been shut, whose final counters these are; 0: "
                    "it was in none."),
                   (NamedCounters, counters, "Counters of the unit."))
};

/// The answer to an order that has been carried out or has failed.
struct Answer {
    DAQLOOM_FIELDS(Answer, (std::uint64_t, number, "Number of the report; numbers rise."),
                   (std::uint64_t, order, "Number of the order."),
                   (UnitState, state, "State of the unit."),
                   (std::string, failure, "Cause of the failure of the order; else empty."),
                   (std::vector<std::byte>, address, "Prepare: address for the other units."),
                   (std::vector<UnitIndex>, missing, "Connect, halt: units that did not answer."),
                   (std::uint64_t, next_mep, "Halt: first MEP not answered by a builder unit."),
                   (NamedCounters, counters, "Counters of the unit."))
};

/// State of a process that keeps its node and joins the run control of its run again.
struct Rejoin {
    DAQLOOM_FIELDS(Rejoin, (std::uint32_t, epoch, "Epoch of the unit."),
                   (std::uint32_t, started, "Last epoch that the unit has started."),
                   (UnitState, state, "State of the unit."))
};

using Report = std::variant<Heartbeat, Answer>;

/// Why the run control refuses a report; the run goes on.
enum class Refusal : std::uint8_t {
    epoch,    ///< the report is of another epoch than the unit's
    unasked,  ///< an answer to an order that was never given
    session,  ///< the report is from a process that another has replaced
};

[[nodiscard]] constexpr std::string_view name_of(Refusal refusal) {
    constexpr std::string_view names[] = {"epoch", "unasked", "session"};
    return names[static_cast<std::size_t>(refusal)];
}

}  // namespace daqloom::protocol::reports
