"""[run]: simulated time, warm-up and random seed."""

from pydantic import Field

from daqloom.scenario.quantities import Duration, PositiveDuration
from daqloom.scenario.schema.part import Part

FROM_THE_SYSTEM = Field(default=0.0, json_schema_extra={"default": "from the system"})
"""Default of a run duration, which `daqloom.deployment.scenarios.settle` replaces."""


class Run(Part):
    """[run]: simulated time, warm-up and random seed."""

    duration: PositiveDuration = FROM_THE_SYSTEM
    """Simulated time, warm-up included. Default: for pull building, the time of 2000 events of each
    builder unit; for others, 21 rounds of event building or 1000 messages of each flow. The default
    is shorter if the simulation would take too long (s)."""
    warmup: Duration = FROM_THE_SYSTEM
    """Simulated time at the start that metrics do not count. Default: for pull building, the time
    of 400 events of each builder unit; for others, one round after the sources have filled the
    first packets (s)."""
    seed: int = Field(default=1, ge=0, lt=1 << 63)
    """Seed of all random numbers."""
