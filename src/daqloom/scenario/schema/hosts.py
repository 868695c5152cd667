"""[hosts]: placement of units, time costs of hosts, and scheduling of their ports."""

from dataclasses import replace
from operator import attrgetter
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from daqloom.scenario.quantities import BitRateOrNone, Seconds
from daqloom.scenario.schema.building import BUILT
from daqloom.scenario.schema.distribution import Distribution
from daqloom.scenario.schema.measure import Cores
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
from daqloom.scenario.validation import pattern

MOST_HOSTS = 8192


BY_RULE = When("hosts.placement", ("fill", "spread"), or_without=True)
"""Condition of keys that do not apply with a table of units (`hosts.placement = "table"`)."""


def _host(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if isinstance(value, str) and 0 < len(value) <= 200:
        return value
    raise ValueError("is not a host; give its place in the order of ports, from 0, or its name")


_HOST: dict[str, Any] = {
    "anyOf": [
        {"type": "integer", "minimum": 0},
        {"type": "string", "minLength": 1, "maxLength": 200},
    ]
}
Host = Annotated[int | str, BeforeValidator(_host), WithJsonSchema(_HOST)]
DeviceName = Annotated[
    str,
    pattern(
        r"(?:[A-Za-z0-9_][A-Za-z0-9_.:-]{0,39})?",
        "is not a network device; expected an interface, an RDMA device or a PCI address",
    ),
]


MEASURED_PLACE = ("numa", "device", "cores")
"""Keys of a unit's place that only measurements use."""


class UnitPlace(Part):
    """An entry of `hosts.units`: one unit's role and host."""

    unit: int = Field(ge=0, le=50_000)
    """Number of the unit, also its place in the schedule. Each number from 0 occurs once."""
    role: Literal["readout", "builder", "both", "spare"] = "both"
    """Readout unit, builder unit, both (folded), or a spare host: it has no unit until the units of
    a lost host move there. Spares have the last numbers."""
    host: Host
    """Host, by its name in the network or its number in the order of ports, from 0. On a network
    that daqloom makes (every shape except imported and cables) also the name of a machine, if no
    host of the table has a name of the network; units then take the hosts in the order of ports."""
    adapter: str = Field(default="", max_length=100)
    """Adapter of the unit on a host with several: the text after the host's name in the network,
    such as "mlx5_1" of "r5n0020 mlx5_1"."""
    numa: int = Field(default=-1, ge=-1, le=1023)
    """NUMA node of the unit in a measurement: of its memory and, without `cores`, of its cores; -1:
    not chosen."""
    device: DeviceName = ""
    """Network card of the unit in a measurement: interface ("eth2"), RDMA device ("mlx5_1") or PCI
    address ("0000:c1:00.0"). TCP uses the address of its interface, libfabric its domain."""
    cores: Cores = ""
    """Processor cores of the unit in a measurement, such as "0-15", in place of its share of
    `measure.cores`; "auto": any. Memory is then on their NUMA node, if they have one in common."""

    @property
    def reads(self) -> bool:
        """Whether this is a readout unit."""
        return self.role in ("readout", "both")

    @property
    def builds(self) -> bool:
        """Whether this is a builder unit."""
        return self.role in ("builder", "both")

    @property
    def is_pinned(self) -> bool:
        """Whether the unit has cores or a NUMA node of its machine."""
        return bool(self.cores) or self.numa >= 0

    @property
    def machine(self) -> str:
        """Name of the unit's machine; empty for a host that is given by its number."""
        return "" if isinstance(self.host, int) else self.host.partition(" ")[0]

    def __str__(self) -> str:
        """Return host and adapter with their names in the network."""
        return f"{self.host} {self.adapter}" if self.adapter else str(self.host)


class HostTimes(Part):
    """Placement of units on hosts, and the time costs of hosts."""

    count: Annotated[int, When("building.protocol", ("none",)), BY_RULE] = Field(
        default=0, ge=0, le=MOST_HOSTS
    )
    """Number of hosts (farm: in each rack); 0: all hosts of the network."""
    placement: Annotated[
        Literal["fill", "spread", "table"], replace(CABLED, or_with="hosts.units")
    ] = "fill"
    """Hosts of the units: one leaf switch after the other (fill), evenly over the leaf switches
    (spread), or as listed in `units` (table). In a rack or farm only a table: of machines, with
    readout units before builder units."""
    units: Annotated[tuple[UnitPlace, ...], When(".placement", ("table",))] = items(MOST_HOSTS)
    """Units and their hosts, such as [{unit = 0, role = "both", host = "r5n0020"}], in the order of
    the slots of the schedule. The k-th unit that only reads out shares its slot with the k-th unit
    that only builds."""
    order: Annotated[Literal["by-port", "shuffled"], CABLED, BY_RULE] = "by-port"
    """Order of the slots of the schedule: by leaf switch and port, or random."""
    spares: Annotated[int, CABLED, BUILT, BY_RULE] = Field(default=0, ge=0, le=MOST_HOSTS)
    """Number of spare hosts, to which the units of lost hosts move while events are built. Spares
    are hosts without units: first those in place of dummies, then by port."""
    spare_takes: Annotated[Literal["both", "one"], When(".spares", or_with=".units")] = "both"
    """Units that a spare host takes over from a lost host: both, or only one of readout and builder
    unit, so that the two continue on different hosts (partly unfolded)."""
    message_cost: Seconds = 0.0
    """CPU time for each message sent or received; a host handles one message at a time (s)."""
    send_rate: BitRateOrNone = 0
    """Rate at which the CPU generates and sends data, in addition to the time per message; "0 b/s":
    no CPU time for data (b/s)."""
    receive_rate: BitRateOrNone = 0
    """Rate at which the CPU receives and checks data, in addition to the time per message; "0 b/s":
    no CPU time for data (b/s)."""
    shared_cores: int = Field(default=0, ge=0, le=4096)
    """Number of cores that all hosts share for their messages, like units on one machine; 0: each
    host has its own processor."""
    polling_delay: Seconds = 0.0
    """Delay from the completion of a transfer until polling detects it (s)."""
    latency: Distribution = Field(default_factory=Distribution)
    """Host latency: time from posting a message until its first packet leaves."""
    packet_latency: Annotated[Distribution, TCP] = Field(default_factory=Distribution)
    """Time from a packet's arrival at a host until the kernel has processed it: sent the
    acknowledgement and the data that it permits, and notified the application."""
    jitter: Annotated[Number, ETHERNET, GuessedWhere(*MAY_DROP, 4.0)] = Field(default=0.0, le=1000)
    """Longest random delay of a frame that finds its host's link idle, in transmission times of
    that frame. With jitter, each frame also reaches its switch late by at most its own transmission
    time, without reordering; 0: no delays."""
    pcie_rate: Annotated[BitRateOrNone, RDMA] = 0
    """PCIe rate of the network card, in each direction; "0 b/s": no limit (b/s)."""
    memory_rate: Annotated[BitRateOrNone, RDMA] = 0
    """Memory bandwidth of a host, shared by all its traffic; "0 b/s": no limit (b/s)."""
    memory_passes: Annotated[int, When(".memory_rate"), ASSUMED] = Field(default=2, ge=1, le=64)
    """Number of times that data passes the memory of the sender (written by the source, read by the
    card) and of the receiver (written by the card, read by the consumer)."""
    local_rate: BitRateOrNone = 0
    """Rate of copies within a host; "0 b/s": infinitely fast (b/s)."""
    clock_offset: Seconds = 0.0
    """Standard deviation of the hosts' clocks from true time; matters for time windows and time
    slots (s)."""
    clock_drift: Number = Field(default=0.0, le=0.01)
    """Standard deviation of the drift of the hosts' clocks; matters for time windows and time slots
    (s/s)."""

    @property
    def in_order(self) -> list[UnitPlace]:
        """The entries of `units` in the order of unit numbers."""
        return sorted(self.units, key=attrgetter("unit"))


class Hosts(Scheduling, HostTimes):
    """[hosts]: the hosts of the units."""
