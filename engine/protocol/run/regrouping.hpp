// Transitions of a run from phase to phase: members prepare, connect, start and halt.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "protocol/run/orders.hpp"
#include "protocol/run/run_state.hpp"

namespace daqloom::protocol {

/// Whether data may be in flight.
[[nodiscard]] constexpr bool is_building(RunPhase phase) {
    return phase == RunPhase::starting || phase == RunPhase::running;
}

/// A run that enters the next phase when all members have answered the order of this phase.
class Regrouping : public RunState {
  protected:
    using RunState::RunState;

    /// Takes all steps that are possible without waiting for members.
    void advance(base::Time now);

    /// Returns to the phase in which units join.
    bool wait(base::Time now);
    /// Puts the run in error. Members that may be building halt, and are available afterwards.
    void fail(base::Time now, const std::string& sentence);

    [[nodiscard]] std::vector<UnitView*> unanswered();
    /// Units that may be members of the next epoch.
    [[nodiscard]] Members available() const;

  private:
    // ---- steps: each returns whether it took a step, after which another may follow immediately
    bool step(base::Time now);
    bool step_waiting(base::Time now);
    bool step_attaching(base::Time now);
    /// Step in the phases `ready` and `running`: to a new goal, or to add units that are back.
    bool step_settled(base::Time now);
    bool step_ending(base::Time now);

    /// All members have answered the order of this phase.
    void answered(base::Time now);
    void begin_running(base::Time now, const std::string& why);
    void connected(base::Time now);
    void halted(base::Time now);

    bool halt(base::Time now);
    void order_halt(base::Time now);
    bool regroup(base::Time now);
    bool prepare(base::Time now);
    void connect(base::Time now);
    bool start(base::Time now);
    bool end(base::Time now);

    void order_members(base::Time now, const Order& order, base::Time timeout);
    /// Units without a role in this epoch that would have a role in the next epoch.
    [[nodiscard]] std::vector<std::uint32_t> newcomers() const;
};

}  // namespace daqloom::protocol
