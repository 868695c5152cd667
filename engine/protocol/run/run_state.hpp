// State of a run in its run control, and how units are lost and brought back.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/expected.hpp"
#include "base/units.hpp"
#include "protocol/data/identifiers.hpp"
#include "protocol/run/accounts/ledger.hpp"
#include "protocol/run/accounts/run_snapshot.hpp"
#include "protocol/run/leases.hpp"
#include "protocol/run/orders.hpp"
#include "protocol/run/roles.hpp"
#include "protocol/run/run_log.hpp"
#include "protocol/run/run_plan.hpp"
#include "protocol/run/states.hpp"
#include "protocol/run/unit_view.hpp"

namespace daqloom::protocol {

/// The members, units and outputs of a run.
class RunState {
  public:
    /// Longest pause before the return of a unit that is lost repeatedly.
    static constexpr base::Time longest_pause = base::seconds(60);

    RunState(const RunPlan& plan, const Gauges& gauges);

    [[nodiscard]] const RunPlan& plan() const { return plan_; }
    [[nodiscard]] const std::vector<UnitView>& units() const { return units_; }
    [[nodiscard]] const UnitView& unit(UnitIndex number) const { return units_[number.value()]; }
    [[nodiscard]] RunPhase phase() const { return phase_; }
    [[nodiscard]] RunGoal goal() const { return goal_; }
    [[nodiscard]] std::uint32_t epoch() const { return epoch_; }
    /// The first MEP of the last started epoch; once that epoch has halted, of the next one.
    [[nodiscard]] std::uint64_t first_mep() const { return first_mep_; }
    /// The first MEP not answered by a builder unit, according to the reports.
    [[nodiscard]] std::uint64_t next_mep() const { return leases_.next_mep(); }
    /// The first MEP that no unit has answered or can still answer.
    [[nodiscard]] std::uint64_t first_free() const { return leases_.first_free(); }
    [[nodiscard]] const Members& members() const { return members_; }
    /// The roles of the last epoch that was prepared.
    [[nodiscard]] const Roles& roles() const { return roles_; }
    /// Why the run is in error, in one sentence.
    [[nodiscard]] const std::string& failure() const { return failure_; }
    [[nodiscard]] const std::vector<RunEvent>& events() const { return log_.events(); }
    [[nodiscard]] const RunCounts& counts() const { return log_.counts; }
    /// The fates of the run's MEPs that no counter shows.
    [[nodiscard]] Balance balance() const;
    /// The balance of all epochs except the current one.
    [[nodiscard]] Balance balance_of_ended() const;

    /// The outputs since the last call, in order.
    std::vector<RunOutput> take();

    /// The state from which another run control can continue. To be stored before outputs are
    /// carried out, whenever `changes` or `reserved_end` has grown.
    [[nodiscard]] RunSnapshot snapshot() const;
    /// Fails for a snapshot that is not one of this run.
    [[nodiscard]] base::expected<void> check(const RunSnapshot& snapshot) const;
    [[nodiscard]] std::uint64_t changes() const { return changes_; }
    [[nodiscard]] std::uint64_t reserved_end() const { return leases_.reserved_end(); }

  protected:
    /// Continues from the snapshot of another run control of the same plan; sends nothing.
    void restore(base::Time now, const RunSnapshot& snapshot);
    [[nodiscard]] UnitView& view(UnitIndex number) { return units_[number.value()]; }
    /// Views of these units, in ascending order.
    [[nodiscard]] std::vector<UnitView*> of(const Members& numbers);
    [[nodiscard]] MepCounts totals(UnitIndex number) const;

    void read(UnitView& unit, const NamedCounters& counters);
    /// Declares the unit lost, until it has been reset or started again.
    void lose(base::Time now, UnitView& unit, const std::string& reason);
    /// The pause before a unit comes back, which doubles with each failure.
    base::Time pause(UnitView& unit);
    void launch_process(base::Time now, UnitView& unit);
    /// Ends the process of a unit that does not answer, so that a new process can replace it.
    void end_process(base::Time now, UnitView& unit);
    void send_reset(base::Time now, UnitView& unit);
    void send_order(base::Time now, UnitView& unit, Order order, base::Time timeout);
    void enter(base::Time now, RunPhase phase, std::string_view why = "");
    void note(base::Time now, std::string text, About about = About::course,
              std::optional<UnitIndex> lost = std::nullopt);

    RunPlan plan_;
    std::vector<UnitView> units_;
    RunPhase phase_ = RunPhase::waiting;
    RunPhase resumed_ = RunPhase::waiting;  ///< phase of the run control that this one replaces
    RunGoal goal_ = RunGoal::idle;
    std::uint32_t epoch_ = 0;
    std::uint64_t first_mep_ = 0;
    Members members_;
    Roles roles_;
    RunSlots slots_;  ///< slots of the next epoch
    std::string failure_;
    RunLog log_;
    std::vector<RunOutput> out_;
    std::uint64_t order_ = 0;    ///< number of the last one
    std::uint64_t session_ = 0;  ///< largest number of a connection
    std::uint64_t beat_ = 0;
    std::uint64_t changes_ = 0;
    /// Why the members have to regroup; empty: no need.
    std::string broken_;
    bool was_ready_ = false;
    bool is_reconfigured_ = false;  ///< units have new configurations, and no epoch yet
    base::Time deadline_;           ///< end of the phase
    base::Time finish_by_ = base::Time::zero();
    base::Time ticked_at_ = base::Time::zero();
    base::Time beat_at_ = base::Time::zero();
    base::Time running_since_ = base::Time::zero();
    base::Time progress_at_ = base::Time::zero();
    std::optional<base::Time> suspected_at_;
    bool has_built_ = false;  ///< in this epoch
    int troubles_ = 0;
    int fruitless_ = 0;
    int connect_tries_ = 0;
    Ledger ledger_;
    Leases leases_;
};

}  // namespace daqloom::protocol
