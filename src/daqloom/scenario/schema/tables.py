"""The tables of a scenario file, without the checks across tables."""

from pydantic import Field

from daqloom.scenario.schema.building import Building
from daqloom.scenario.schema.event import Event
from daqloom.scenario.schema.faults import Faults
from daqloom.scenario.schema.flows import Flows
from daqloom.scenario.schema.hosts import Hosts
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES
from daqloom.scenario.schema.measure import Measure
from daqloom.scenario.schema.network import Network
from daqloom.scenario.schema.part import Part
from daqloom.scenario.schema.run import Run
from daqloom.scenario.schema.transport import ROCE_HEADER_BYTES, Transport
from daqloom.scenario.schema.units import Builders, Readout


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
    """How it is built."""
    readout: Readout = Field(default_factory=Readout)
    """Readout units."""
    builders: Builders = Field(default_factory=Builders)
    """Builder units."""
    hosts: Hosts = Field(default_factory=Hosts)
    """Hosts of the units."""
    transport: Transport = Field(default_factory=Transport)
    """How bytes travel."""
    network: Network = Field(default_factory=Network)
    """Over what."""
    flows: Flows = Field(default_factory=dict)
    """Messages of load generators, by name."""
    faults: Faults = Field(default_factory=Faults)
    """Broken parts, and faults during a run."""
    run: Run = Field(default_factory=Run)
    """Length and seed of a simulation."""
    measure: Measure = Field(default_factory=Measure)
    """How a measurement runs."""

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
        built = () if self.building.protocol == "none" else ("data", "control")
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
        return 0 if self.folded else self.readout.units

    @property
    def hosts_in_rack(self) -> int:
        """Number of builder hosts in each rack, including hosts with both units."""
        return self.nodes // self.racks if self.folded else self.builders.units

    @property
    def all_builders(self) -> int:
        """Number of builder units that the scenario gives, in all racks together."""
        return self.racks * self.builders.units

    @property
    def nodes(self) -> int:
        """Number of hosts with a unit, without spares; 0: all hosts of the network."""
        if self.hosts.placement == "table":
            return sum(unit.role != "spare" for unit in self.hosts.units)
        if self.building.protocol == "none":
            return self.racks * self.hosts.count
        if self.folded:
            return self.racks * self.readout.units
        return self.readout.units + (self.all_builders or self.readout.units)

    @property
    def folded(self) -> bool:
        """Whether each host has a readout unit and a builder unit, or no events are built."""
        if self.hosts.placement == "table":
            return all(unit.role in ("both", "spare") for unit in self.hosts.units)
        return self.builders.folded or self.building.protocol == "none"

    @property
    def packing(self) -> int:
        """Number of events whose fragments travel in one packet; 1 in pull building."""
        return 1 if self.building.protocol == "pull" else self.event.packing

    def readouts(self, nodes: int) -> int:
        """Return how many of `nodes` hosts have a readout unit."""
        if self.hosts.placement == "table":
            return sum(unit.reads for unit in self.hosts.units)
        if self.building.protocol == "pull":
            return nodes if self.folded else self.readout.units
        return nodes if self.folded else -(-nodes // 2)

    def builder_units(self, nodes: int) -> int:
        """Return how many of `nodes` hosts have a builder unit."""
        if self.hosts.placement == "table":
            return sum(unit.builds for unit in self.hosts.units)
        return nodes if self.folded else nodes - self.readouts(nodes)
