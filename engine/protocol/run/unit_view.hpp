// A unit as the run control sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/tally.hpp"
#include "protocol/run/reports.hpp"
#include "protocol/run/states.hpp"

namespace daqloom::protocol {

/// The order that a unit is carrying out.
struct PendingOrder {
    std::uint64_t number = 0;
    base::Time until;
    std::string what;
};

struct UnitView {
    UnitView(UnitIndex unit, Gauges gauges) : number(unit), tally(std::move(gauges)) {}

    DAQLOOM_FIELDS(
        UnitView, (UnitIndex, number, "Number of the unit."),
        (Standing, standing, "Standing with the run control.", Standing::absent),
        (UnitState, state, "State last reported.", UnitState::not_ready),
        (std::uint64_t, session, "Number of the unit's connection; 0: none."),
        (bool, process,
         "Whether its process was started by the run control and is not known to have ended."),
        (Tally, tally, "Sums of the unit's counters."),
        (std::string, reason, "Reason of the loss."),
        (bool, is_excluded, "Whether the operator has excluded the unit."),
        (bool, is_source_excluded, "Whether the operator has excluded its readout unit."))
    std::optional<base::Time> join_by = std::nullopt;
    std::optional<PendingOrder> pending = std::nullopt;
    base::Time last_report_at = base::Time::zero();
    base::Time lost_at = base::Time::zero();
    base::Time beat_at = base::Time::zero();
    std::optional<base::Time> member_since = std::nullopt;
    std::optional<reports::Pulse> pulse = std::nullopt;  ///< the last one in this epoch
    std::optional<reports::Answer> answer = std::nullopt;
    std::uint64_t last_report = 0;                        ///< number of its last report
    int failures = 0;                                     ///< recent failures
    std::optional<base::Time> returns_at = std::nullopt;  ///< time to bring it back
    /// The host is down on purpose, so that no process can be started.
    bool is_host_down = false;
    /// The unit is a member or available, and has yet to join this run control, which replaces
    /// another one.
    bool is_awaited = false;
    std::uint32_t rejoined_epoch = 0;  ///< its epoch when it joined again
    bool reset_by_operator = false;    ///< the operator has asked to bring it back
    std::int64_t not_written = 0;      ///< MEPs that it reports as not written to files
    /// Whether MEPs not written to files have been logged since the operator last set a goal.
    bool reported_not_written = false;
};

}  // namespace daqloom::protocol
