"""What the run control knows of a unit."""

from __future__ import annotations

from dataclasses import dataclass, field

from daqloom.measure.messages import Answer, Pulse
from daqloom.measure.states import Standing, State
from daqloom.measure.tally import Tally


@dataclass
class Asked:
    """The order that a unit is busy with."""

    number: int
    until_s: float
    what: str


@dataclass
class UnitView:
    """What the run control knows of a unit."""

    number: int
    standing: Standing = Standing.ABSENT
    state: State = State.NOT_READY
    session: int = 0
    """Of its connection; 0: none."""
    process: bool = False
    """Started by us, and not known to have ended."""
    join_by_s: float | None = None
    asked: Asked | None = None
    heard_s: float = 0.0
    lost_s: float = 0.0
    beat_s: float = 0.0
    member_since_s: float = 0.0
    pulse: Pulse | None = None
    """Of this epoch."""
    tally: Tally = field(default_factory=Tally)
    """Of its counters."""
    answer: Answer | None = None
    failures: int = 0
    returns_s: float | None = None
    """From then on it is to be brought back."""
    reset_by_operator: bool = False
    """Who wants it back, whatever that takes."""
    reason: str = ""
    """Why it was lost."""
