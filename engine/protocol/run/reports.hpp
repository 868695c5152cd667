// Reports of units to the run control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/named_counters.hpp"
#include "protocol/run/states.hpp"

namespace daqloom::protocol::reports {

/// Activity and progress of a unit.
struct Pulse {
    std::uint32_t epoch = 0;
    UnitState state = UnitState::not_ready;
    /// Iterations of the data loop: they rise while the data thread runs.
    std::optional<std::uint64_t> beats = std::nullopt;
    /// Progress of event building: it rises with writes made and MEPs built.
    std::optional<std::uint64_t> steps = std::nullopt;
    /// The unit waits for its own source or sink, so that no progress is expected.
    bool waits = false;
    std::uint64_t next_mep = 0;            ///< first MEP not yet answered by a builder unit
    std::vector<UnitIndex> suspects = {};  ///< units that it cannot reach
    std::string failure = {};              ///< why it is in error; else empty
};

/// The periodic report of a unit.
struct Heartbeat {
    std::uint64_t number = 0;  ///< rises with each report of the unit
    Pulse pulse = {};
    /// The last epoch of a node that has been shut, whose final counters these are; 0: it had none.
    std::optional<std::uint32_t> ended = std::nullopt;
    NamedCounters counted = {};
};

/// The answer to an order that has been carried out or has failed.
struct Answer {
    std::uint64_t number = 0;  ///< rises with each report of the unit
    std::uint64_t order = 0;   ///< the number of the order
    UnitState state = UnitState::not_ready;
    std::string failure = {};             ///< why the order could not be done; else empty
    std::string address = {};             ///< prepare: for the other units, which understand it
    std::vector<UnitIndex> missing = {};  ///< connect, halt: units that did not answer
    std::uint64_t next_mep = 0;           ///< halt: first MEP not answered by a builder unit
    NamedCounters counted = {};
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
