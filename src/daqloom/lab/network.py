"""Plan of a scenario's network in the laboratory: hosts, switches, cables, and a queue at each end
of a cable."""

import ipaddress
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from daqloom.deployment.fabric_system import FabricSystem, fabric_system
from daqloom.lab.hosts import route, settings
from daqloom.machine.namespace import NETWORK
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import TIME
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.switches import Switch
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import End
from daqloom.topology.fabric.links import LinkName, buckets_bytes, delays_s
from daqloom.topology.failures.reroute import reroutings
from daqloom.topology.routing.minimal import EqualCost

LONGEST_DELAY_S = 20e-6
"""Delay of a packet through a cable and the kernel; longer delays cannot be configured."""
MOST_HOSTS = 250
CHECK_SEQUENCE_BYTES = 4
"""Size of a frame's check sequence, which the kernel does not count."""


@dataclass(frozen=True)
class Queue:
    """Queue that sends into one end of a cable."""

    device: str
    link: LinkName
    """Directed link that begins at this queue."""
    rate_bps: int
    switch: int = -1
    """Index of the switch; -1: the queue is at a host."""
    buffer_bytes: int = 0
    """Capacity of the queue (B), counting headers and check sequences; 0: no limit."""
    packets: int = 0
    """Capacity of the queue in packets; 0: no limit."""
    bucket_frames: float = 2
    """Least size of the token bucket that acts as a wire, in full frames."""
    bucket_bytes: int = 0
    """Token-bucket depth of a shaper (B); 0: the link is a wire without shaping."""


@dataclass(frozen=True)
class Host:
    """A host in the laboratory, with one unit."""

    name: str
    address: str
    hardware_address: str


@dataclass(frozen=True)
class Cable:
    """A cable with a queue at each of its ends."""

    a: Queue
    b: Queue
    hosts: tuple[int, int]
    """Index of the host at each end; -1: a switch is there."""


@dataclass(frozen=True)
class Rings:
    """Rings of a software switch, one for each host in `hosts`."""

    switch: int
    hosts: tuple[int, ...]
    buffer: Switch
    """Buffer of the software switch, or of the shared-memory switch that it replaces."""


Forwarding = tuple[tuple[str, ...], ...]
"""Device through which a switch reaches a host, by switch and host; empty: none."""


@dataclass(frozen=True)
class LabNetwork:
    """Network of a laboratory, as a plan."""

    hosts: tuple[Host, ...]
    """Hosts by unit."""
    switches: tuple[str, ...]
    levels: tuple[str, ...]
    """Level of each switch."""
    cables: tuple[Cable, ...]
    towards: Forwarding
    software: tuple[Rings, ...]
    """Software switches; all other switches are kernel bridges."""
    mtu_bytes: int
    settings: Mapping[str, str]
    """Kernel settings of the hosts, by path below /proc/sys/net."""
    route: str
    """Attributes of the hosts' route to other hosts."""

    @property
    def queues(self) -> Iterator[Queue]:
        """Queues of switches."""
        for cable in self.cables:
            yield from (queue for queue in (cable.a, cable.b) if queue.switch >= 0)

    def queues_of(self, switch: int) -> list[Queue]:
        """Return the queues of one switch."""
        return [queue for queue in self.queues if queue.switch == switch]

    def queues_of_host(self, host: int) -> list[Queue]:
        """Return the queues of one host."""
        return [
            queue
            for cable in self.cables
            for queue, at in zip((cable.a, cable.b), cable.hosts, strict=True)
            if at == host
        ]

    @property
    def bridges(self) -> list[int]:
        """Indices of the switches that are kernel bridges."""
        software = {rings.switch for rings in self.software}
        return [number for number in range(len(self.switches)) if number not in software]


def lab_network(scenario: Scenario) -> LabNetwork:
    """Return the network of a scenario. Raises ScenarioError if it cannot be set up."""
    network = scenario.network
    if network.technology != "ethernet" or scenario.transport.kind != "tcp":
        raise ScenarioError(
            'measure.lab makes Ethernets that carry TCP: network.technology = "ethernet" and '
            'transport.kind = "tcp" are needed'
        )
    system = fabric_system(scenario)
    units = {host: unit for unit, host in enumerate(system.hosts_in_use)}
    if len(units) > MOST_HOSTS:
        raise ScenarioError(
            f"measure.lab: {len(units)} hosts are more than {MOST_HOSTS}; use fewer units"
        )
    buffers = [system.switch_at(number) for number in range(len(system.fabric.switches))]
    for level, buffer in zip(system.levels, buffers, strict=True):
        _check(level, buffer)
    for link, delay_s in zip(system.links[::2], delays_s(network, system.fabric), strict=True):
        if delay_s > LONGEST_DELAY_S:
            raise ScenarioError(
                f"measure.lab adds no delays: {link.name} has {TIME.format(delay_s)}, more than "
                f"the {TIME.format(LONGEST_DELAY_S)} of the kernel; simulate the system, or "
                "shorten the cable"
            )
    subnet = ipaddress.ip_network(NETWORK)
    hosts = tuple(
        Host(
            system.fabric.hosts[host].name,
            str(subnet[unit + 1]),
            f"02:00:00:00:{unit >> 8:02x}:{unit & 255:02x}",
        )
        for host, unit in units.items()
    )
    return LabNetwork(
        hosts,
        tuple(switch.name for switch in system.fabric.switches),
        tuple(system.levels),
        tuple(_cables(system, buffers, units, scenario.measure.bucket_frames)),
        _towards(system, system.ways),
        tuple(_rings(system, buffers, units)),
        network.mtu,
        settings(scenario),
        route(scenario),
    )


