"""The states of a unit and of a run, the transitions between them, and causes of refusal."""

from enum import StrEnum


class State(StrEnum):
    """State of a unit, as it reports it."""

    NOT_READY = "not_ready"
    """The unit has no connections to others."""
    READY = "ready"
    """Connected to the other members of its epoch."""
    RUNNING = "running"
    """Reading out and building."""
    ERROR = "error"
    """Failed, and waiting for a reset."""


class Step(StrEnum):
    """Transition of a unit."""

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
"""Allowed transitions; all others are refused."""


def after(state: State, step: Step) -> State:
    """Return the next state. Raises ValueError, with one sentence, where it is not allowed."""
    try:
        return TRANSITIONS[state, step]
    except KeyError:
        raise ValueError(f"a unit that is {state} cannot be {step}") from None


class Standing(StrEnum):
    """Standing of a unit with the run control."""

    ABSENT = "absent"
    """It has no process."""
    JOINING = "joining"
    """Its process is being configured."""
    AVAILABLE = "available"
    """It is or can become a member of an epoch."""
    LOST = "lost"
    """Its process has to be reset before it can be a member again."""


class Phase(StrEnum):
    """Phase of a run."""

    WAITING = "waiting"
    """Waiting for units to join."""
    PREPARING = "preparing"
    CONNECTING = "connecting"
    READY = "ready"
    STARTING = "starting"
    RUNNING = "running"
    HALTING = "halting"
    ERROR = "error"
    """Too few units are left, or regrouping did not help: the operator has to act."""
    ENDING = "ending"
    ENDED = "ended"


class Goal(StrEnum):
    """Goal that the operator sets for a run."""

    IDLE = "idle"
    READY = "ready"
    RUNNING = "running"
    ENDED = "ended"


class Refused(StrEnum):
    """A cause of refusal, counted as `refused.*`; the run goes on."""

    TOKEN = "token"
    """A call without the run's token, or with a certificate that does not allow it."""
    METHOD = "method"
    """A call of a method that a run control does not have."""
    MALFORMED = "malformed"
    """A malformed message."""
    OVERSIZED = "oversized"
    SILENT = "silent"
    """An admitted call whose message did not arrive completely in time."""
    UNKNOWN_UNIT = "unknown_unit"
    """A unit whose number the run does not have, or one unit too many."""
    OCCUPIED = "occupied"
    """A second process for a unit that has one."""
    EPOCH = "epoch"
    """A report of an epoch other than its unit's."""
    UNASKED = "unasked"
    """An answer to an order that was never given."""
    SESSION = "session"
    """A report of a process that another has replaced."""
