"""A fabric from cables whose ends are named ports, such as `Ethernet48`, `swp1`, `et-0/0/3`.

A fabric has numbered ports: the named ports of a switch get numbers from 1 in the order of their
names, with digits compared by value. A host has one port, so a host with several cables becomes
several hosts, called `name port`: `ru07 ens1f0`, `ru07 ens1f1`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from daqloom.base.words import natural_key
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Cable, End, Fabric, Node, check, check_size

ONLY_PORT = 1
"""The port of a host."""


class Plug(NamedTuple):
    """One end of a cable: the name of a node, and the name or number of its port."""

    node: str
    port: str | int

    def __str__(self) -> str:
        return f"{self.node} port {self.port}"


class NamedCable(NamedTuple):
    """A cable between two ends given by name, and its rate (b/s)."""

    a: Plug
    b: Plug
    rate_bps: int


def in_order(names: Iterable[str]) -> list[str]:
    """Return names sorted with digits by value; names that differ only in leading zeros as text."""
    return sorted(names, key=lambda name: (natural_key(name), name))


def fabric_of_ports(
    name: str,
    switches: Sequence[Node],
    cables: Sequence[NamedCable],
    hosts: Sequence[Node] | None = None,
) -> Fabric:
    """Return the fabric of these cables; raises TopologyError if cables contradict each other.
    `switches`: with 0 ports if only the cables name their ports. `hosts`: by default all other
    nodes that cables name, in the order of their switches and ports."""
    bare = tuple(replace(node, ports=node.ports or 1) for node in switches)
    check(Fabric(name, tuple(hosts or ()), bare, ()))
    check_size(name, len(switches), len(cables))
    used = _ports_by_node(name, cables)
    numbers = {node.name: _numbers(name, node.name, used.get(node.name, {})) for node in switches}
    apart = {
        node: ports
        for node, ports in used.items()
        if node not in numbers and len(ports) > 1 and all(isinstance(port, str) for port in ports)
    }

    def host_name(plug: Plug) -> str:
        return f"{plug.node} {plug.port}" if plug.port in apart.get(plug.node, ()) else plug.node

    if hosts is None:
        nodes = [Node(host, 1) for host in _by_place(switches, cables, numbers, host_name)]
    else:
        nodes = [
            replace(host, name=each)
            for host in hosts
            for each in [f"{host.name} {port}" for port in apart.get(host.name, ())] or [host.name]
        ]
    cabled = [
        replace(
            node,
            ports=node.ports or max(numbers[node.name].values(), default=1),
            port_names=tuple(port for port in numbers[node.name] if isinstance(port, str)),
        )
        for node in switches
    ]
    index = {node.name: place for place, node in enumerate([*nodes, *cabled])}

    def end(plug: Plug) -> End:
        if plug.node in numbers:
            return End(index[plug.node], numbers[plug.node][plug.port])
        return End(index[host_name(plug)], ONLY_PORT if isinstance(plug.port, str) else plug.port)

    ends = [Cable(end(cable.a), end(cable.b), cable.rate_bps) for cable in cables]
    return check(Fabric(name, tuple(nodes), tuple(cabled), tuple(ends)))


def _ports_by_node(name: str, cables: Sequence[NamedCable]) -> dict[str, dict[str | int, None]]:
    """Return the ports of each node in the order of cables; raises TopologyError for two cables."""
    used: dict[str, dict[str | int, None]] = {}
    for cable in cables:
        for plug in cable.a, cable.b:
            ports = used.setdefault(plug.node, {})
            if plug.port in ports and isinstance(plug.port, str):
                loop = "is wired to itself" if cable.a == cable.b else "has two cables"
                raise TopologyError(f"{name}: {plug} {loop}")
            ports[plug.port] = None
    return used


def _numbers(name: str, switch: str, ports: Iterable[str | int]) -> Mapping[str | int, int]:
    """The number of each port of a switch."""
    names = [port for port in ports if isinstance(port, str)]
    numbers = [port for port in ports if not isinstance(port, str)]
    if names and numbers:
        refusal = f'{name}: {switch} has ports by name, such as "{names[0]}", and by number'
        raise TopologyError(f"{refusal}, such as {numbers[0]}; give all of a switch one way")
    if names:
        return {port: place for place, port in enumerate(in_order(names), start=1)}
    return {port: port for port in numbers}


def _by_place(
    switches: Sequence[Node],
    cables: Sequence[NamedCable],
    numbers: Mapping[str, Mapping[str | int, int]],
    host_name: Callable[[Plug], str],
) -> list[str]:
    rank = {node.name: place for place, node in enumerate(switches)}
    places: dict[str, tuple[int, int]] = {}
    for cable in cables:
        for here, there in (cable.a, cable.b), (cable.b, cable.a):
            if here.node not in rank:
                port = numbers[there.node][there.port] if there.node in rank else 0
                places[host_name(here)] = (rank.get(there.node, len(rank)), port)
    return sorted(places, key=lambda host: (places[host], natural_key(host)))