def later_forwarding(scenario: Scenario) -> list[tuple[float, Forwarding]]:
    """Return the times (s) at which switches forward in a new way after faults, as in simulation.
    Raises ScenarioError for faults that the network cannot have."""
    system = fabric_system(scenario)
    try:
        later = list(reroutings(system.fault_plan, system.network, system.fabric, system.ways))
    except TopologyError as error:
        raise ScenarioError(f"{scenario.name}: {error}") from None
    found, first = [(at_s, _towards(system, ways)) for at_s, ways, _ in later], system.ways
    for number, switch in enumerate(system.fabric.switches):
        before = _towards(system, first)[number]
        has_rings = system.switch_at(number).architecture in ("software", "shared-memory")
        if has_rings and any(towards[number] != before for _, towards in found):
            raise ScenarioError(
                f"measure.lab: the software switch for {switch.name} keeps its forwarding table, "
                'and a fault changes it; use "infinite" or "drop-tail", or faults.routing = "none"'
            )
    return found


def _towards(system: FabricSystem, ways: EqualCost) -> Forwarding:
    ports = ways.first(system.fabric).ports
    return tuple(
        tuple(
            _device(system, End(system.fabric.switch_node(switch), int(port))) if port else ""
            for port in ports[switch, system.hosts_in_use]
        )
        for switch in range(len(system.fabric.switches))
    )


def _rings(system: FabricSystem, buffers: list[Switch], units: dict[int, int]) -> Iterator[Rings]:
    for number, buffer in enumerate(buffers):
        if buffer.architecture == "software":
            hosts = tuple(units[host] for host in system.with_rings(buffer) if host in units)
            yield Rings(number, hosts, buffer)
        elif buffer.architecture == "shared-memory":
            yield Rings(number, tuple(units.values()), buffer)


def _check(level: str, buffer: Switch) -> None:
    key = f"network.switch.{level}"
    if buffer.architecture not in ("infinite", "drop-tail", "software", "shared-memory"):
        raise ScenarioError(
            f'measure.lab has no switch of {key}.model = "{buffer.model}"; expected "infinite", '
            '"drop-tail", "software" or "shared-memory"'
        )
    for what, is_given in (
        ("ecn_threshold", buffer.ecn_threshold > 0),
        ("scheduling", buffer.scheduling != "fifo"),
        ("queues that share a buffer", buffer.architecture == "drop-tail" and buffer.buffer > 0),
        ("pause_at", buffer.pause_at > 0),
        ("cores beside one", buffer.architecture == "software" and buffer.cores > 1),
    ):
        if is_given:
            raise ScenarioError(
                f"measure.lab has no switch with {what}, and {key} has one; leave it out"
            )


def _cables(
    system: FabricSystem, buffers: list[Switch], units: dict[int, int], bucket_frames: float
) -> Iterator[Cable]:
    hosts = len(system.fabric.hosts)
    shapers = buckets_bytes(system.network, system.fabric)
    for number, cable in enumerate(system.fabric.cables):
        ends = (cable.a, cable.b)
        if any(end.node < hosts and end.node not in units for end in ends):
            continue  # the cable of a host without a unit
        queues = [
            replace(
                _queue(system, end, system.links[2 * number + way], cable.rate_bps, buffers),
                bucket_frames=bucket_frames,
                bucket_bytes=shapers[number],
            )
            for way, end in enumerate(ends)
        ]
        at = [units[end.node] if end.node < hosts else -1 for end in ends]
        yield Cable(queues[0], queues[1], (at[0], at[1]))


def _queue(
    system: FabricSystem, end: End, link: LinkName, rate_bps: int, buffers: list[Switch]
) -> Queue:
    switch = end.node - len(system.fabric.hosts)
    device = _device(system, end)
    if switch < 0:
        return Queue(device, link, rate_bps)
    buffer = buffers[switch]
    if buffer.architecture in ("software", "shared-memory"):  # packets wait in rings
        return Queue(device, link, rate_bps, switch)
    return Queue(device, link, rate_bps, switch, buffer.port_limit, buffer.queue_packets)


def _device(system: FabricSystem, end: End) -> str:
    switch = end.node - len(system.fabric.hosts)
    return f"s{switch}p{end.port}" if switch >= 0 else "eth0"


def full_frame_bytes(mtu_bytes: int) -> int:
    """Return the buffer space that a full frame takes (B)."""
    return mtu_bytes + FRAME_OVERHEAD_BYTES
