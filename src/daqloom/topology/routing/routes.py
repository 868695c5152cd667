"""Paths of all pairs of hosts through a fabric's forwarding tables, and defects of the tables."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import NONE, Wiring, wire

MOST_HOPS = 64
"""Limit on hops, that of directed routes in InfiniBand's subnet management."""


MOST_ROUTES = 1 << 23
"""Limit on entries of all tables together; tracing them takes about 60 B for each entry."""


@dataclass(frozen=True)
class Routes:
    """Forwarding tables: `ports[switch, host]` is the port towards a host, 0 without a route."""

    ports: NDArray[np.int16]


def no_routes(fabric: Fabric) -> NDArray[np.int16]:
    """Return tables of zeros; raises TopologyError for a fabric with too many entries."""
    shape = len(fabric.switches), len(fabric.hosts)
    if shape[0] * shape[1] > MOST_ROUTES:
        raise TopologyError(
            f"the forwarding tables of {fabric.name}, {shape[0]} switches × {shape[1]} hosts, are "
            f"larger than the {MOST_ROUTES} entries that can be followed"
        )
    return np.zeros(shape, np.int16)


Kind = Literal["no route", "uncabled port", "wrong host", "loop", "uncabled host"]


@dataclass(frozen=True)
class Defect:
    """A switch's port (0: none) at which packets to some hosts are lost or enter a loop."""

    kind: Kind
    switch: int
    """Index in `fabric.switches`; `NONE` for a host without a cable."""
    port: int
    destinations: tuple[int, ...]
    pairs: int
    """Number of (source, destination) pairs that fail at this port."""
    sentence: str


@dataclass(frozen=True)
class Paths:
    """Paths of all (source, destination) pairs as sequences of links; `links` returns one."""

    wiring: Wiring
    rest: NDArray[np.int32]
    """(hops, switches, hosts): links from a switch to a host, then `NONE` on arrival or loss."""
    arrives: NDArray[np.bool_]
    """(switches + 1, hosts): whether packets arrive; the last row, for no switch, is False."""
    defects: tuple[Defect, ...]

    @property
    def pairs_lost(self) -> int:
        """(source, destination) pairs without a path."""
        return sum(defect.pairs for defect in self.defects)

    def are_broken(self, sources: ArrayLike, destinations: ArrayLike) -> NDArray[np.bool_]:
        """Return which pairs have no path; False for a host and itself, and for a negative host."""
        source, destination = np.broadcast_arrays(np.asarray(sources), np.asarray(destinations))
        lost: NDArray[np.bool_] = ~self.arrives[self.wiring.leaf[source], destination]
        lost &= (source >= 0) & (destination >= 0) & (source != destination)
        return lost

    def links(self, sources: ArrayLike, destinations: ArrayLike) -> NDArray[np.int32]:
        """Return the directed links of many pairs, (hops, *shape of the pairs broadcast); `NONE`
        after arrival, without a path, for a host and itself, and for a negative host."""
        source, destination = np.broadcast_arrays(np.asarray(sources), np.asarray(destinations))
        links = np.empty((1 + len(self.rest), *source.shape), np.int32)
        links[0] = self.wiring.uplink[source]
        leaf = self.wiring.leaf[source]
        for hop, rest in enumerate(self.rest):
            links[1 + hop] = rest[leaf, destination]
        idle = (source < 0) | (destination < 0) | (source == destination)
        links[:, idle | ~self.arrives[leaf, destination]] = NONE
        return links


class Hop(NamedTuple):
    """A node on a path, its output port (0 at the end) and its input port (0 at the start)."""

    node: int
    out_port: int
    in_port: int


def route(fabric: Fabric, routes: Routes, source: int, destination: int) -> list[Hop]:
    """Return the path of one pair with both hosts. Raises TopologyError if the tables have none."""
    wiring = wire(fabric)
    nodes, hosts = fabric.nodes, len(fabric.hosts)
    target = nodes[destination].name
    way = f"no path from {nodes[source].name} to {target}"
    hops: list[Hop] = []
    node, in_port, link = source, 0, int(wiring.uplink[source])
    if source != destination and link == NONE:
        raise TopologyError(f"{way}: {nodes[source].name} is not cabled to a switch")
    while node != destination:
        if node >= hosts:
            port = int(routes.ports[node - hosts, destination])
            if port <= 0:
                raise TopologyError(f"{way}: {nodes[node].name} has no route to it")
            link = int(wiring.out[node, port]) if port < wiring.out.shape[1] else NONE
            if link == NONE:
                name = nodes[node].name
                raise TopologyError(f"{way}: {name} sends it by port {port}, which has no cable")
        elif hops:
            raise TopologyError(
                f"{way}: {nodes[hops[-1].node].name} port {hops[-1].out_port} leads to "
                f"{nodes[node].name}, another host"
            )
        if any(hop.node == node for hop in hops):
            raise TopologyError(f"{way}: the tables form a loop, back to {nodes[node].name}")
        hops.append(Hop(node, int(wiring.tail_port[link]), in_port))
        node, in_port = int(wiring.head[link]), int(wiring.head_port[link])
    return [*hops, Hop(node, 0, in_port)]


def trace(fabric: Fabric, routes: Routes) -> Paths:
    """Trace the tables for all pairs together. Raises TopologyError for paths of over 64 hops."""
    wiring = wire(fabric)
    switches, hosts = len(fabric.switches), len(fabric.hosts)
    if routes.ports.shape != (switches, hosts):
        raise TopologyError(
            f"routes of {fabric.name}: the tables are {routes.ports.shape[0]} switches × "
            f"{routes.ports.shape[1]} hosts, the fabric has {switches} × {hosts}"
        )
    step = _step(wiring, routes)
    final = _follow(step.towards)
    arrives = final == switches
    lost, defects = np.zeros((1, hosts), bool), _defects(fabric, routes, step, final)
    return Paths(wiring, _links(step, arrives), np.vstack([arrives, lost]), defects)


