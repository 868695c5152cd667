"""A fabric as it is cabled: hosts, switches, cables."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from daqloom.base.line_counts import FileCounts
from daqloom.base.words import natural_key
from daqloom.scenario.schema.links import MOST_PORTS as MOST_PORTS
from daqloom.topology import TopologyError

MOST_NODES = 49151
"""Unicast addresses (LIDs) of an InfiniBand subnet."""
MOST_CABLES = 1 << 18
"""Limit on cables; a non-blocking fat tree of three levels with all LIDs has about 120 000."""
LONGEST_NAME = 200
FASTEST_BPS = 10**14


class End(NamedTuple):
    """One end of a cable: the node's index in `Fabric.nodes`, and the port as labelled, from 1."""

    node: int
    port: int


@dataclass(frozen=True)
class Node:
    """A switch, or one cabled port of a host's adapter; `guid` and `lid` are 0 if unknown."""

    name: str
    ports: int
    guid: int = 0
    lid: int = 0
    port_names: tuple[str, ...] = ()
    """Names of ports 1, 2, …; empty if ports have only numbers."""


@dataclass(frozen=True)
class Cable:
    """A cable with the same data rate (b/s) in both directions."""

    a: End
    b: End
    rate_bps: int


@dataclass(frozen=True)
class Fabric:
    """Hosts, switches and the cables between them. `nodes` lists the hosts, then the switches."""

    name: str
    hosts: tuple[Node, ...]
    switches: tuple[Node, ...]
    cables: tuple[Cable, ...]
    lines: FileCounts = field(default_factory=dict, compare=False, repr=False)
    """Line counts of the files from which the fabric was read."""

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Hosts 0 … len(hosts) − 1, then switches."""
        return self.hosts + self.switches

    @cached_property
    def peers(self) -> dict[End, End]:
        """Peer of each cabled end."""
        ends = {cable.a: cable.b for cable in self.cables}
        return ends | {cable.b: cable.a for cable in self.cables}

    @cached_property
    def host_counts(self) -> Counter[int]:
        """Number of hosts cabled to each switch, by its index in `nodes`."""
        hosts, peers = len(self.hosts), self.peers.items()
        return Counter(end.node for here, end in peers if here.node < hosts <= end.node)

    def port_name(self, end: End) -> str:
        """Return the name of a port, such as `Ethernet48`, or its number as text."""
        names = self.nodes[end.node].port_names
        return names[end.port - 1] if 1 <= end.port <= len(names) else str(end.port)

    def end_name(self, end: End) -> str:
        """Return an end as text: `leaf00 port 21`, or a host's name alone, as it has one port."""
        name = self.nodes[end.node].name
        return name if end.node < len(self.hosts) else f"{name} port {self.port_name(end)}"

    def switch_node(self, switch: int) -> int:
        """Return the index in `nodes` of a switch from its index in `switches`."""
        return len(self.hosts) + switch


def natural_order(nodes: Sequence[Node]) -> list[int]:
    """Return the indices of the nodes sorted by name, with digits compared by value."""
    return sorted(range(len(nodes)), key=lambda place: natural_key(nodes[place].name))


def with_rate(fabric: Fabric, rate_bps: int) -> Fabric:
    """Return a copy of the fabric whose links all have the same rate (b/s)."""
    cables = tuple(replace(cable, rate_bps=rate_bps) for cable in fabric.cables)
    return check(replace(fabric, cables=cables))


def check(fabric: Fabric) -> Fabric:
    """Return the fabric itself; raises TopologyError if it is inconsistent. Names must be
    printable, short and unique; known GUIDs and LIDs must be unique. A host has one port. Every
    cabled port exists and holds one cable, which leads to another port. Rates are positive."""
    if not is_name(fabric.name):
        raise TopologyError(f"a fabric's name has 1 to {LONGEST_NAME} printable characters")
    check_size(fabric.name, len(fabric.nodes), len(fabric.cables))
    for index, node in enumerate(fabric.nodes):
        host = index < len(fabric.hosts)
        if not is_name(node.name):
            problem = f"no name of 1 to {LONGEST_NAME} printable characters"
            raise TopologyError(f"{fabric.name}: node {index} has {problem}")
        if not 1 <= node.ports <= (1 if host else MOST_PORTS):
            expected = "a host has 1" if host else f"expected 1 to {MOST_PORTS}"
            raise TopologyError(f"{fabric.name}: {node.name} has {node.ports} ports; {expected}")
        if not (0 <= node.guid < 1 << 64 and 0 <= node.lid <= MOST_NODES):
            raise TopologyError(f"{fabric.name}: the GUID or LID of {node.name} is out of range")
    _check_unique(fabric, "name", [node.name for node in fabric.nodes])
    _check_unique(fabric, "GUID", [node.guid for node in fabric.nodes])
    _check_unique(fabric, "LID", [node.lid for node in fabric.nodes])
    used: set[End] = set()
    for cable in fabric.cables:
        for end in cable.a, cable.b:
            if not 0 <= end.node < len(fabric.nodes):
                raise TopologyError(f"{fabric.name}: a cable to node {end.node}, which is none")
            where = f"{fabric.name}: {fabric.nodes[end.node].name} port {end.port}"
            if not 1 <= end.port <= fabric.nodes[end.node].ports:
                ports = fabric.nodes[end.node].ports
                raise TopologyError(f"{where} is cabled; it has ports 1 to {ports}")
            if end in used:
                loop = "is wired to itself" if cable.a == cable.b else "has two cables"
                raise TopologyError(f"{where} {loop}")
            used.add(end)
        if not 1 <= cable.rate_bps <= FASTEST_BPS:
            raise TopologyError(f"{where}: {cable.rate_bps} b/s is not the rate of a link")
    return fabric


def check_size(name: str, nodes: int, cables: int) -> None:
    """Raises TopologyError for a fabric that is larger than any InfiniBand subnet."""
    if nodes > MOST_NODES:
        raise TopologyError(f"{name} has more than the {MOST_NODES} nodes of a subnet")
    if cables > MOST_CABLES:
        raise TopologyError(f"{name} has more than {MOST_CABLES} cables, more than any subnet")


def is_name(name: str) -> bool:
    """Whether a text can be the name of a fabric, a node or a port."""
    return 1 <= len(name) <= LONGEST_NAME and name.isprintable()


def _check_unique(fabric: Fabric, what: str, values: Sequence[str | int]) -> None:
    places: dict[str | int, int] = {}
    for index, value in enumerate(values):
        first = places.setdefault(value, index)
        if value and first != index:
            nodes = [f"{place} ({fabric.nodes[place].name})" for place in (first, index)]
            raise TopologyError(f"{fabric.name}: nodes {' and '.join(nodes)} have the same {what}")
