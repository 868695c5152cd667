"""Simulated rates above the bound of the closed forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daqloom.metrics import for_people

if TYPE_CHECKING:
    from daqloom.result import Result

TOLERANCE = 0.05
"""Tolerance of a rate above its bound: sizes are random, and a window cuts events at its ends."""
RATES = ("event_rate_hz", "written_event_rate_hz")


def beyond(result: Result, bound_hz: float | None) -> list[str]:
    """Return a warning for each rate of a simulation above its closed-form bound, where known."""
    found = {name: result.metric(name) for name in RATES}
    return [
        f"{name} = {for_people(name, rate)} exceeds {for_people(name, bound_hz)}, the long-term "
        "bound of links, hosts and sources (event_rate_bound_hz of `daqloom analyse`): the time "
        "counted is too short, or it begins with a backlog; lengthen run.duration and run.warmup"
        for name, rate in found.items()
        if bound_hz is not None and rate is not None and rate > (1 + TOLERANCE) * bound_hz
    ]