@dataclass(frozen=True)
class _Step:
    """Next hop from every switch towards every host; arrays have the shape (switches, hosts)."""

    wiring: Wiring
    link: NDArray[np.int32]
    """The link taken, `NONE` without route or cable."""
    towards: NDArray[np.int32]
    """The switch to which the link leads; `switches` at arrival; the same switch on a loss."""


def _step(wiring: Wiring, routes: Routes) -> _Step:
    switches, hosts = routes.ports.shape
    here = np.arange(switches, dtype=np.int32)[:, None]
    exists = (routes.ports > 0) & (routes.ports < wiring.out.shape[1])
    ports = np.where(exists, routes.ports, 0).astype(np.int32)
    link = np.where(ports > 0, wiring.out[hosts + here, ports], NONE)
    head = np.append(wiring.head, NONE)[link]
    towards = np.where(head >= hosts, head - hosts, here)
    towards[head == np.arange(hosts)[None, :]] = switches
    return _Step(wiring, link.astype(np.int32), towards.astype(np.int32))


def _follow(towards: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return where packets end: `switches` at their host, else the switch that loses them or one on
    their loop. Each iteration doubles the steps, until these exceed the number of switches."""
    switches, hosts = towards.shape
    final = np.vstack([towards, np.full((1, hosts), switches, np.int32)])
    for _ in range(max(switches, 1).bit_length()):
        final = np.take_along_axis(final, final, axis=0)
    return final[:switches]


def _links(step: _Step, arrives: NDArray[np.bool_]) -> NDArray[np.int32]:
    switches, hosts = arrives.shape
    here = np.broadcast_to(np.arange(switches, dtype=np.int32)[:, None], arrives.shape)
    under_way = arrives.copy()
    hops: list[NDArray[np.int32]] = []
    while under_way.any():
        if len(hops) == MOST_HOPS:
            raise TopologyError(f"a path passes more than {MOST_HOPS} switches, the most allowed")
        hops.append(np.where(under_way, np.take_along_axis(step.link, here, axis=0), NONE))
        here = np.take_along_axis(step.towards, here, axis=0)
        under_way &= here < switches
        here = np.where(under_way, here, 0)
    return np.array(hops, np.int32).reshape(len(hops), switches, hosts)


def _defects(
    fabric: Fabric, routes: Routes, step: _Step, final: NDArray[np.int32]
) -> tuple[Defect, ...]:
    leaf = step.wiring.leaf
    switches, hosts = final.shape
    defects = [
        Defect("uncabled host", NONE, 0, (), hosts - 1, f"{host.name} is not cabled to a switch")
        for host, place in zip(fabric.hosts, leaf, strict=True)
        if place == NONE
    ]
    attached = np.bincount(leaf[leaf != NONE], minlength=switches)
    sources = attached[:, None] - (leaf == np.arange(switches)[:, None])
    at, lost = np.nonzero((final != switches) & (sources > 0) & (attached > 0)[:, None])
    if not len(at):
        return tuple(defects)
    ends = _least_of_circle(step.towards)[final[at, lost], lost]
    sent = np.stack([ends, routes.ports[ends, lost]])
    places, which = np.unique(sent, axis=1, return_inverse=True)
    by_place = np.argsort(which.reshape(-1), kind="stable")
    groups = np.split(by_place, np.cumsum(np.bincount(which.reshape(-1)))[:-1])
    for (switch, port), here in zip(places.T.tolist(), groups, strict=True):
        destinations = tuple(np.unique(lost[here]).tolist())
        pairs = int(sources[at[here], lost[here]].sum())
        kind, sentence = _explain(fabric, routes, step, switch, port, destinations)
        defects.append(Defect(kind, switch, port, destinations, pairs, sentence))
    return tuple(sorted(defects, key=lambda defect: -defect.pairs))


def _least_of_circle(towards: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return, for a switch on a circle, the lowest switch of the circle, which identifies it."""
    switches, hosts = towards.shape
    ahead = np.vstack([towards, np.full((1, hosts), switches, np.int32)])
    least = np.broadcast_to(np.arange(switches + 1, dtype=np.int32)[:, None], ahead.shape)
    for _ in range(max(switches, 1).bit_length()):
        least = np.minimum(least, np.take_along_axis(least, ahead, axis=0))
        ahead = np.take_along_axis(ahead, ahead, axis=0)
    return least


def _explain(
    fabric: Fabric, routes: Routes, step: _Step, switch: int, port: int, lost: tuple[int, ...]
) -> tuple[Kind, str]:
    name = fabric.switches[switch].name
    target_name = fabric.hosts[lost[0]].name
    if len(lost) > 1:
        target_name += f" and {len(lost) - 1} other host{'s' if len(lost) > 2 else ''}"
    link = int(step.link[switch, lost[0]])
    if port <= 0:
        return "no route", f"{name} has no route to {target_name}"
    if link == NONE:
        return "uncabled port", f"{name} sends to {target_name} by port {port}, which has no cable"
    head = int(step.wiring.head[link])
    if head < len(fabric.hosts):
        there = fabric.hosts[head].name
        return "wrong host", f"{name} sends to {target_name} by port {port}, which leads to {there}"
    circle = [switch]
    while (ahead := int(step.towards[circle[-1], lost[0]])) != switch:
        circle.append(ahead)
    ports = [f"{fabric.switches[s].name} port {routes.ports[s, lost[0]]}" for s in circle[:8]]
    if len(circle) > 8:
        ports.append(f"… {len(circle) - 8} more")
    return "loop", f"packets to {target_name} loop: {', '.join(ports)}"
