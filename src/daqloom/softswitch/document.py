"""The file of a software switch: its ports, rings, rules and addresses, and how it runs."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from daqloom.scenario.addresses import IpNetwork
from daqloom.scenario.names import NodeName
from daqloom.scenario.quantities import (
    BitRateOrNone,
    Bytes,
    PositiveBytes,
    PositiveDuration,
    Seconds,
)
from daqloom.scenario.schema.part import Number, Part
from daqloom.scenario.validation import pattern

MOST_PORTS = 256
MOST_RINGS = 65_536
CLASSES = 8
MOST_PACKETS = 1 << 30
MOST_BYTES = (1 << 32) - (1 << 16)


Mac = Annotated[
    str,
    AfterValidator(str.lower),
    pattern(
        "(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}",
        'is not an Ethernet address; expected one such as "02:00:00:00:00:01"',
    ),
]
Device = Annotated[
    str,
    pattern(
        r"[A-Za-z0-9_.:/=,@-]{1,300}",
        "is not a device of DPDK; expected a PCI address or a virtual device, such as "
        '"0000:3b:00.0" or "net_af_packet0,iface=eth1"',
    ),
]
Controller = Annotated[
    str,
    pattern(
        r"(?:tcp|ssl):(?:\[[0-9A-Fa-f:.]{2,60}\]|[^\s:\[\]]{1,180})(?::[0-9]{1,5})?"
        r"|punix:\S{1,190}|p(?:tcp|ssl):[0-9]{0,5}(?::\S{1,180})?",
        "is no controller of OpenFlow; expected tcp:HOST:PORT or ssl:HOST:PORT to connect to it, "
        "or pssl:PORT or punix:PATH to listen for it",
    ),
]
Vlan = Annotated[int, Field(ge=1, le=4094)]
Layer4Port = Annotated[int, Field(ge=0, le=65_535)]


class Runs(Part):
    """Cores, memory and devices' queues."""

    cores: tuple[Annotated[int, Field(ge=0, le=1023)], ...] = Field(
        default=(), max_length=64, strict=False
    )
    """Cores of the switch, on which nothing else should run; empty: the first core that the process
    may use. With several cores, port number p (in the order of the file, from 0) is served by core
    p modulo the number of cores."""
    receive_queues: int = Field(default=1, ge=1, le=64)
    """Number of receive queues of each device, over which it distributes flows (RSS). The first
    queue is read by the core of the port, the others by the next cores; 1 = the core of a port
    reads all its frames."""
    memory: Bytes = 0
    """Memory for DPDK; "0 B" = as much as the packet buffers need (B)."""
    huge_pages: bool = True
    """Whether this memory consists of huge pages, which the system must provide; false: no huge
    pages are needed, but the switch is slower."""
    buffers: int = Field(default=0, ge=0, le=MOST_PACKETS)
    """Number of packet buffers for all rings and devices; 0 = the sum of their capacities. With
    fewer, the rings share them."""
    buffer_size: Annotated[PositiveBytes, Field(ge=256, le=16_000)] = 2048
    """Size of a packet buffer; the device drops larger frames (B)."""
    descriptors: int = Field(default=512, ge=32, le=32_768)
    """Number of descriptors of each device, in each direction. With few, packets wait in the rings,
    where they are counted and paced."""
    sleep: Annotated[Seconds, Field(le=1.0)] = 0.0
    """Longest sleep while no frame arrives or is due; "0 s" = no sleep: polling occupies whole
    cores (s)."""
    options: tuple[Annotated[str, Field(max_length=300)], ...] = Field(
        default=(), max_length=32, strict=False
    )
    """Further options for DPDK, such as "--log-level=pmd.*:debug"."""


class Port(Part):
    """A port of the switch."""

    device: Device
    """DPDK device: the PCI address of a network card, or a virtual device with its arguments."""
    packets: int = Field(default=4096, ge=1, le=MOST_PACKETS)
    """Capacity (packets) of the ring of each class of the port, for frames without a ring of their
    own; further frames are dropped."""
    floods: int = Field(default=100_000, ge=0, le=MOST_PACKETS)
    """Limit on frames per second from this port to all others: broadcasts, multicasts, and frames
    to unknown addresses. Further frames are dropped; a burst of the frames of 100 ms is allowed. 0
    = no limit."""
    addresses: int = Field(default=0, ge=0, le=4_194_304)
    """Limit on the addresses learned at the port; 0 = only that of the table. In a full table, a
    port that has less than half of an equal share may replace addresses of the port with the
    most."""


