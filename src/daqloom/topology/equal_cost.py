"""Forwarding by all equally short ways: groups of ports of a switch that lead to the same hosts.

Ethernet switches pick a port of the group by a hash of the connection (ECMP), and so they do among
the cables of a bundle (LAG).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.topology.fabric import Fabric
from daqloom.topology.minimal import ways_to_leaf
from daqloom.topology.routes import Routes, no_routes
from daqloom.topology.wiring import NONE, wire


@dataclass(frozen=True)
class EqualCost:
    """Forwarding tables in which a route may be a group of ports."""

    ports: NDArray[np.uint16]
    """(switches, hosts): the port towards a host; 0 without route; for the n-th group of the
    switch, n from 1, its number of ports + n."""
    groups: tuple[tuple[int, tuple[int, ...]], ...]
    """Switch, by its place in `fabric.switches`, and ports of each group; the groups of one switch
    in the order of their numbers."""

    def first(self, fabric: Fabric) -> Routes:
        """Return tables with the first port of each group."""
        ports = self.ports.astype(np.int16)
        number = [switch.ports for switch in fabric.switches]
        for switch, group in self.groups:
            number[switch] += 1
            ports[switch][self.ports[switch] == number[switch]] = group[0]
        return Routes(ports)


def single(routes: Routes) -> EqualCost:
    """Return tables that name one port for each host."""
    return EqualCost(routes.ports.astype(np.uint16), ())


def equal_cost(fabric: Fabric) -> EqualCost:
    """Return tables with all shortest ways of each switch to each host."""
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
