"""What protocols of multi-fragment packets share: sources that fill them, a delay of processing."""

from collections.abc import Sequence

from daqloom import _engine
from daqloom.rules import set_delay
from daqloom.scenario.distribution import Distribution
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.event import Event


def interval_s(event: Event) -> float:
    """Return the time between two MFPs of a source; 0: as fast as they are consumed."""
    return event.packing / event.rate if event.rate else 0.0


def set_processing(delay: _engine.Delay, stages: Sequence[Distribution]) -> None:
    """Set the one delay that a builder unit has. Raises ScenarioError for a chain of them."""
    if len(stages) > 1:
        raise ScenarioError(
            f"builders.processing has {len(stages)} delays, which only pull building "
            "simulates yet; give one"
        )
    for stage in stages:
        set_delay(delay, stage)