class Matching(Part):
    """Properties that a frame must have; a missing key allows any value."""

    destination: Mac | None = None
    """Destination Ethernet address of the frame."""
    vlan: Vlan | None = None
    """VLAN of the frame's outermost tag."""
    ethertype: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """EtherType of the frame."""
    to: IpNetwork | None = None
    """Destination IP address, or a network that contains it."""
    protocol: Literal["tcp", "udp"] | None = None
    """Protocol of the IP packet."""
    from_port: Layer4Port | None = None
    """Source port of TCP or UDP."""
    to_port: Layer4Port | None = None
    """Destination port of TCP or UDP."""
    ingress: NodeName | None = None
    """Port of the switch at which the frame arrives."""
    priority: int = Field(default=0, ge=0, le=65_535)
    """Priority: of several matches, the one with the highest priority applies."""

    @property
    def is_restricted(self) -> bool:
        """Whether only some frames match."""
        keys = Matching.model_fields.keys() - {"priority"}
        return any(getattr(self, key) is not None for key in keys)


class Ring(Matching):
    """The ring of a destination, and the frames that go into it."""

    port: NodeName
    """Output port of the ring."""
    packets: int = Field(default=4096, ge=1, le=MOST_PACKETS)
    """Capacity of the ring in packets; further packets are dropped (drop-tail)."""
    bytes: Annotated[PositiveBytes, Field(le=MOST_BYTES)] = MOST_BYTES
    """Capacity of the ring in bytes (B)."""
    ecn_threshold: Annotated[Bytes, Field(le=MOST_BYTES)] = 0
    """Occupancy of the ring above which arriving packets are marked with congestion experienced, if
    their IP header permits it; "0 B" = never (B)."""
    rate: BitRateOrNone = 0
    """Rate at which packets leave the ring; "0 b/s" = the rate of the port (b/s)."""
    pause_at: int = Field(default=0, ge=0, le=MOST_PACKETS)
    """Occupancy (packets) above which the switch sends pause frames (IEEE 802.3) on the ports from
    which the ring's frames arrive, until the occupancy has fallen to half. Nothing is lost if the
    sources obey; they then pause their frames to other destinations, too. 0 = never."""
    mirrored: bool = False
    """Whether the ring's frames are copied to the mirror port, including dropped ones."""
    traffic_class: int = Field(default=0, ge=0, lt=CLASSES)
    """Class of the ring at its port: higher classes are always served before lower ones; the rings
    of a class take turns."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.is_restricted:
            raise ValueError(
                "to is missing, and so is every other key that selects frames for this ring; give "
                "to, destination, vlan, ethertype, protocol, from_port, to_port or ingress"
            )
        return self


class Rule(Matching):
    """Treatment of frames without a ring."""

    action: Literal["drop", "forward", "port"] = "forward"
    """Treatment of the frame: dropped, forwarded towards its address, or sent by `port`."""
    port: NodeName | None = None
    """Output port, with action = "port"."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.action == "port") != (self.port is not None):
            raise ValueError('port is for action = "port", which needs it')
        return self


