"""[daqpipe]: event building with credits and parallel sends instead of phases."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from daqloom.scenario.part import Part
from daqloom.scenario.quantities import Seconds


class Daqpipe(Part):
    """[daqpipe]: an event manager gives events to builder units, which collect their fragments."""

    mode: Literal["pull", "push"] = Field(
        default="pull",
        description=(
            "pull: a builder unit asks for fragments as others come in; push: it tells all "
            "readout units at once where theirs belong, and these pace themselves"
        ),
    )
    credits: int = Field(
        default=4, ge=1, le=4096, description="events that a builder unit collects at a time"
    )
    parallel_sends: int = Field(
        default=4, ge=1, le=65_536, description="fragments of one event on their way at a time"
    )
    slot: Seconds = Field(
        default=0.0,
        description=(
            "length of a time slot, in which a builder unit has its turn at one readout unit "
            'alone (the timed variant); "0 s": fragments go as soon as they may (s)'
        ),
    )
