"""[flows.NAME]: writes without event building, as load generators and benchmarks post them."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from daqloom.scenario.part import Number, Part
from daqloom.scenario.quantities import PositiveBytes, Seconds

MOST_FLOWS = 256
EVERY = "every"
"""As source: all nodes."""
RANDOM = "random"
"""As destination: any other node, drawn for each message."""

FlowName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$", max_length=40)]
"""A part of dotted names of keys and metrics."""


def _host(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and 0 < len(value) <= 200:
        return value
    raise ValueError("is no host; give its place in the order of ports, from 0, or its name")


Host = Annotated[int | str, BeforeValidator(_host)]


class Flow(Part):
    """RDMA writes of one size, from one host or all, to one host or any other."""

    source: Host = Field(
        description="the host that sends, by its place in the order of ports, from 0, or by its "
        'name; "every": each node'
    )
    destination: Host = Field(
        description='the host written to; "random": any other node, drawn for each message'
    )
    size: PositiveBytes = Field(
        default=64 * 1024, le=1 << 30, description="payload of a message (B)"
    )
    messages: int = Field(
        default=0, ge=0, le=1 << 53, description="messages of each source; 0: without end"
    )
    interval: Seconds = Field(
        default=0.0, description='from one post to the next; "0 s": as soon as there is room (s)'
    )
    load: Number = Field(
        default=0.0,
        le=1,
        description="instead of an interval: share of the source's link that messages take, with "
        "their headers, 0 to 1",
    )
    arrivals: Literal["even", "poisson"] = Field(
        default="even", description="whether intervals are all alike or exponential"
    )
    start: Seconds = Field(default=0.0, description="of the first post (s)")
    outstanding: int = Field(
        default=128,
        ge=1,
        le=65_536,
        description="messages of a source that may await completion; what finds no room is posted "
        "when there is",
    )
    service_level: int = Field(default=0, ge=0, le=15, description="fabric.lanes maps it to a lane")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.source == self.destination:
            raise ValueError(
                f"source and destination are both {self.source}; a host does not send to itself"
            )
        if self.load and self.interval:
            raise ValueError("load and interval are both given; one follows from the other")
        if self.arrivals == "poisson" and not self.load and not self.interval:
            raise ValueError('arrivals = "poisson" needs a mean: give load or interval')
        return self


Flows = Annotated[dict[FlowName, Flow], Field(max_length=MOST_FLOWS)]
