"""What a run control refuses, by cause."""

from __future__ import annotations

from enum import StrEnum


class Refused(StrEnum):
    """Counted as `refused.*`; the run goes on unharmed."""

    TOKEN = "token"
    """A call without the run's token, or by one whose certificate does not allow it."""
    METHOD = "method"
    """A call of something that a run control does not have."""
    MALFORMED = "malformed"
    """A message that is none."""
    OVERSIZED = "oversized"
    UNKNOWN_UNIT = "unknown_unit"
    """A unit with a number that the run does not have, or one too many."""
    OCCUPIED = "occupied"
    """A second process for a unit that has one."""
    EPOCH = "epoch"
    """A report of another epoch than that of its unit."""
    UNASKED = "unasked"
    """An answer to an order that was never given."""
    SESSION = "session"
    """A report of a process that another has replaced."""
