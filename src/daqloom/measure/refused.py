"""Causes for which a run control refuses calls and messages."""

from __future__ import annotations

from enum import StrEnum


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
