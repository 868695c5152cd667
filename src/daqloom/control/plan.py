"""Plan of a run, for its run control and its units."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from daqloom._engine import RunPlan


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Plan of a run."""

    run: str
    """Name of the run: letters, digits, dashes."""
    rules: RunPlan
    """Parameters of the run control."""
    scenario: Mapping[str, Any]
    """The scenario as JSON, sent to each unit."""
    trace_stages: int = 0
    """Last stages that each unit keeps for a timeline."""
    trace_arrivals: int = 0
    """First arrivals of events that are kept for a trace."""
