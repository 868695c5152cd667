// The run control of a simulated system in virtual time: the code of a live run control and of the
// processes of its units.
//
// The control network is not simulated: reports and orders take no time, and units prepare, connect
// and start at once. `launch` is the time from the launch of a process until it has joined. The run
// control learns at once that a process has ended, like a live one of processes that it launched. A
// stopped unit neither reports nor executes orders until its stop ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/ledger.hpp"
#include "protocol/run/run_control.hpp"
#include "protocol/run/unit_process.hpp"

namespace daqloom::systems {

using protocol::UnitIndex;

/// Counts of a unit since the run began, over all its processes.
struct UnitCounts {
    std::int64_t granted = 0;  ///< number of MEPs, like the next four
    std::int64_t built = 0;
    std::int64_t incomplete = 0;
    std::int64_t dropped = 0;
    std::int64_t discarded = 0;
    std::uint64_t next_mep = 0;  ///< first MEP not answered
    std::uint64_t steps = 0;     ///< progress: MFPs written and received, MEPs built

    [[nodiscard]] protocol::MepCounts meps() const {
        const std::int64_t finished = built + incomplete + dropped + discarded;
        return {finished, granted - (built + incomplete + dropped)};
    }
};

/// Interface from the run control to the units of a system. A unit that was stopped while the
/// others began another epoch has lost its state.
class ControlledUnits : public protocol::UnitNodes {
  public:
    /// Calls RunDriver::on_due with `number` at time `at`.
    virtual void call_back(base::Time at, std::uint32_t number) = 0;
    /// End of the stop of a unit's process; in the past if the unit is not stopped.
    [[nodiscard]] virtual base::Time stopped_until(UnitIndex unit) const = 0;
    [[nodiscard]] virtual bool is_drained(UnitIndex unit) const = 0;
    [[nodiscard]] virtual UnitCounts counts(UnitIndex unit) const = 0;
};

class RunDriver {
  public:
    /// Fates of all MEPs of a run until now, each counted separately. They add up to `begun`.
    struct Accounts {
        DAQLOOM_FIELDS(Accounts, (std::int64_t, begun, "MEPs before the first not answered."),
                       (std::int64_t, built, "MEPs built."),
                       (std::int64_t, incomplete, "MEPs delivered without some MFPs."),
                       (std::int64_t, dropped, "MEPs dropped, as they lacked some MFPs."),
                       (std::int64_t, discarded,
                        "MEPs discarded: the output buffer was full, or "
                        "a lost readout unit had not announced them."),
                       (std::int64_t, unfinished, "MEPs granted by units that were then lost."),
                       (std::int64_t, skipped, "MEPs that no builder unit has granted."),
                       (std::int64_t, in_flight, "MEPs of the epoch that is not over, unfinished."),
                       (std::int64_t, twice, "MEPs finished beyond their number: 0."),
                       (std::uint64_t, units_lost, "Units declared lost."),
                       (std::uint64_t, regroupings, "Halts after which the run was to go on."))
    };
    struct MembersFrom {
        DAQLOOM_FIELDS(MembersFrom, (base::Time, at, "Begin of this membership."),
                       (std::uint32_t, members,
                        "Number of units that build; 0 while the units regroup."))
    };
    struct Loss {
        DAQLOOM_FIELDS(Loss, (base::Time, at, "Time at which a unit was declared lost."),
                       (UnitIndex, unit, "Number of the lost unit."))
    };

    RunDriver(const protocol::RunPlan& plan, base::Time launch, ControlledUnits& units);

    /// Begins the run: launches all units and sets the operator's goal to running.
    void begin(base::Time now);
    void on_due(std::uint32_t number, base::Time now);
    /// See RunControl::reschedule.
    void reschedule(const protocol::RunSlots& slots, const std::string& why, base::Time now) {
        control_.reschedule(now, slots, why);
        act(now);
    }

    // ---- faults of units
    void kill(UnitIndex unit, base::Time now);
    /// The unit's host is down: no process of the unit can be started before `until`.
    void hold(UnitIndex unit, base::Time until, base::Time now);
    /// The unit has processed an input; its reaction is a separate event.
    void on_input(UnitIndex unit, base::Time now) {
        if (processes_[unit.value()].is_draining) [[unlikely]] {
            check_drained(unit, now);
        }
    }

    // ---- observers
    [[nodiscard]] const protocol::RunControl& control() const { return control_; }
    [[nodiscard]] Accounts accounts() const;
    [[nodiscard]] const std::vector<MembersFrom>& members() const { return members_; }
    [[nodiscard]] const std::vector<Loss>& losses() const { return losses_; }

  private:
    /// Kinds of a unit's events; an event has the number unit · kDues + kind.
    enum Due : std::uint32_t {
        kTick,
        kReport,
        kGoesOn,
        kLeaseOver,
        kDrained,
        kHurry,
        kGiveUp,
        kLaunched,
        kHostUp,
        kDues
    };
    static constexpr std::int64_t kTicksPerHeartbeat = 2;  ///< as in the live run control

    /// The process of a unit.
    struct Process {
        std::uint64_t session = 0;  ///< 0: no process
        protocol::UnitProcess unit = protocol::UnitProcess();
        base::Time report_at = {};
        std::vector<protocol::SendOrder> waiting = {};  ///< orders kept until the unit's stop ends
        bool is_draining = false;
    };

    void wake(base::Time at, UnitIndex unit, Due due) {
        units_.call_back(at, unit.value() * kDues + due);
    }
    [[nodiscard]] Process& of(UnitIndex unit) { return processes_[unit.value()]; }
    [[nodiscard]] bool is_stopped(UnitIndex unit, base::Time now) const {
        return units_.stopped_until(unit) > now;
    }

    void join(UnitIndex unit, base::Time now);
    void report(UnitIndex unit, base::Time now);
    void report_later(UnitIndex unit, base::Time now);
    void go_on(UnitIndex unit, base::Time now);
    void check_drained(UnitIndex unit, base::Time now);
    void on_drain(UnitIndex unit, base::Time now);
    /// Sends an answer, or a heartbeat if there is none.
    void send(UnitIndex unit, protocol::UnitProcess::Answer answer, base::Time now);
    [[nodiscard]] protocol::Ledger::Totals totals() const;

    void act(base::Time now);
    void note(base::Time now);
    void carry_out(const protocol::SendOrder& order, base::Time now);
    void carry_out(const protocol::LaunchProcess& launch, base::Time now);
    void carry_out(const protocol::KillProcess& output, base::Time now);
    void carry_out(const protocol::DropConnection& drop, base::Time now);
    void obey(const protocol::SendOrder& order, base::Time now);

    protocol::RunControl control_;
    base::Time launch_;
    ControlledUnits& units_;
    std::vector<Process> processes_;
    std::vector<base::Time> host_down_until_;
    std::vector<bool> is_there_;  ///< units that joined, to the knowledge of the run control
    std::uint64_t sessions_ = 0;
    bool is_acting_ = false;
    std::uint32_t started_ = 0;  ///< last epoch that was started
    std::uint64_t first_mep_ = 0;
    protocol::Ledger ledger_;  ///< from the units' counts, not from their reports
    std::vector<MembersFrom> members_;
    std::vector<Loss> losses_;
};

}  // namespace daqloom::systems
