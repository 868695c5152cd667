"""[faults]: what is broken."""

from typing import Annotated

from pydantic import Field

from daqloom.scenario.part import Part, When

_CABLED = When("network.shape", ("fat-tree", "imported", "cables"))


class Faults(Part):
    """[faults]: what is broken; simulated and analysed."""

    cables: Annotated[int, _CABLED] = Field(default=0, ge=0, le=100_000)
    """Number of cables between switches that are broken all the time, drawn at random; the tables
    are those of what is left. Without network.routing, or with imported tables, they are those of
    minimal:balanced: OpenSM's minhop, to which its ftree falls back when a cable is missing."""
    seed: Annotated[int, _CABLED] = Field(default=1, ge=0, lt=1 << 63)
    """Seed of the draw, whatever run.seed is."""