class SharedMemory(Part):
    """The packet memory of a real switch, whose drops are reproduced."""

    buffer: Bytes = 0
    """Size of the packet memory, dedicated part included; "0 B" = no shared memory, only rings have
    limits (B)."""
    dedicated: Bytes = 0
    """Part of the memory that is divided evenly among the ports (B)."""
    ports: int = Field(default=0, ge=0, le=10_000)
    """Number of ports that share the dedicated part; 0 = the ports of this switch."""
    alpha: Number = Field(default=1.0, gt=0, le=1e6)
    """Dynamic threshold: in addition to its dedicated part, a port may use alpha × the free shared
    part."""
    port_limit: Bytes = 0
    """Limit on the memory that a port may use; "0 B" = no limit (B)."""
    cell_size: Bytes = 256
    """Size of the cells that packets occupy; "0 B" = no cells, packets count their bytes (B)."""
    cell_metadata: Bytes = 64
    """Metadata in the first cell of each packet (B)."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.dedicated > self.buffer:
            raise ValueError("dedicated is larger than buffer, of which it is a part")
        return self


class FixedAddress(Part):
    """An Ethernet address with a given port, which is not learned."""

    address: Mac
    """Ethernet address."""
    port: NodeName
    """Port of the address."""
    vlan: Annotated[int, Field(ge=0, le=4094)] | None = None
    """VLAN of the address: 0 = frames without a tag, none = all VLANs."""


class Addresses(Part):
    """The table of Ethernet addresses, which the switch learns from the sources of frames."""

    most: int = Field(default=8192, ge=1, le=4_194_304)
    """Capacity of the table, in addresses; further addresses are not learned, but their frames are
    forwarded."""
    ageing: Annotated[PositiveDuration, Field(le=1e6)] = 300.0
    """Time without a frame after which an address is removed (s)."""
    unknown: Literal["flood", "drop"] = "flood"
    """Treatment of frames to unknown addresses."""
    fixed: dict[NodeName, FixedAddress] = Field(default_factory=dict, max_length=65_536)
    """Addresses that are not learned, by name."""


class Control(Part):
    """Interfaces that show and change the switch."""

    listen: Annotated[str, Field(max_length=200)] = "127.0.0.1:0"
    """Address, HOST:PORT, at which the switch accepts requests of `daqloom switch status` and
    others; port 0: any free port. An address other than loopback requires certificates."""
    certificates: Annotated[str, Field(max_length=4096)] = ""
    """Folder with certificates from `daqloom control certificates`."""
    ovsdb: Annotated[str, Field(max_length=200)] = ""
    """Database of Open vSwitch through which `ovs-vsctl` sets the rates of rings and reads ports,
    such as "unix:/run/openvswitch/db.sock"; empty: none. Requires the package daqloom-sdn."""
    bridge: Annotated[str, Field(max_length=40)] = "br0"
    """Name of this switch's bridge in that database."""
    openflow: tuple[Controller, ...] = Field(default=(), max_length=8, strict=False)
    """OpenFlow 1.3 controllers: "tcp:HOST:PORT" or "ssl:HOST:PORT" to connect to one;
    "pssl:PORT:HOST" (with certificates), "punix:PATH" (for this user) or "ptcp:PORT" (on loopback,
    with insecure) to listen for them. Their entries take precedence over the matches of rings and
    over rules. Requires the package daqloom-sdn."""
    insecure: bool = False
    """Whether controllers may connect through "ptcp", which is not authenticated: then all users of
    this machine may control the switch."""
    datapath: int = Field(default=1, ge=1, lt=1 << 64)
    """Datapath identifier of the switch for OpenFlow controllers."""
    prometheus: Annotated[str, Field(max_length=200)] = ""
    """Address, HOST:PORT, at which the switch serves its counters to Prometheus; empty: none."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.insecure and (ptcp := [c for c in self.openflow if c.startswith("ptcp:")]):
            raise ValueError(
                f'openflow = "{ptcp[0]}" would let all users of this machine steer the switch, as '
                "OpenFlow over TCP is not authenticated; use punix:PATH or pssl:PORT, or set "
                "insecure = true"
            )
        return self


class SwitchFile(Part):
    """A software switch."""

    title: str = Field(default="", max_length=200)
    """One line that describes the switch."""
    pace_counts: Literal["wire", "ip"] = "wire"
    """Bits that rates of rings count: all bits on the wire, with preamble, check sequence and gap,
    or those of IP packets."""
    classes: int = Field(default=1, ge=1, le=CLASSES)
    """Number of classes of each port, selected by the priority in VLAN tags, for frames without a
    ring of their own."""
    mirror: NodeName | None = None
    """Port that receives copies of the frames of mirrored rings, for a capture."""
    shared_memory: SharedMemory = Field(default_factory=SharedMemory)
    """Packet memory that all ports share."""
    runs: Runs = Field(default_factory=Runs)
    """Cores, memory and queues."""
    ports: dict[NodeName, Port] = Field(min_length=1, max_length=MOST_PORTS)
    """Ports, by name."""
    rings: dict[NodeName, Ring] = Field(default_factory=dict, max_length=MOST_RINGS)
    """Rings of destinations, by name."""
    rules: dict[NodeName, Rule] = Field(default_factory=dict, max_length=MOST_RINGS)
    """Rules for frames without a ring, by name."""
    addresses: Addresses = Field(default_factory=Addresses)
    """Table of Ethernet addresses."""
    control: Control = Field(default_factory=Control)
    """Control and counters."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        for path, name in self._ports_named():
            if name is not None and name not in self.ports:
                known = ", ".join(list(self.ports)[:8])
                raise ValueError(f'{path} = "{name}" is no port of the switch; there are {known}')
        if len(self.runs.cores) > 1:
            self._check_several_cores()
        if self.mirror is None and (
            mirrored := next((r for r in self.rings if self.rings[r].mirrored), "")
        ):
            raise ValueError(f"rings.{mirrored} is mirrored without a mirror; give mirror a port")
        devices = [port.device.partition(",")[0] for port in self.ports.values()]
        if twice := next((each for each in devices if devices.count(each) > 1), None):
            raise ValueError(f'ports have the device "{twice}" twice; each needs one of its own')
        return self

    def queues(self, port: str) -> dict[int, str]:
        """Return the names of a port's rings by their numbers as queues in Open vSwitch and for
        controllers: 1, 2, … in the order of the file."""
        return dict(enumerate((r for r, ring in self.rings.items() if ring.port == port), 1))

    def _check_several_cores(self) -> None:
        """Raise ValueError for settings that need one core."""
        if self.shared_memory.buffer:
            raise ValueError("shared_memory.buffer needs one core; give runs.cores one")
        if pausing := next((r for r in self.rings if self.rings[r].pause_at), ""):
            raise ValueError(
                f"rings.{pausing}.pause_at needs one core, as another one may serve the port to be "
                "paused; give runs.cores one, or leave it out"
            )

    def _ports_named(self) -> list[tuple[str, str | None]]:
        tables: dict[str, Any] = {
            "rings": self.rings,
            "rules": self.rules,
            "addresses.fixed": self.addresses.fixed,
        }
        return [("mirror", self.mirror)] + [
            (f"{table}.{name}.{key}", getattr(entry, key))
            for table, entries in tables.items()
            for name, entry in entries.items()
            for key in ("port", "ingress")
            if key in type(entry).model_fields
        ]
