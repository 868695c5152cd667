"""Shortest paths on any cabling: one path, by a rule for ties, or all shortest paths.

Ethernet switches select one of all shortest paths by a hash of the flow (ECMP), also in a LAG.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import NONE, Wiring, leaf_distances, wire
from daqloom.topology.routing.dmodk import port_index
from daqloom.topology.routing.routes import Routes, no_routes

Chooser = Callable[[NDArray[np.bool_], NDArray[np.int64], int], NDArray[np.intp]]
"""Function that chooses the port of each switch from its ports on a shortest path (switches,
ports), the destinations of each port so far, and the destination's port index on its leaf."""


def _balance(ways: NDArray[np.bool_], used: NDArray[np.int64], index: int) -> NDArray[np.intp]:
    """Return the port with the fewest destinations so far, as OpenSM's minhop does."""
    port: NDArray[np.intp] = np.where(ways, used, np.iinfo(np.int64).max).argmin(axis=1)
    return port


def _lowest_port(ways: NDArray[np.bool_], used: NDArray[np.int64], index: int) -> NDArray[np.intp]:
    first: NDArray[np.intp] = ways.argmax(axis=1)
    return first


def _modulo(ways: NDArray[np.bool_], used: NDArray[np.int64], index: int) -> NDArray[np.intp]:
    """Return the shortest-path port whose index is the destination's port index mod such ports."""
    count = ways.cumsum(axis=1)
    number = index % np.maximum(count[:, -1:], 1) + 1
    port: NDArray[np.intp] = (ways & (count == number)).argmax(axis=1)
    return port


TIES: dict[str, Chooser] = {
    "balanced": _balance,
    "lowest-port": _lowest_port,
    "modulo": _modulo,
}


def minimal(fabric: Fabric, tie: str = "balanced") -> Routes:
    """Return shortest-path forwarding tables, destinations in the order of `fabric.hosts`; 0: the
    switch has no path to the host. Raises TopologyError for an unknown tie rule."""
    if tie not in TIES:
        raise TopologyError(f'minimal routing has no tie rule "{tie}"; known are {", ".join(TIES)}')
    ports = no_routes(fabric)
    wiring = wire(fabric)
    index = port_index(wiring)
    ways_to = ways_to_leaf(wiring)
    used = np.zeros((len(fabric.switches), wiring.out.shape[1]), np.int64)
    for host, leaf in enumerate(wiring.leaf.tolist()):
        if leaf != NONE:
            ways = ways_to(leaf)
            rows = np.flatnonzero(ways.any(axis=1))
            chosen = TIES[tie](ways, used, int(index[host]))[rows]
            used[rows, chosen] += 1
            ports[rows, host] = chosen
            ports[leaf, host] = wiring.leaf_port[host]
    return Routes(ports)


def ways_to_leaf(
    wiring: Wiring, switches: Iterable[int] | None = None
) -> Callable[[int], NDArray[np.bool_]]:
    """Return, for a leaf, (switches, ports): whether a port is on a shortest path to it.
    `switches`: the destinations in place of all leaves."""
    hosts = len(wiring.leaf)
    neighbour = np.append(wiring.head, NONE)[wiring.out[hosts:]] - hosts
    distances = leaf_distances(wiring, switches)

    @lru_cache(maxsize=8)
    def ways(leaf: int) -> NDArray[np.bool_]:
        distance = distances[leaf]
        closer: NDArray[np.bool_] = distance[np.maximum(neighbour, 0)] == distance[:, None] - 1
        return closer & (neighbour >= 0)

    return ways


@dataclass(frozen=True)
class EqualCost:
    """Forwarding tables whose routes may be groups of ports with equal cost."""

    ports: NDArray[np.uint16]
    """(switches, hosts): port to a host; 0: no route; number of ports + n: n-th group, from 1."""
    groups: tuple[tuple[int, tuple[int, ...]], ...]
    """For each group: index in `fabric.switches`, and ports; sorted by number in a switch."""

    def first(self, fabric: Fabric) -> Routes:
        """Return forwarding tables that use only the first port of each group."""
        ports = self.ports.astype(np.int16)
        number = [switch.ports for switch in fabric.switches]
        for switch, group in self.groups:
            number[switch] += 1
            ports[switch][self.ports[switch] == number[switch]] = group[0]
        return Routes(ports)


def single(routes: Routes) -> EqualCost:
    """Return forwarding tables with one port for each host."""
    return EqualCost(routes.ports.astype(np.uint16), ())


def equal_cost(fabric: Fabric) -> EqualCost:
    """Return forwarding tables with all shortest paths from each switch to each host."""
    ports = no_routes(fabric).astype(np.uint16)
    wiring = wire(fabric)
    ways_to = ways_to_leaf(wiring)
    numbers: dict[tuple[int, bytes], int] = {}
    groups: list[tuple[int, tuple[int, ...]]] = []
    known = [0] * len(fabric.switches)
    for leaf in np.unique(wiring.leaf[wiring.leaf != NONE]).tolist():
        ways = ways_to(leaf)
        counts = ways.sum(axis=1)
        route = np.where(counts > 0, ways.argmax(axis=1), 0).astype(np.uint16)
        for switch in np.flatnonzero(counts > 1).tolist():
            key = switch, ways[switch].tobytes()
            if key not in numbers:
                known[switch] += 1
                numbers[key] = fabric.switches[switch].ports + known[switch]
                groups.append((switch, tuple(np.flatnonzero(ways[switch]).tolist())))
            route[switch] = numbers[key]
        here = np.flatnonzero(wiring.leaf == leaf)
        ports[:, here] = route[:, None]
        ports[leaf, here] = wiring.leaf_port[here]
    return EqualCost(ports, tuple(groups))
