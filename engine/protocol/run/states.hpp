// The states of a unit and of a run, and the transitions of a unit between them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/expected.hpp"
#include "base/fields.hpp"

namespace daqloom::protocol {

/// State of a unit, as it reports it.
enum class UnitState : std::uint8_t {
    not_ready,  ///< has no connections to others
    ready,      ///< connected to the other members of its epoch
    running,    ///< reading out and building
    error,      ///< failed, and waiting for a reset
};

/// Transition of a unit.
enum class UnitStep : std::uint8_t { connected, started, halted, failed, reset };

/// Standing of a unit with the run control.
enum class Standing : std::uint8_t {
    absent,     ///< has no process
    joining,    ///< its process is being configured
    available,  ///< is or can become a member of an epoch
    lost,       ///< its process has to be reset before it can be a member again
};

/// Phase of a run.
enum class RunPhase : std::uint8_t {
    waiting,    ///< for units to join
    attaching,  ///< a run control that replaces another one waits for the units to join again
    preparing,
    connecting,
    ready,
    starting,
    running,
    halting,
    error,  ///< too few units are left, or regrouping did not help: the operator has to act
    ending,
    ended,
};

/// Goal that the operator sets for a run.
enum class RunGoal : std::uint8_t { idle, ready, running, ended };

[[nodiscard]] std::string_view name_of(UnitState state);
[[nodiscard]] std::string_view name_of(UnitStep step);
[[nodiscard]] std::string_view name_of(Standing standing);
[[nodiscard]] std::string_view name_of(RunPhase phase);
[[nodiscard]] std::string_view name_of(RunGoal goal);

struct Transition {
    DAQLOOM_FIELDS(Transition, (UnitState, state, "State before."), (UnitStep, step, "Transition."),
                   (UnitState, next, "State after."))
};

/// The allowed transitions; all others are refused.
[[nodiscard]] std::span<const Transition> transitions();

/// The next state of a unit, or why it may not take this step.
[[nodiscard]] base::expected<UnitState> after(UnitState state, UnitStep step);

}  // namespace daqloom::protocol
