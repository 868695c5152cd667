"""Arrays of a fabric's cables, for calculations on all links at once.

A directed link is a number: 2·c runs along cable c from end `a` to end `b`, 2·c + 1 back.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daqloom.topology.fabric.fabric import Fabric

NONE = -1
"""Number in place of a link or switch that does not exist."""


@dataclass(frozen=True)
class Wiring:
    """Directed links of a fabric as arrays; nodes and ports are numbered as in the fabric."""

    out: NDArray[np.int32]
    """(nodes, ports + 1): the link that leaves a node by a port, `NONE` without a cable."""
    tail: NDArray[np.int32]
    tail_port: NDArray[np.int32]
    head: NDArray[np.int32]
    head_port: NDArray[np.int32]
    """(links,): node and port at the begin of a link (tail) and at its end (head)."""
    rate_bps: NDArray[np.int64]
    """(links,): the rate of its cable (b/s)."""
    uplink: NDArray[np.int32]
    """(hosts,): the link from a host to its switch, `NONE` for a host without such a cable."""
    leaf: NDArray[np.int32]
    """(hosts,): the index in `fabric.switches` of a host's switch, `NONE` without a cable."""
    leaf_port: NDArray[np.int32]
    """(hosts,): the port of its switch to which a host is cabled, 0 without a cable."""

    @property
    def links(self) -> int:
        """Directed links, two per cable."""
        return len(self.tail)


def wire(fabric: Fabric) -> Wiring:
    """Return the arrays of a fabric. If two cables name the same port, the later one counts."""
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
"""Distance of an unreachable switch."""


def leaf_distances(
    wiring: Wiring, switches: Iterable[int] | None = None
) -> dict[int, NDArray[np.int32]]:
    """For each switch with hosts, or each of `switches`: (switches,), cables to every switch, `FAR`
    without a path."""
    hosts = len(wiring.leaf)
    between = (wiring.tail >= hosts) & (wiring.head >= hosts)
    tail, head = wiring.tail[between] - hosts, wiring.head[between] - hosts
    distances = {}
    leaves = np.unique(wiring.leaf[wiring.leaf != NONE]).tolist()
    for leaf in leaves if switches is None else switches:
        distance = np.full(len(wiring.out) - hosts, FAR, np.int32)
        distance[leaf] = step = 0
        while len(reached := head[(distance[tail] == step) & (distance[head] == FAR)]):
            step += 1
            distance[reached] = step
        distances[leaf] = distance
    return distances


def tree_levels(wiring: Wiring, hosts: ArrayLike) -> int:
    """Return the levels of switches in the lowest tree that spans hosts: 1 for those of one leaf, 2
    if the leaves are two cables apart, and so on."""
    leaves = np.unique(wiring.leaf[np.asarray(hosts)])
    between = leaf_distances(wiring)
    farthest = max(int(between[leaf][leaves].max()) for leaf in leaves.tolist())
    return (farthest + 1) // 2 + 1
