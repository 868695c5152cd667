"""[flows.NAME]: messages of load generators and benchmarks, alone in a simulation, or as background
traffic of a simulated or measured event builder."""

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from daqloom.scenario.quantities import Duration, PositiveBytes, Seconds
from daqloom.scenario.schema.hosts import Host
from daqloom.scenario.schema.part import ASSUMED, Number, Part

MOST_FLOWS = 256
EVERY = "every"
"""A source: all nodes."""
RANDOM = "random"
"""Value of `destination`: any other node, drawn for each message."""

FlowName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$", max_length=40)]
"""Name of a flow or fault, which becomes a part of dotted names of keys and metrics."""


class Flow(Part):
    """A flow: messages of one size, from one or all hosts, to one or a random other
    host. A measurement sends flows over TCP or UDP between the hosts of its units, and classes
    (`service_level`) and RDMA exist only in simulation."""

    source: Host
    """Sending host, by its name or number; "every": each numbered host. Numbers begin at 0 and
    follow the order of the units (racks: readout units, then builder units; else by port); hosts
    without units that flows name come last."""
    destination: Host
    """Receiving host, by its name or number; "random": any other numbered host, drawn for each
    message."""
    size: Annotated[PositiveBytes, ASSUMED] = Field(default=64 * 1024, le=1 << 30)
    """Payload of a message (B)."""
    messages: int = Field(default=0, ge=0, le=1 << 53)
    """Number of messages from each source; 0: unlimited."""
    interval: Seconds = 0.0
    """Time between two messages of a source; "0 s": as short as `outstanding` allows (s)."""
    load: Number = Field(default=0.0, le=1)
    """Load of the source's link, headers included, 0 to 1; replaces `interval`."""
    arrivals: Literal["even", "poisson"] = "even"
    """Distribution of intervals: constant (even), or exponential (poisson)."""
    start: Duration = 0.0
    """Time of the first message (s)."""
    outstanding: Annotated[int, ASSUMED] = Field(default=128, ge=1, le=65_536)
    """Limit on a source's incomplete messages; further messages wait until earlier ones are
    complete."""
    transport: Literal["system", "udp"] = "system"
    """Transport of the messages: that of the system, or UDP datagrams over Ethernet. UDP does not
    retransmit: a message that loses a datagram is lost, and a message is complete when it is
    sent."""
    service_level: int = Field(default=0, ge=0, le=15)
    """Service level of the messages, simulated only: on Ethernet, the class of their frames, 0 to 7
    (802.1p priority); on InfiniBand, network.lanes maps it to a virtual lane."""

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
