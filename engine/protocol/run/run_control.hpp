// The run control: who is a member of a run, and what each unit has to do next.
//
// Inputs are what units, processes, the operator and the clock say; outputs (`take`) are orders to
// units and to whoever starts processes. A run is a sequence of epochs, each with a fixed set of
// members. Whatever breaks leads to the same: the members that are left halt, and prepare, connect
// and start with the next epoch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.hpp"
#include "protocol/run/accusers.hpp"
#include "protocol/run/regrouping.hpp"
#include "protocol/run/reports.hpp"

namespace daqloom::protocol {

/// The state of a run. Each input has the time `now`, which begins at 0 with the run control. A
/// unit has to be one of the plan's.
class RunControl : public Regrouping {
  public:
    /// Most regroupings in a row after none of which anything was built.
    static constexpr int most_fruitless = 3;
    /// Fault timeouts without trouble after which new trouble is counted from 0.
    static constexpr std::int64_t healthy_timeouts = 10;

    explicit RunControl(const RunPlan& plan) : Regrouping(plan) {}

    /// Starts all processes, or awaits those of a run whose units are started by hand.
    void launch(base::Time now);
    /// Whether a process may join as this unit: no other one in use has.
    [[nodiscard]] bool is_free(UnitIndex number) const;
    /// A process has joined as a unit that is free. Sessions are numbered from 1.
    void joined(base::Time now, UnitIndex number, std::uint64_t session);
    /// A unit reports. Returns why that is refused, or nothing.
    std::optional<reports::Refusal> reported(base::Time now, UnitIndex number,
                                             std::uint64_t session, const reports::Report& report);
    /// The last counters of a process, which come from outside its reports.
    void counted(UnitIndex number, const NamedCounters& counters);
    /// The connection of a unit has ended.
    void left(base::Time now, UnitIndex number, std::uint64_t session);
    /// A unit's process that we started has ended: `how`, such as "exit code 1".
    void exited(base::Time now, UnitIndex number, const std::string& how);
    /// The operator sets a goal.
    void want(base::Time now, RunGoal goal);
    /// From the next epoch on, which begins now, units are in other slots of the schedule.
    void reschedule(base::Time now, const RunSlots& slots, const std::string& why);
    /// The operator wants a unit back, whatever its state.
    void reset(base::Time now, UnitIndex number);
    /// The host of a unit is down on purpose, or is no longer.
    void hold(UnitIndex number, bool held) { view(number).held = held; }
    /// Something is broken on purpose, or mended: for the log.
    void injected(base::Time now, const std::string& text) { note(now, text, About::fault); }
    /// Time has passed; to be called a few times per heartbeat.
    void tick(base::Time now);

  private:
    using Refusal = std::optional<reports::Refusal>;

    Refusal on_answer(base::Time now, UnitView& unit, const reports::Answer& answer);
    Refusal on_heartbeat(base::Time now, UnitView& unit, const reports::Heartbeat& report);
    void look_at_files(base::Time now, UnitView& unit);
    void renew(base::Time now, const UnitView& unit);
    void progress(base::Time now, UnitView& unit, const reports::Pulse& pulse);

    void forgive(base::Time gap);
    void watch_all(base::Time now);
    void watch_members(base::Time now);
    void on_suspicion(base::Time now);
    /// A fault with all members alive: new connections first, then fewer members.
    void on_trouble(base::Time now, const std::string& what, const Accusers& accusers);
    [[nodiscard]] Accusers accusers() const;
    void bring_back(base::Time now);
};

}  // namespace daqloom::protocol
