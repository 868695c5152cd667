"""The tables of a scenario file, before anything is checked across them."""

from __future__ import annotations

from pydantic import Field

from daqloom.scenario.building import Building
from daqloom.scenario.event import Event
from daqloom.scenario.flows import Flows
from daqloom.scenario.hosts import Hosts
from daqloom.scenario.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES
from daqloom.scenario.measure import Measure
from daqloom.scenario.network import Network
from daqloom.scenario.part import Part
from daqloom.scenario.run import Run
from daqloom.scenario.transport import ROCE_HEADER_BYTES, Transport
from daqloom.scenario.units import Builders, Readout


class Tables(Part):
    """The tables of a scenario file, and what follows from several of them."""

    name: str = Field(
        default="",
        max_length=64,
        pattern=r"^[A-Za-z0-9._-]*$",
        description="short name in results; by default the file's name",
    )
    title: str = Field(default="", max_length=200, description="one line for lists")
    description: str = Field(default="", max_length=10_000, description="description of the system")
    event: Event = Field(default_factory=Event, description="what there is to build")
    building: Building = Field(default_factory=Building, description="how it is built")
    readout: Readout = Field(default_factory=Readout, description="readout units")
    builders: Builders = Field(default_factory=Builders, description="builder units")
    hosts: Hosts = Field(default_factory=Hosts, description="hosts of the units")
    transport: Transport = Field(default_factory=Transport, description="how bytes travel")
    network: Network = Field(default_factory=Network, description="over what")
    flows: Flows = Field(default_factory=dict, description="messages of load generators, by name")
    run: Run = Field(default_factory=Run, description="length and seed of a simulation")
    measure: Measure = Field(default_factory=Measure, description="how a measurement runs")

    @property
    def mss(self) -> int:
        """Payload of a full TCP segment (B)."""
        return self.network.mtu - self.transport.header_bytes

    def wire_bytes(self, size: int) -> int:
        """Return the bytes on the wire of a message of `size` bytes: headers, and on Ethernet
        preambles and gaps."""
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
    def is_rack(self) -> bool:
        """Return whether the system is pull building alone, over TCP in one rack, whose buffers the
        closed forms of incast are about."""
        return (
            not self.flows
            and self.building.protocol == "pull"
            and self.transport.kind == "tcp"
            and self.network.technology == "ethernet"
            and self.network.shape == "rack"
            and not self.folded
        )

    @property
    def racks(self) -> int:
        """Number of racks of a farm, each of which has the units that are counted; else 1."""
        return self.network.racks if self.network.shape == "farm" else 1

    @property
    def routers(self) -> int:
        """Number of core routers of a farm; else 1."""
        return self.network.routers if self.network.shape == "farm" else 1

    @property
    def hosts_at_core(self) -> int:
        """Hosts of a rack or farm that are connected to the core: those that only read out."""
        return 0 if self.folded else self.readout.units

    @property
    def hosts_in_rack(self) -> int:
        """Hosts in each rack: those that build, hosts with both units among them."""
        return self.nodes // self.racks if self.folded else self.builders.units

    @property
    def all_builders(self) -> int:
        """Number of builder units as given, in all racks together."""
        return self.racks * self.builders.units

    @property
    def nodes(self) -> int:
        """Number of hosts with a unit; 0: all of the network."""
        if self.hosts.placement == "table":
            return len(self.hosts.units)
        if self.building.protocol == "none":
            return self.racks * self.hosts.count
        if self.folded:
            return self.racks * self.readout.units
        return self.readout.units + (self.all_builders or self.readout.units)

    @property
    def folded(self) -> bool:
        """Return whether each host has a readout unit and a builder unit, or nothing is built."""
        if self.hosts.placement == "table":
            return all(unit.role == "both" for unit in self.hosts.units)
        return self.builders.folded or self.building.protocol == "none"

    @property
    def packing(self) -> int:
        """The number of events whose fragments travel together; 1 in pull building."""
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
