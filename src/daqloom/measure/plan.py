"""What the run control of a run has to know beforehand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any


def _anyone(members: Collection[int]) -> bool:
    return bool(members)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Times in seconds, of a clock that never goes back."""

    run: str
    """The run's name: letters, digits, dashes."""
    units: int
    """0 … units − 1."""
    scenario: Mapping[str, Any]
    """What every unit is told, as JSON has it."""
    heartbeat_s: float = 0.2
    fault_timeout_s: float = 1.0
    """So long a unit may be silent or stand still."""
    order_timeout_s: float = 10.0
    """To configure, prepare or reset a unit."""
    launch_timeout_s: float = 60.0
    """Until a unit has joined."""
    restart: bool = True
    """Lost units are brought back without being asked."""
    launches: bool = True
    """The run control starts and ends processes itself, one by one."""
    trace_stages: int = 0
    """Of its last stages every unit keeps so many, for a timeline."""
    viable: Callable[[Collection[int]], bool] = _anyone
    """Whether so many and such units can build events."""
