// Snapshot of a run, from which another run control continues it.
//
// A snapshot that is stored before the orders that follow from it are sent contains every order
// that any unit may have received. Counters of units grow, so an older reading of them does no
// harm.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/ledger.hpp"
#include "protocol/run/accounts/tally.hpp"
#include "protocol/run/states.hpp"

namespace daqloom::protocol {

struct UnitSnapshot {
    DAQLOOM_FIELDS(
        UnitSnapshot, (Standing, standing, "Standing with the run control.", Standing::absent),
        (bool, process, "Whether a process started by the run control is not known to have ended."),
        (std::string, reason, "Reason of the last loss."),
        (std::uint64_t, last_report, "Number of the last report of its process."),
        (std::int64_t, failures, "Recent failures."),
        (bool, is_excluded, "Whether the operator has excluded the unit."),
        (bool, is_source_excluded, "Whether the operator has excluded its readout unit."),
        (TallySnapshot, tally, "Sums of its counters."),
        (bool, is_leased, "Whether it is a member of the last epoch that was started."),
        (std::uint64_t, lease_session, "Number of its connection in that epoch."),
        (bool, reads, "Whether it has a readout unit in that epoch."),
        (bool, is_settled, "Whether all MEPs that it answered in that epoch are known."),
        (bool, has_reported, "Whether it has reported the MEPs that it answered in that epoch."),
        (bool, was_left_out, "Whether others went on in that epoch without it."))
};

struct RunSnapshot {
    DAQLOOM_FIELDS(
        RunSnapshot, (RunPhase, phase, "Phase of the run.", RunPhase::waiting),
        (RunGoal, goal, "Goal of the operator.", RunGoal::idle),
        (std::uint32_t, epoch, "Number of the last epoch."),
        (std::uint32_t, leased_epoch, "Number of the last epoch that was started."),
        (std::uint64_t, first_mep, "First MEP of the last started epoch, or of the next one."),
        (std::uint64_t, next_mep, "First MEP that no unit is known to have answered."),
        (std::uint64_t, reserved_end, "MEPs before this number may be leased."),
        (double, pace_hz, "Recent MEPs per second."),
        (std::uint64_t, order, "Number of the last order."),
        (std::uint64_t, session, "Largest number of a connection."),
        (std::uint64_t, beat, "Beats of the run control."),
        (bool, was_ready, "Whether an epoch has been started."),
        (std::vector<UnitIndex>, members, "Members of the epoch, in ascending order."),
        (std::vector<UnitIndex>, readouts, "Holder of each unit's readout unit, or none."),
        (std::vector<UnitIndex>, builders, "Holder of each unit's builder unit, or none."),
        (std::vector<UnitIndex>, readout_slots,
         "Unit whose readout unit is in each slot of another schedule than that of the plan, or "
         "none; empty: that of the plan."),
        (std::vector<UnitIndex>, builder_slots,
         "Unit whose builder unit is in each slot of another schedule, or none."),
        (std::string, failure, "Reason of the error of the run."),
        (std::uint64_t, units_lost, "Units declared lost."),
        (std::uint64_t, regroupings, "Halts after which the run was to go on."),
        (std::uint64_t, run_events, "Entries of the log."),
        (Balance, closed, "Fates of MEPs of epochs about which no unit can report."),
        (std::vector<LedgerEpoch>, epochs, "Accounts of epochs about which a unit may report."),
        (std::vector<UnitSnapshot>, units, "All units, by number."))
};

}  // namespace daqloom::protocol
