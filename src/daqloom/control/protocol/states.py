"""States of units and runs, from the engine's run control, and causes of refusal; messages contain
their words."""

from enum import StrEnum

from daqloom import _engine

State = _engine.UnitState
Standing = _engine.Standing
Phase = _engine.RunPhase
Goal = _engine.RunGoal
ReportRefusal = _engine.ReportRefusal


class Refusal(StrEnum):
    """Cause of refusal of a call, counted as `refused.*`."""

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
    VERSION = "version"
    """A unit of another version of daqloom than that of the run control."""
    OCCUPIED = "occupied"
    """A second process for a unit that has one."""
