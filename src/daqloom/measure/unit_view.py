"""The view that the run control has of a unit, and whom units accuse of being unreachable."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from daqloom.measure.messages import Answer, Pulse
from daqloom.measure.states import Standing, State
from daqloom.measure.tally import Tally


@dataclass
class Asked:
    """The order that a unit is carrying out."""

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
    """Number of its connection; 0: none."""
    process: bool = False
    """Whether its process was started by the run control and is not known to have ended."""
    join_by_s: float | None = None
    asked: Asked | None = None
    heard_s: float = 0.0
    lost_s: float = 0.0
    beat_s: float = 0.0
    member_since_s: float = 0.0
    pulse: Pulse | None = None
    """Last pulse in this epoch."""
    tally: Tally = field(default_factory=Tally)
    """Sums of its counters."""
    answer: Answer | None = None
    heard: int = 0
    """Number of its last report."""
    failures: int = 0
    returns_s: float | None = None
    """Time at which it is to be brought back."""
    held: bool = False
    """Whether its host is down on purpose, so that no process of it can be started."""
    reset_by_operator: bool = False
    """Whether the operator has asked to bring it back."""
    not_written: int = 0
    """MEPs that it reports as not written to files."""
    told_not_written: bool = False
    """Whether that has been logged since the operator last set a goal."""
    reason: str = ""
    """Why it was lost."""


Accusers = dict[int, set[int]]
"""For each unit that others cannot reach, the units that report so."""


def accusers_among(members: Sequence[UnitView]) -> Accusers:
    """Return the reachability reports of the members of an epoch."""
    numbers = {unit.number for unit in members}
    accusers: Accusers = {}
    for unit in members:
        for number in unit.pulse.suspects if unit.pulse else ():
            if number in numbers and number != unit.number:
                accusers.setdefault(number, set()).add(unit.number)
    return accusers


def convicted(number_of_accusers: int, others: int) -> bool:
    """Return whether the accused unit is unreachable. A single accuser, or a minority of the
    `others`, may be the unreachable one itself."""
    return number_of_accusers > 1 and 2 * number_of_accusers > others


def worst(accusers: Accusers) -> int:
    """Return the unit that most others cannot reach; of several such, the last."""
    return max(accusers, key=lambda number: (len(accusers[number]), number))
