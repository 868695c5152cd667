"""The plan of a run: what the run control knows before it starts, and what units are told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from daqloom._engine import RunPlan


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The plan of a run."""

    run: str
    """The run's name: letters, digits, dashes."""
    rules: RunPlan
    """By which the run control decides."""
    scenario: Mapping[str, Any]
    """The scenario as JSON, sent to each unit."""
    trace_stages: int = 0
    """How many of its last stages each unit keeps for a timeline."""
    trace_arrivals: int = 0
    """How many arrivals of events are kept, the first ones, for a trace."""
