"""What the run control wants done, and what it has to say about it."""

from __future__ import annotations

from dataclasses import dataclass

from daqloom.measure.messages import Message


@dataclass(frozen=True)
class Send:
    """A message for a unit's process."""

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


@dataclass(frozen=True)
class RunEvent:
    """An entry of a run's log."""

    time_s: float
    text: str

    @property
    def tells_of_trouble(self) -> bool:
        """Whether it is of a unit that is lost or does not come, or of a run that breaks."""
        return ("lost" in self.text or "did not" in self.text or "error:" in self.text) and (
            not self.text.startswith("halting:")
        )
