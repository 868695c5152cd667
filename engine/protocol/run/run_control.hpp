// The run control: the members of a run, and the next order for each unit.
//
// Inputs are reports of units and processes, goals of the operator, and time; outputs (`take`) are
// orders to units and actions on processes. A run is a sequence of epochs, each with a fixed set of
// members. Every fault has the same consequence: the remaining members halt, then prepare, connect
// and start the next epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/run/regrouping.hpp"
#include "protocol/run/reports.hpp"
#include "protocol/run/suspicions.hpp"

namespace daqloom::protocol {

/// The run control. Each input has the time `now`, which begins at 0 with the run control. Units
/// passed to it must be in the plan.
class RunControl : public Regrouping {
  public:
    /// Limit on consecutive regroupings without progress.
    static constexpr int most_fruitless = 3;
    /// Time without faults, in fault timeouts, after which the count of faults restarts at 0.
    static constexpr std::int64_t healthy_timeouts = 10;

    explicit RunControl(const RunPlan& plan, const Gauges& gauges = {})
        : Regrouping(plan, gauges) {}

    /// Starts all processes, or waits for them if the units are started by hand.
    void launch(base::Time now);
    /// Continues the run of another run control from its last snapshot, in place of `launch`.
    /// Members are awaited; those that join again keep their nodes. Until all have joined or a time
    /// limit is over, no unit gets an order.
    void resume(base::Time now, const RunSnapshot& snapshot);
    /// A process that has kept its node joins again. False: it is not awaited, so it joins as any
    /// other process.
    bool rejoined(base::Time now, UnitIndex number, std::uint64_t session,
                  const reports::Rejoin& rejoin);
    /// Whether a process may join as this unit, because the unit has no process in use.
    [[nodiscard]] bool is_free(UnitIndex number) const;
    /// A process has joined as a unit that is free. Sessions are numbered from 1.
    void joined(base::Time now, UnitIndex number, std::uint64_t session);
    /// A report of a unit. Returns the reason if it is refused.
    std::optional<reports::Refusal> reported(base::Time now, UnitIndex number,
                                             std::uint64_t session, const reports::Report& report);
    /// The last counters of a process, read from its memory instead of its reports.
    void counted(UnitIndex number, const NamedCounters& counters);
    /// The connection of a unit has ended.
    void left(base::Time now, UnitIndex number, std::uint64_t session);
    /// A unit's process that the run control started has ended: `how`, such as "exit code 1".
    void exited(base::Time now, UnitIndex number, const std::string& how);
    /// The operator sets a goal.
    void want(base::Time now, RunGoal goal);
    /// Sets new slots of the schedule, and begins the next epoch with them if they differ.
    void reschedule(base::Time now, const RunSlots& slots, const std::string& why);
    /// The operator requests the return of a unit, in any state of the unit.
    void reset(base::Time now, UnitIndex number);
    /// Replaces the plan by one with as many units, and configures all units anew, for the goal
    /// `ready`. The next epoch begins at `first_mep` or later. Refused, with the reason, while data
    /// may be in flight.
    base::expected<void> reconfigure(base::Time now, const RunPlan& plan, std::uint64_t first_mep);
    /// The operator excludes units, or their readout units only (`sources`): they are left out
    /// until they are included. Refused, with the reason, if the others could build nothing.
    base::expected<void> exclude(base::Time now, const Members& units, bool sources);
    void include(base::Time now, const Members& units, bool sources);
    /// Logs a step of the operator's control, such as the result of a hook.
    void remark(base::Time now, std::string text) { note(now, std::move(text)); }
    /// Sets whether the host of a unit is down on purpose.
    void set_host_down(UnitIndex number, bool is_down) { view(number).is_host_down = is_down; }
    /// Logs a fault that is injected on purpose, or the repair of such a fault.
    void injected(base::Time now, const std::string& text) { note(now, text, About::fault); }
    /// Logs a warning about a unit that goes on.
    void warned(base::Time now, const std::string& text) { note(now, text, About::unit); }
    /// Handles timeouts; to be called a few times per heartbeat interval.
    void tick(base::Time now);

  private:
    using Refusal = std::optional<reports::Refusal>;

    Refusal on_answer(base::Time now, UnitView& unit, const reports::Answer& answer);
    Refusal on_heartbeat(base::Time now, UnitView& unit, const reports::Heartbeat& report);
    void configure(base::Time now, UnitView& unit);
    void check_files(base::Time now, UnitView& unit);
    void renew(base::Time now, const UnitView& unit);
    void progress(base::Time now, UnitView& unit, const reports::Pulse& pulse);

    void forgive(base::Time gap);
    void watch_all(base::Time now);
    void watch_members(base::Time now);
    void on_suspicion(base::Time now);
    /// Handles a fault with all members alive: first with new connections, then fewer members.
    void on_trouble(base::Time now, const std::string& what, const Suspicions& suspicions);
    [[nodiscard]] Suspicions suspicions_of_members() const;
    void bring_back(base::Time now);
    /// Begins a new epoch after a change of what the operator excludes.
    void regroup_if_members(base::Time now, const Members& units, const char* change, bool sources);
    [[nodiscard]] Members excluded_sources() const;
};

}  // namespace daqloom::protocol
