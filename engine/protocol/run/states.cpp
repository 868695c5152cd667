#include "protocol/run/states.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace daqloom::protocol {

namespace {

constexpr std::array<std::string_view, 4> unit_states = {"not_ready", "ready", "running", "error"};
constexpr std::array<std::string_view, 5> unit_steps = {"connected", "started", "halted", "failed",
                                                        "reset"};
constexpr std::array<std::string_view, 4> standings = {"absent", "joining", "available", "lost"};
constexpr std::array<std::string_view, 11> run_phases = {
    "waiting", "attaching", "preparing", "connecting", "ready", "starting",
    "running", "halting",   "error",     "ending",     "ended"};
constexpr std::array<std::string_view, 4> run_goals = {"idle", "ready", "running", "ended"};

constexpr std::array allowed = {
    Transition{UnitState::not_ready, UnitStep::connected, UnitState::ready},
    Transition{UnitState::ready, UnitStep::started, UnitState::running},
    // A halted unit has released its epoch's connections, so an epoch is never started twice.
    Transition{UnitState::not_ready, UnitStep::halted, UnitState::not_ready},
    Transition{UnitState::ready, UnitStep::halted, UnitState::not_ready},
    Transition{UnitState::running, UnitStep::halted, UnitState::not_ready},
    Transition{UnitState::not_ready, UnitStep::failed, UnitState::error},
    Transition{UnitState::ready, UnitStep::failed, UnitState::error},
    Transition{UnitState::running, UnitStep::failed, UnitState::error},
    Transition{UnitState::error, UnitStep::failed, UnitState::error},
    Transition{UnitState::not_ready, UnitStep::reset, UnitState::not_ready},
    Transition{UnitState::ready, UnitStep::reset, UnitState::not_ready},
    Transition{UnitState::running, UnitStep::reset, UnitState::not_ready},
    Transition{UnitState::error, UnitStep::reset, UnitState::not_ready},
};

}  // namespace

std::string_view name_of(UnitState state) { return unit_states[static_cast<std::size_t>(state)]; }
std::string_view name_of(UnitStep step) { return unit_steps[static_cast<std::size_t>(step)]; }
std::string_view name_of(Standing standing) {
    return standings[static_cast<std::size_t>(standing)];
}
std::string_view name_of(RunPhase phase) { return run_phases[static_cast<std::size_t>(phase)]; }
std::string_view name_of(RunGoal goal) { return run_goals[static_cast<std::size_t>(goal)]; }

std::span<const Transition> transitions() { return allowed; }

base::expected<UnitState> after(UnitState state, UnitStep step) {
    const auto found = std::ranges::find_if(allowed, [&](const Transition& transition) {
        return transition.state == state && transition.step == step;
    });
    if (found == allowed.end()) {
        return base::failure(
            fmt::format("a unit that is {} cannot be {}", name_of(state), name_of(step)));
    }
    return found->next;
}

}  // namespace daqloom::protocol
