"""The states of a unit and of a run, and what leads from one to the next."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Of a unit, as it tells itself."""

    NOT_READY = "not_ready"
    """It has no connections."""
    READY = "ready"
    """Connected to the others of its epoch."""
    RUNNING = "running"
    """It reads out and builds."""
    ERROR = "error"
    """It broke, and waits for a reset."""


class Step(StrEnum):
    """What happens to a unit."""

    CONNECTED = "connected"
    STARTED = "started"
    HALTED = "halted"
    FAILED = "failed"
    RESET = "reset"


TRANSITIONS: dict[tuple[State, Step], State] = {
    (State.NOT_READY, Step.CONNECTED): State.READY,
    (State.READY, Step.STARTED): State.RUNNING,
    # Halted, a unit has let go of its epoch's connections: an epoch is never started twice.
    **{(state, Step.HALTED): State.NOT_READY for state in State if state is not State.ERROR},
    **{(state, Step.FAILED): State.ERROR for state in State},
    **{(state, Step.RESET): State.NOT_READY for state in State},
}
"""All others are refused."""


def after(state: State, step: Step) -> State:
    """The next state. Raises ValueError, with one sentence, where the step is not allowed."""
    try:
        return TRANSITIONS[state, step]
    except KeyError:
        raise ValueError(f"a unit that is {state} cannot be {step}") from None


class Standing(StrEnum):
    """Of a unit, as the run control sees it."""

    ABSENT = "absent"
    """No process."""
    JOINING = "joining"
    """A process that is being configured."""
    AVAILABLE = "available"
    """It is or can become a member of an epoch."""
    LOST = "lost"
    """A process that nobody relies on: it has to be reset first."""


class Phase(StrEnum):
    """Of a run."""

    WAITING = "waiting"
    """For units to join."""
    PREPARING = "preparing"
    CONNECTING = "connecting"
    READY = "ready"
    STARTING = "starting"
    RUNNING = "running"
    HALTING = "halting"
    ERROR = "error"
    """Too few units are left, or no regrouping helps: an operator has to look."""
    ENDING = "ending"
    ENDED = "ended"


class Goal(StrEnum):
    """What the operator wants a run to be."""

    IDLE = "idle"
    READY = "ready"
    RUNNING = "running"
    ENDED = "ended"
