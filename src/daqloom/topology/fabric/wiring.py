"""A fabric's cables as arrays, for work on all links at once.

A directed link is a number: 2·c runs along cable c from its end `a` to `b`, 2·c + 1 back.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.topology.fabric.fabric import Fabric

NONE = -1
"""Number that stands for no link and for no switch."""


@dataclass(frozen=True)
class Wiring:
    """Which link leaves by which port, and where it leads; nodes and ports as in the fabric."""

    out: NDArray[np.int32]
    """(nodes, ports + 1): the link that leaves a node by a port, `NONE` where no cable is."""
    tail: NDArray[np.int32]
    tail_port: NDArray[np.int32]
    head: NDArray[np.int32]
    head_port: NDArray[np.int32]
    """(links,): the node and port where a link begins (tail) and ends (head)."""
    rate_bps: NDArray[np.int64]
    """(links,): the rate of its cable (b/s)."""
    uplink: NDArray[np.int32]
    """(hosts,): the link from a host to its switch, `NONE` where there is no such cable."""
    leaf: NDArray[np.int32]
    """(hosts,): the switch, by its place in `fabric.switches`, that a host is cabled to; `NONE`."""
    leaf_port: NDArray[np.int32]
    """(hosts,): the port of that switch; 0 where there is none."""

    @property
    def links(self) -> int:
        """Directed links, two per cable."""
        return len(self.tail)


def wire(fabric: Fabric) -> Wiring:
    """The arrays of a fabric. A port that two cables name counts for the later one."""
    ends = np.array([(*cable.a, *cable.b) for cable in fabric.cables], np.int32).reshape(-1, 4)
    tail, tail_port = ends[:, [0, 2]].reshape(-1), ends[:, [1, 3]].reshape(-1)
    head, head_port = ends[:, [2, 0]].reshape(-1), ends[:, [3, 1]].reshape(-1)
    rate_bps = np.repeat(np.array([cable.rate_bps for cable in fabric.cables], np.int64), 2)
    ports = max([node.ports for node in fabric.nodes] + [int(tail_port.max(initial=0))], default=0)
    out = np.full((len(fabric.nodes), ports + 1), NONE, np.int32)
    out[tail, tail_port] = np.arange(len(tail), dtype=np.int32)

    hosts = len(fabric.hosts)
    uplink = np.full(hosts, NONE, np.int32)
    leaf = np.full(hosts, NONE, np.int32)
    leaf_port = np.zeros(hosts, np.int32)
    access = np.flatnonzero((tail < hosts) & (head >= hosts))
    uplink[tail[access]] = access
    leaf[tail[access]] = head[access] - hosts
    leaf_port[tail[access]] = head_port[access]
    return Wiring(out, tail, tail_port, head, head_port, rate_bps, uplink, leaf, leaf_port)


FAR = 1 << 30
"""The distance of what cannot be reached."""


def leaf_distances(wiring: Wiring) -> dict[int, NDArray[np.int32]]:
    """For each switch with hosts, (switches,): cables from it to every switch, `FAR` if no way."""
    hosts = len(wiring.leaf)
    between = (wiring.tail >= hosts) & (wiring.head >= hosts)
    tail, head = wiring.tail[between] - hosts, wiring.head[between] - hosts
    distances = {}
    for leaf in np.unique(wiring.leaf[wiring.leaf != NONE]).tolist():
        distance = np.full(len(wiring.out) - hosts, FAR, np.int32)
        distance[leaf] = step = 0
        while len(reached := head[(distance[tail] == step) & (distance[head] == FAR)]):
            step += 1
            distance[reached] = step
        distances[leaf] = distance
    return distances
