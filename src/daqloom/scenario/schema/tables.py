"""The tables of a scenario file, without the checks across tables."""

from functools import reduce
from operator import or_
from typing import Annotated, Self

from pydantic import Field, model_validator

from daqloom.scenario.schema.building import PROTOCOLS, PULL, Building, Protocol
from daqloom.scenario.schema.event import Event
from daqloom.scenario.schema.faults import Faults
from daqloom.scenario.schema.flows import Flows
from daqloom.scenario.schema.hosts import Hosts
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES
from daqloom.scenario.schema.measure import Measure
from daqloom.scenario.schema.network import Network
from daqloom.scenario.schema.part import Part
from daqloom.scenario.schema.parts import Parts
from daqloom.scenario.schema.run import Run
from daqloom.scenario.schema.transport import ROCE_HEADER_BYTES, Transport
from daqloom.scenario.schema.units import Builders, Readout, Storage


class Tables(Part):
    """The tables of a scenario file, with properties that depend on several tables."""

    name: str = Field(default="", max_length=64, pattern=r"^[A-Za-z0-9._-]*$")
    """Short name in results; default: the name of the file."""
    title: str = Field(default="", max_length=200)
    """One line for lists."""
    description: str = Field(default="", max_length=10_000)
    """Description of the system."""
    event: Event = Field(default_factory=Event)
    """Events to build."""
    building: Building = Field(default_factory=Building)
    """Protocol that builds events."""
    readout: Readout = Field(default_factory=Readout)
    """Readout units."""
    builders: Builders = Field(default_factory=Builders)
    """Builder units."""
    storage: Annotated[Storage, PULL] = Field(default_factory=Storage)
    """Storage units."""
    hosts: Hosts = Field(default_factory=Hosts)
    """Hosts of the units."""
    transport: Transport = Field(default_factory=Transport)
    """Protocol that carries bytes between hosts."""
    network: Network = Field(default_factory=Network)
    """Switches, cables and links between hosts."""
    flows: Flows = Field(default_factory=dict)
    """Messages of load generators, by name."""
    faults: Faults = Field(default_factory=Faults)
    """Broken parts, and faults during a run."""
    run: Run = Field(default_factory=Run)
    """Length and seed of a simulation."""
    measure: Measure = Field(default_factory=Measure)
    """Processes, hosts and limits of a measurement."""

    @model_validator(mode="after")
    def _count_table(self) -> Self:
        """Set the numbers of units of a rack or farm to those of its table of units."""
        if self.hosts.placement == "table" and self.network.is_racks:
            units = self.hosts.units
            readout, builders = self.readout.model_copy(), self.builders.model_copy()
            readout.__dict__["units"] = sum(unit.reads for unit in units)
            builders.__dict__["units"] = sum(unit.builds for unit in units) // self.racks
            builders.__dict__["folded"] = all(unit.role == "both" for unit in units)
            self.__dict__.update(readout=readout, builders=builders)
        return self

    @property
    def protocol(self) -> Protocol:
        """Properties of the building protocol."""
        return PROTOCOLS[self.building.protocol]

    @property
    def mss(self) -> int:
        """Payload of a full TCP segment (B)."""
        return self.network.mtu - self.transport.header_bytes

    def wire_bytes(self, size: int) -> int:
        """Return the bytes on the wire for a message of `size` bytes, including headers and, on
        Ethernet, preambles and gaps."""
        frame_bytes = FRAME_OVERHEAD_BYTES + WIRE_OVERHEAD_BYTES
        if self.transport.kind == "tcp":
            return size + -(-size // self.mss) * (self.transport.header_bytes + frame_bytes)
        if self.network.technology == "ethernet":
            return self.transport.write_bytes(size, ROCE_HEADER_BYTES + frame_bytes)
        return self.transport.write_bytes(size)

    @property
    def packet_payload(self) -> int:
        """Payload of a full packet of the transport (B)."""
        return self.mss if self.transport.kind == "tcp" else self.transport.mtu

    @property
    def service_levels(self) -> dict[str, int]:
        """Service levels of the system's messages, as key of the scenario → level."""
        built = ("data", "control") if self.protocol.builds else ()
        names = [f"{what}_service_level" for what in built]
        levels = {f"transport.{name}": getattr(self.transport, name) for name in names}
        flows = self.flows.items()
        return levels | {f"flows.{name}.service_level": flow.service_level for name, flow in flows}

    @property
    def has_levels(self) -> bool:
        """Return whether messages have several service levels."""
        return len(set(self.service_levels.values())) > 1

    @property
    def has_classes(self) -> bool:
        """Return whether some Ethernet port schedules messages by service level."""
        ports = [self.hosts, *self.network.switch.all_of_ethernet]
        on_ethernet = self.network.technology == "ethernet"
        return on_ethernet and self.has_levels and any(port.scheduling != "fifo" for port in ports)

    @property
    def racks(self) -> int:
        """Number of racks of a farm, in each of which there are `builders.units` units; else 1."""
        return self.network.racks if self.network.shape == "farm" else 1

    @property
    def routers(self) -> int:
        """Number of core routers of a farm; else 1."""
        return self.network.routers if self.network.shape == "farm" else 1

    @property
    def hosts_at_core(self) -> int:
        """Number of hosts at core switches of a rack or farm, which have only a readout unit."""
        return 0 if self.is_folded else self.readout.units

    @property
    def hosts_in_rack(self) -> int:
        """Number of builder hosts in each rack, including hosts with both units."""
        return self.nodes // self.racks if self.is_folded else self.builders.units

    @property
    def all_builders(self) -> int:
        """Number of builder units that the scenario gives, in all racks together."""
        return self.racks * self.builders.units

    @property
    def nodes(self) -> int:
        """Number of hosts with a unit, without spares; 0: all hosts of the network."""
        if self.hosts.placement == "table":
            return sum(unit.role != "spare" for unit in self.hosts.units)
        if not self.protocol.builds:
            return self.racks * self.hosts.count
        if self.is_folded:
            return self.racks * self.readout.units
        return self.readout.units + (self.all_builders or self.readout.units)

    @property
    def is_folded(self) -> bool:
        """Whether each host has a readout unit and a builder unit, or no events are built."""
        if self.hosts.placement == "table":
            return all(unit.role in ("both", "spare") for unit in self.hosts.units)
        return self.builders.folded or not self.protocol.builds

    @property
    def packing(self) -> int:
        """Number of events in a multi-fragment packet; 1 without such packets."""
        return self.event.packing if self.protocol.packs else 1

    def readouts(self, nodes: int) -> int:
        """Return how many of `nodes` hosts have a readout unit."""
        if self.hosts.placement == "table":
            return sum(unit.reads for unit in self.hosts.units)
        if self.is_folded:
            return nodes
        return -(-nodes // 2) if self.protocol.has_schedule else self.readout.units

    def builder_units(self, nodes: int) -> int:
        """Return how many of `nodes` hosts have a builder unit."""
        if self.hosts.placement == "table":
            return sum(unit.builds for unit in self.hosts.units)
        return nodes if self.is_folded else nodes - self.readouts(nodes)

    @property
    def regroups(self) -> bool:
        """Return whether a simulation includes a run control, which regroups units. This requires a
        protocol that continues without lost units, and one of three causes. Units or hosts fail;
        another fault occurs in a run longer than the fault timeout, so that units may be
        unreachable or stall; or new forwarding tables require a new schedule. With storage units,
        faults that lose no unit only delay events."""
        injected = self.faults.injected.values()
        is_long = self.run.duration > self.measure.fault_timeout and not self.storage.units
        loses_units = any(each.loses_units or is_long for each in injected)
        is_simple = not self.flows and not self.readout.card.buffer
        return self.protocol.builds and is_simple and (loses_units or self.is_mended)

    @property
    def is_mended(self) -> bool:
        """Return whether a subnet manager's sweep installs tables with a new schedule."""
        is_swept = bool(self.faults.injected) and self.faults.routing == "sweep"
        return self.network.routing == "mended" and is_swept

    @property
    def parts(self) -> Parts:
        """The parts of the system."""
        protocol, network = self.protocol, self.network
        technology, has_lab = Parts[network.technology.upper()], self.measure.has_lab
        is_broken = bool(self.faults.cables) or network.routing == "mended"
        by_rdma = self.transport.kind == "rdma"
        on_fixed_paths = by_rdma and not network.spreads and not self.flows
        # Closed forms of incast describe pull building alone, over TCP in one Ethernet rack.
        is_pull_by_tcp = protocol.part == Parts.PULL and not self.flows and not by_rdma
        in_rack = technology == Parts.ETHERNET and network.shape == "rack"
        is_incast = is_pull_by_tcp and in_rack and not self.is_folded
        conditions = {
            Parts.FLOWS: self.flows,
            Parts.RACKS: network.is_racks,
            Parts.TREES: technology == Parts.ETHERNET and not network.is_racks,
            Parts.DATAGRAMS: any(flow.transport == "udp" for flow in self.flows.values()),
            Parts.FAULTED: self.faults.injected,
            Parts.STORED: self.storage.units,
            Parts.REGROUPED: self.regroups,
            Parts.LEVELS: self.has_levels,
            Parts.CLASSES: self.has_classes,
            Parts.LAB_RACKS: has_lab and network.is_racks,
            Parts.LAB_TREES: has_lab and not network.is_racks,
            Parts.DEVICE: self.measure.device,
            Parts.INCAST: is_incast,
            Parts.STORED_INCAST: is_incast and self.storage.units,
            protocol.on_fixed_paths: on_fixed_paths,
            Parts.BROKEN: on_fixed_paths and protocol.has_phases and is_broken,
            Parts.WAITING_FLOWS: not protocol.builds and technology == Parts.INFINIBAND,
        }
        found = protocol.part | technology | Parts[self.transport.kind.upper()]
        return reduce(or_, (part for part, holds in conditions.items() if holds), found)
