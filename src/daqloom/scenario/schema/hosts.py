"""[hosts]: where units are, what hosts take time for, and how they send."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from daqloom.scenario.quantities import BitRateOrNone, Seconds
from daqloom.scenario.schema.building import BUILT
from daqloom.scenario.schema.distribution import Distribution
from daqloom.scenario.schema.part import (
    ASSUMED,
    CABLED,
    ETHERNET,
    RDMA,
    TCP,
    GuessedWhere,
    Number,
    Part,
    When,
    items,
)
from daqloom.scenario.schema.scheduling import Scheduling
from daqloom.scenario.schema.switches import MAY_DROP

MOST_HOSTS = 8192


BY_RULE = When("hosts.placement", ("fill", "spread"), or_without=True)
"""Marks the keys that a table of units replaces."""


def _host(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and 0 < len(value) <= 200:
        return value
    raise ValueError("is not a host; give its place in the order of ports, from 0, or its name")


Host = Annotated[int | str, BeforeValidator(_host)]


class UnitPlace(Part):
    """An entry of `hosts.units`: one unit's role and host."""

    unit: int = Field(ge=0, le=50_000)
    """Number of the unit, each from 0 on once: its place in the schedule."""
    role: Literal["readout", "builder", "both", "spare"] = "both"
    """Readout unit, builder unit, both (folded), or a spare host: it has none of them until those
    of a lost host move there; spares have the last numbers."""
    host: Host
    """The host, by its place in the order of ports, from 0, or by its name."""
    adapter: str = Field(default="", max_length=100)
    """Adapter of the unit on a host with several: the text after the host's name in the network,
    such as "mlx5_1" of "r5n0020 mlx5_1"."""

    @property
    def reads(self) -> bool:
        """Whether this is a readout unit."""
        return self.role in ("readout", "both")

    @property
    def builds(self) -> bool:
        """Whether this is a builder unit."""
        return self.role in ("builder", "both")

    def __str__(self) -> str:
        """Return the host, and its adapter, as the network names them."""
        return f"{self.host} {self.adapter}" if self.adapter else str(self.host)


class HostTimes(Part):
    """Where the hosts of the units are, and what they take time for."""

    count: Annotated[int, When("building.protocol", ("none",)), BY_RULE] = Field(
        default=0, ge=0, le=MOST_HOSTS
    )
    """Number of hosts, on a farm of each rack; 0: all of the network."""
    placement: Annotated[Literal["fill", "spread", "table"], CABLED] = "fill"
    """Fill one leaf switch after the other, spread units evenly over the leaves, or as `units`
    says."""
    units: Annotated[tuple[UnitPlace, ...], When(".placement", ("table",))] = items(MOST_HOSTS)
    """Units and their hosts, such as [{unit = 0, role = "both", host = "r5n0020"}]; slots of the
    schedule in the order of units; the k-th readout unit without builder unit shares its slot with
    the k-th builder unit without readout unit."""
    order: Annotated[Literal["by-port", "shuffled"], CABLED, BY_RULE] = "by-port"
    """Order of the units' slots: leaf after leaf by port, or random."""
    spares: Annotated[int, CABLED, BUILT, BY_RULE] = Field(default=0, ge=0, le=MOST_HOSTS)
    """Number of spare hosts, to which the units of lost hosts move while events are built: hosts
    without units, first those in whose place the schedule has a dummy, then by port."""
    spare_takes: Annotated[Literal["both", "one"], When(".spares", or_with=".units")] = "both"
    """Units that a spare host takes over from a lost one: the readout and the builder unit, or one
    of them, so that they go on apart (partly unfolded)."""
    message_cost: Seconds = 0.0
    """CPU time per message, sent or received, one message at a time (s)."""
    send_rate: BitRateOrNone = 0
    """Rate at which the CPU makes and sends data, besides the time per message; "0 b/s": it takes
    no time (b/s)."""
    receive_rate: BitRateOrNone = 0
    """Rate at which the CPU takes in and checks data, besides the time per message; "0 b/s": it
    takes no time (b/s)."""
    shared_cores: int = Field(default=0, ge=0, le=4096)
    """Cores on which the messages of all hosts take turns, as units of one machine do; 0: each host
    has a processor of its own."""
    polling_delay: Seconds = 0.0
    """Delay until the completion of a transfer is noticed by polling (s)."""
    latency: Distribution = Field(default_factory=Distribution)
    """Host latency, from a post to its first packet."""
    packet_latency: Annotated[Distribution, TCP] = Field(default_factory=Distribution)
    """From the arrival of a packet at a host until its kernel has dealt with it: acknowledged it,
    sent what it allows, told the application."""
    jitter: Annotated[Number, ETHERNET, GuessedWhere(*MAY_DROP, 4.0)] = Field(default=0.0, le=1000)
    """Longest random delay of a frame that finds its host's link idle, in times of that frame on
    the link. All frames, in order, reach their switch up to their own time late; 0: no delays."""
    pcie_rate: Annotated[BitRateOrNone, RDMA] = 0
    """PCIe rate of the network card, from memory and to memory each; "0 b/s": no limit (b/s)."""
    memory_rate: Annotated[BitRateOrNone, RDMA] = 0
    """Memory rate of a host, all traffic together; "0 b/s": no limit (b/s)."""
    memory_passes: Annotated[int, When(".memory_rate"), ASSUMED] = Field(default=2, ge=1, le=64)
    """How often data crosses memory when sent (written by its source, fetched) and when received
    (delivered, read by its consumer)."""
    local_rate: BitRateOrNone = 0
    """Rate of copies within a host; "0 b/s": infinitely fast (b/s)."""
    clock_offset: Seconds = 0.0
    """By windows or time slots: standard deviation of the hosts' clocks (s)."""
    clock_drift: Number = Field(default=0.0, le=0.01)
    """By windows or time slots: standard deviation of the hosts' rates (s/s)."""


class Hosts(Scheduling, HostTimes):
    """[hosts]: the hosts of the units."""
