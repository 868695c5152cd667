"""The plan of a run: what the run control knows before it starts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


def _anyone(members: Collection[int]) -> bool:
    return bool(members)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a run. Times are in seconds of a monotonic clock."""

    run: str
    """The run's name: letters, digits, dashes."""
    units: int
    """Number of units; they are numbered from 0."""
    scenario: Mapping[str, Any]
    """The scenario as JSON, sent to each unit."""
    heartbeat_s: float = 0.2
    fault_timeout_s: float = 1.0
    """How long a unit may be silent or make no progress."""
    order_timeout_s: float = 10.0
    """How long a unit may take to prepare or reset."""
    launch_timeout_s: float = 60.0
    """How long a unit may take to join, and then to configure: it imports much, and fills its
    buffers."""
    finish_timeout_s: float = 0.0
    """How long a unit that still reports may take to finish its files at the end."""
    stops_when_unwritable: bool = False
    """Whether the run stops when a unit cannot write what it builds."""
    restart: bool = True
    """Whether lost units are brought back without an operator."""
    launches: bool = True
    """Whether the run control starts and ends each process itself."""
    trace_stages: int = 0
    """How many of its last stages each unit keeps for a timeline."""
    leased_meps: int = 1024
    """Smallest number of MEPs that a lease allows beyond the last one known to be answered; added
    to what the run builds in LEASED_TIMEOUTS."""
    builders: Sequence[int] = ()
    """Units that build, in the order of their turns; empty: all units."""
    readouts: Collection[int] = ()
    """Units that read out; empty: all units."""
    takes_turns: bool = True
    """Whether a MEP's number determines its builder unit in the epoch."""
    viable: Callable[[Collection[int]], bool] = _anyone
    """Return whether these members can build events."""
