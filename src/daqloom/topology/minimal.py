"""Shortest paths on any cabling, with a rule for the choice among equally short ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from daqloom.topology.dmodk import port_index
from daqloom.topology.errors import TopologyError
from daqloom.topology.fabric import Fabric
from daqloom.topology.routes import Routes, no_routes
from daqloom.topology.wiring import NONE, Wiring, leaf_distances, wire

Chooser = Callable[[NDArray[np.bool_], int], NDArray[np.intp]]
"""From the ports of each switch on a shortest path, (switches, ports), and the destination's port
index on its leaf: the port of each switch."""


def _lowest_port() -> Chooser:
    def choose(ways: NDArray[np.bool_], index: int) -> NDArray[np.intp]:
        first: NDArray[np.intp] = ways.argmax(axis=1)
        return first

    return choose


def _modulo() -> Chooser:
    def choose(ways: NDArray[np.bool_], index: int) -> NDArray[np.intp]:
        count = ways.cumsum(axis=1)
        wanted = index % np.maximum(count[:, -1:], 1) + 1
        port: NDArray[np.intp] = (ways & (count == wanted)).argmax(axis=1)
        return port

    return choose


def _balanced() -> Chooser:
    used: NDArray[np.int64] = np.zeros((1, 1), np.int64)

    def choose(ways: NDArray[np.bool_], index: int) -> NDArray[np.intp]:
        nonlocal used
        if used.shape != ways.shape:
            used = np.zeros(ways.shape, np.int64)
        port: NDArray[np.intp] = np.where(ways, used, np.iinfo(np.int64).max).argmin(axis=1)
        rows = np.flatnonzero(ways.any(axis=1))
        used[rows, port[rows]] += 1
        return port

    return choose


TIES: dict[str, Callable[[], Chooser]] = {
    "balanced": _balanced,
    "lowest-port": _lowest_port,
    "modulo": _modulo,
}
"""balanced: the port that fewest destinations have got so far, as OpenSM's minhop; lowest-port;
modulo: the destination's port index on its leaf, mod the number of ways."""


def minimal(fabric: Fabric, tie: str = "balanced") -> Routes:
    """Shortest-path forwarding tables, destinations in the order of `fabric.hosts`.

    A switch without way to a host has 0. Raises TopologyError for an unknown tie rule.
    """
    if tie not in TIES:
        raise TopologyError(f'minimal routing has no tie rule "{tie}"; known are {", ".join(TIES)}')
    ports = no_routes(fabric)
    wiring = wire(fabric)
    choose = TIES[tie]()
    index = port_index(wiring)
    ways_to = ways_to_leaf(wiring)
    for host, leaf in enumerate(wiring.leaf.tolist()):
        if leaf != NONE:
            ways = ways_to(leaf)
            ports[:, host] = np.where(ways.any(axis=1), choose(ways, int(index[host])), 0)
            ports[leaf, host] = wiring.leaf_port[host]
    return Routes(ports)


def ways_to_leaf(wiring: Wiring) -> Callable[[int], NDArray[np.bool_]]:
    """For a leaf, (switches, ports): whether a port is on a shortest path to it."""
    hosts = len(wiring.leaf)
    neighbour = np.append(wiring.head, NONE)[wiring.out[hosts:]] - hosts
    distances = leaf_distances(wiring)

    @lru_cache(maxsize=8)
    def ways(leaf: int) -> NDArray[np.bool_]:
        distance = distances[leaf]
        closer: NDArray[np.bool_] = distance[np.maximum(neighbour, 0)] == distance[:, None] - 1
        return closer & (neighbour >= 0)

    return ways
