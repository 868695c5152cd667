"""Outputs of the run control: its orders, and the entries of its log."""

from __future__ import annotations

from dataclasses import dataclass

from daqloom.measure.messages import Message


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


@dataclass(frozen=True)
class RunEvent:
    """An entry of a run's log."""

    time_s: float
    text: str

    @property
    def tells_of_trouble(self) -> bool:
        """Return whether the entry is of trouble: a unit is lost, did not join or cannot write, or
        the run fails."""
        signs = ("lost", "did not", "cannot write", "error:")
        return any(sign in self.text for sign in signs) and not self.text.startswith("halting:")
