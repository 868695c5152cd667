"""Outputs of the run control: its orders, and the entries of its log."""

from dataclasses import dataclass
from enum import Enum

from daqloom.measure.messages import Message
from daqloom.measure.states import Phase


@dataclass(frozen=True)
class Send:
    """Send a message to a unit's process."""

    unit: int
    session: int
    message: Message


@dataclass(frozen=True)
class Launch:
    """Start a process for a unit."""

    unit: int


@dataclass(frozen=True)
class Kill:
    """End a unit's process, whatever it does."""

    unit: int


@dataclass(frozen=True)
class Drop:
    """Close the connection to a unit's process."""

    unit: int
    session: int


Output = Send | Launch | Kill | Drop


class About(Enum):
    """What an entry of a run's log is about."""

    COURSE = "course"
    """The run goes on as it was told to."""
    UNIT = "unit"
    """Trouble with a unit: it is lost, did not join or cannot write."""
    FAULT = "fault"
    """What is broken on purpose, or mended."""
    FAILURE = "failure"
    """The whole run fails."""


@dataclass(frozen=True)
class RunEvent:
    """An entry of a run's log."""

    time_s: float
    text: str
    about: About = About.COURSE
    phase: Phase = Phase.WAITING
    """That of the run from then on."""
    members: int = 0
    """How many units it has then."""
    lost: int | None = None
    """The unit that is declared lost."""

    @property
    def tells_of_trouble(self) -> bool:
        """Return whether the entry is of trouble with a unit or with the whole run."""
        return self.about in (About.UNIT, About.FAILURE)
