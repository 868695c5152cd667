"""[flows.NAME]: messages without event building, as of load generators and benchmarks; alone, or
background traffic beside a building protocol."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from daqloom.scenario.quantities import PositiveBytes, Seconds
from daqloom.scenario.schema.hosts import Host
from daqloom.scenario.schema.part import ASSUMED, Number, Part

MOST_FLOWS = 256
EVERY = "every"
"""A source: all nodes."""
RANDOM = "random"
"""A destination: any other node, drawn for each message."""

FlowName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$", max_length=40)]
"""A name that is part of dotted names of keys and metrics."""


class Flow(Part):
    """A flow: messages of one size, from one host or all, to one host or any other."""

    source: Host
    """The sending host, by its place among those of the units, from 0 (racks: readout units, then
    builder units; else in the order of ports), or by its name, also a host without units; "every":
    each host of a unit or a flow."""
    destination: Host
    """The host written to; "random": any other of these, drawn for each message."""
    size: Annotated[PositiveBytes, ASSUMED] = Field(default=64 * 1024, le=1 << 30)
    """Payload of a message (B)."""
    messages: int = Field(default=0, ge=0, le=1 << 53)
    """Number of messages of each source; 0: unlimited."""
    interval: Seconds = 0.0
    """Time from one post to the next; "0 s": as soon as `outstanding` allows (s)."""
    load: Number = Field(default=0.0, le=1)
    """Instead of an interval: load of the source's link by messages with headers, 0 to 1."""
    arrivals: Literal["even", "poisson"] = "even"
    """Distribution of intervals: constant, or exponential (poisson)."""
    start: Seconds = 0.0
    """Time of the first post (s)."""
    outstanding: Annotated[int, ASSUMED] = Field(default=128, ge=1, le=65_536)
    """Messages of a source that may await completion; further ones are posted as earlier ones
    complete."""
    transport: Literal["system", "udp"] = "system"
    """How the messages travel: by the transport of the system, or as UDP datagrams over Ethernet.
    These are sent once; a message that loses one is lost, and is complete when it has left."""
    service_level: int = Field(default=0, ge=0, le=15)
    """Service level of the messages: on Ethernet, the class of their frames, up to 7 (802.1p
    priority); on InfiniBand, network.lanes maps it to a lane."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.source == self.destination:
            raise ValueError(
                f"source and destination are both {self.source}; a host cannot send to itself"
            )
        if self.load and self.interval:
            raise ValueError("load and interval are given; give one, the other follows from it")
        if self.arrivals == "poisson" and not self.load and not self.interval:
            raise ValueError('arrivals = "poisson" requires a mean: give load or interval')
        return self


Flows = Annotated[dict[FlowName, Flow], Field(max_length=MOST_FLOWS)]
