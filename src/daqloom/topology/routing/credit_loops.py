"""Credit loops: circles of links in which packets wait for the buffer behind the next link.

In a network without drops, a packet occupies the buffer after a link until the buffer after its
next link has space. Only routes with a circle of such waits block for good (Dally and Seitz 1987).
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daqloom.base import lazy
from daqloom.scenario.schema.network import Network
from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.fabric.wiring import NONE
from daqloom.topology.routing.routes import Paths

with lazy.imports():
    from scipy import sparse
    from scipy.sparse import csgraph

Loop = tuple[End, ...]
"""Outputs of a circle: each waits for the next one, and the last one for the first."""


def credit_loops(paths: Paths, hosts: ArrayLike | None = None) -> list[Loop]:
    """Return one short circle for each set of links that wait for each other, shortest first.

    `hosts`: the hosts that send to each other; by default all. Circles in one set share links.
    """
    edges = _trim(_dependencies(paths, hosts))
    if not edges.size:
        return []
    links = paths.wiring.links
    graph = sparse.coo_array((np.ones(edges.shape[1], bool), edges), shape=(links, links))
    _, part = csgraph.connected_components(graph, connection="strong")
    sizes = np.bincount(part)
    firsts = {int(part[link]): int(link) for link in np.flatnonzero(sizes[part] > 1)[::-1]}
    after: dict[int, list[int]] = defaultdict(list)
    for one, following in edges.T.tolist():
        after[one].append(following)
    loops = [_circle(first, after) for first in firsts.values()]
    return sorted((_ends(paths, loop) for loop in loops), key=lambda ends: (len(ends), ends))


def loop_names(fabric: Fabric, loop: Iterable[tuple[int, int]]) -> str:
    """Return a circle of ends as text: `sw0 port 2 → sw1 port 2 → sw0 port 2`."""
    names = [fabric.end_name(End(*end)) for end in loop]
    return " → ".join([*names, names[0]])


def warnings(network: Network, fabric: Fabric, paths: Paths, hosts: ArrayLike) -> list[str]:
    """Return a sentence if routes between hosts of an InfiniBand network can block for good,
    because no head-of-queue lifetime discards a packet of the circle."""
    if network.technology != "infiniband" or network.switch.head_of_queue_lifetime:
        return []
    loops = credit_loops(paths, hosts)
    if not loops:
        return []
    more = f" ({len(loops) - 1} more by `daqloom topology check`)" if len(loops) > 1 else ""
    return [
        f"the routes form a credit loop, {loop_names(fabric, loops[0])}{more}: when each of these "
        "buffers is full, the network blocks for good; use routes without cycles, or set "
        "network.switch.head_of_queue_lifetime"
    ]


def _dependencies(paths: Paths, hosts: ArrayLike | None) -> NDArray[np.int64]:
    """Return (2, dependencies): a link, and the next link of some packet that crosses it."""
    wiring = paths.wiring
    some = np.arange(len(wiring.leaf)) if hosts is None else np.unique(np.asarray(hosts, int))
    some = some[wiring.leaf[some] != NONE]
    leaves = np.unique(wiring.leaf[some])
    onwards = np.zeros((wiring.links, wiring.out.shape[1]), bool)  # by a port of its head
    for hops in zip(paths.rest[:-1], paths.rest[1:], strict=True):
        here, there = (each[np.ix_(leaves, some)] for each in hops)
        is_way = (here != NONE) & (there != NONE)
        onwards[here[is_way], wiring.tail_port[there[is_way]]] = True
    link, port = np.nonzero(onwards)
    return np.stack([link, wiring.out[wiring.head[link], port]])


def _trim(edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return dependencies without links that no other link waits for, or that wait for no other,
    removed repeatedly. If any remain, they contain a circle."""
    while edges.size:
        is_inner = np.isin(edges[0], edges[1]) & np.isin(edges[1], edges[0])
        if is_inner.all():
            break
        edges = edges[:, is_inner]
    return edges


def _circle(first: int, after: Mapping[int, list[int]]) -> list[int]:
    """Return a shortest circle through a link that lies on a circle."""
    before = {first: first}
    queue = deque([first])
    while queue:
        link = queue.popleft()
        for following in after.get(link, ()):
            if following == first:
                circle = [link]
                while circle[-1] != first:
                    circle.append(before[circle[-1]])
                return circle[::-1]
            if following not in before:
                before[following] = link
                queue.append(following)
    raise ValueError(f"link {first} is on no circle")


def _ends(paths: Paths, loop: Iterable[int]) -> Loop:
    """Return the outputs of a loop, beginning with the one at the lowest node."""
    wiring = paths.wiring
    ends = [End(int(wiring.tail[link]), int(wiring.tail_port[link])) for link in loop]
    first = ends.index(min(ends))
    return (*ends[first:], *ends[:first])
