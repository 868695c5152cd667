"""Simulated rates above the bound of the closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from daqloom.metrics import for_people
from daqloom.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from daqloom.result import Result
    from daqloom.scenario.models import Scenario

TOLERANCE = 0.05
"""Tolerance of a rate above its bound: sizes are random, and a window cuts events at its ends."""
RATES = ("event_rate_hz", "written_event_rate_hz")


def with_bound(scenario: Scenario, result: Result) -> Result:
    """Return a simulation's result with a warning for each rate above its closed-form bound.

    The result of a system without closed forms is unchanged.
    """
    try:
        bound = scenario.analyse().metric("event_rate_bound_hz")
    except ScenarioError:
        return result
    found = {name: result.metric(name) for name in RATES}
    beyond = [
        f"{name} = {for_people(name, rate)} exceeds {for_people(name, bound)}, the long-term bound "
        "of links, hosts and sources (event_rate_bound_hz of `daqloom analyse`): the time counted "
        "is too short, or it begins with a backlog; lengthen run.duration and run.warmup"
        for name, rate in found.items()
        if bound is not None and rate is not None and rate > (1 + TOLERANCE) * bound
    ]
    return replace(result, warnings=[*result.warnings, *beyond])
