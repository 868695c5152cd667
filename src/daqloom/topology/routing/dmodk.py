"""D-mod-K routing of a folded Clos of two or three levels.

The path to a host follows from p, the index (from 0) of the host's port on its leaf. The spine is
S(p) = p mod N_spine (LHCb event builder, eq. 1); of the parallel links to that spine, in both
directions, number ⌊p / N_spine⌋ mod links is used. One level higher the same rule applies to e =
leaf · ⌈K / N⌉ + ⌊p / N⌋, with K ports on each leaf and N switches above it (Zahavi's D-Mod-K).
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric, natural_order
from daqloom.topology.fabric.levels import UNREACHED, tree_levels
from daqloom.topology.fabric.wiring import FAR, NONE, Wiring, leaf_distances, wire
from daqloom.topology.routing.routes import Routes, no_routes

LEAF, CORE = 1, 3
"""Levels, as `tree_levels` counts them."""


def port_index(wiring: Wiring) -> NDArray[np.int32]:
    """(hosts,): the index of a host's leaf port among all port numbers that hosts use on leaves."""
    ports = np.unique(wiring.leaf_port[wiring.leaf != NONE])
    return np.searchsorted(ports, wiring.leaf_port).astype(np.int32)


def d_mod_k(fabric: Fabric) -> Routes:
    """Return D-mod-K forwarding tables; hosts may be missing and parallel links dead. Raises
    TopologyError with switch and port if the cables form no folded Clos."""
    ports = no_routes(fabric)
    wiring = wire(fabric)
    regular = _tree(fabric, wiring)
    on = {leaf: np.flatnonzero(wiring.leaf == leaf) for leaf in regular.leaves}
    pods: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for leaf in regular.leaves:
        pods[tuple(regular.above[leaf])] += on[leaf].tolist()

    p = port_index(wiring)
    q, e = np.zeros_like(p), np.zeros_like(p)
    per_leaf = int(p.max(initial=0)) + 1
    for place, leaf in enumerate(regular.leaves):
        width = max(1, len(regular.above[leaf]))
        q[on[leaf]] = p[on[leaf]] // width
        e[on[leaf]] = place * -(-per_leaf // width) + q[on[leaf]]

    for switch, level in enumerate(regular.level):
        if level == CORE:
            for above, hosts in pods.items():
                ports[switch, hosts] = regular.down(switch, list(above), p[hosts], e[hosts])
        else:
            ports[switch] = regular.up(switch, p if level == LEAF else e)
        for leaf in regular.below[switch]:
            if leaf in on:
                ports[switch, on[leaf]] = regular.port_to(switch, leaf, q[on[leaf]])
    cabled = np.flatnonzero(wiring.leaf != NONE)
    ports[:, wiring.leaf == NONE] = 0
    ports[wiring.leaf[cabled], cabled] = wiring.leaf_port[cabled]
    return Routes(ports)


@dataclass(frozen=True)
class _Tree:
    """Switches by level and the cables between them, sorted by names and ports."""

    level: tuple[int, ...]
    leaves: list[int]
    above: dict[int, list[int]]
    below: dict[int, list[int]]
    """Switches of the next higher and of the next lower level that are cabled to a switch."""
    cables: dict[tuple[int, int], list[int]]
    """Ports of a switch that lead to another one directly, sorted by the upper switch's ports."""

    def port_to(self, switch: int, other: int, number: NDArray[np.int32]) -> NDArray[np.int16]:
        """Return the port to a neighbour: the parallel link with index `number` mod links."""
        links = np.array(self.cables[switch, other], np.int16)
        return links[number % len(links)]

    def up(self, switch: int, number: NDArray[np.int32]) -> NDArray[np.int16]:
        """Return the port upwards: neighbour `number` mod neighbours, then link; 0 at the top."""
        above = self.above[switch]
        ports = np.zeros(len(number), np.int16)
        for place, neighbour in enumerate(above):
            here = number % len(above) == place
            ports[here] = self.port_to(switch, neighbour, number[here] // len(above))
        return ports

    def down(
        self, root: int, above: list[int], p: NDArray[np.int32], e: NDArray[np.int32]
    ) -> NDArray[np.int16]:
        """Return a root's port to the switch above a leaf that p selects, or to a reachable one."""
        ports = np.zeros(len(p), np.int16)
        reached = [switch for switch in above if (root, switch) in self.cables]
        for place, switch in enumerate(reached):
            named = above.index(switch) == p % max(1, len(above))
            other = ~np.isin(np.array(above)[p % len(above)], reached)
            here = named | (other & (p % len(reached) == place))
            ports[here] = self.port_to(root, switch, (e // max(1, len(self.above[switch])))[here])
        return ports


def _tree(fabric: Fabric, wiring: Wiring) -> _Tree:
    used = _used_switches(wiring)
    level = tuple(np.where(used, tree_levels(fabric), UNREACHED).tolist())
    hosts = len(fabric.hosts)
    for host in np.flatnonzero(wiring.leaf != NONE).tolist():
        if level[wiring.leaf[host]] != LEAF:
            there = fabric.switches[wiring.leaf[host]].name
            raise _not_a_tree(
                f"{fabric.hosts[host].name} is on {there} port {wiring.leaf_port[host]}, no leaf"
            )
    above: dict[int, set[int]] = defaultdict(set)
    below: dict[int, set[int]] = defaultdict(set)
    cables: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for cable in fabric.cables:
        if cable.a.node < hosts or cable.b.node < hosts:
            continue
        ends = sorted((cable.a, cable.b), key=lambda end: level[end.node - hosts])
        (low, low_port), (high, high_port) = ((end.node - hosts, end.port) for end in ends)
        if level[low] == UNREACHED:
            continue
        if level[high] == level[low] or level[high] > CORE:
            raise _not_a_tree(
                f"{fabric.switches[low].name} port {low_port} and {fabric.switches[high].name} "
                f"port {high_port} are cabled, of levels {level[low]} and {level[high]}"
            )
        above[low].add(high)
        below[high].add(low)
        cables[low, high].append((high_port, low_port))
        cables[high, low].append((high_port, high_port))
    order = natural_order(fabric.switches)
    rank = {switch: place for place, switch in enumerate(order)}
    found = _Tree(
        level,
        [switch for switch in order if level[switch] == LEAF],
        {switch: sorted(above[switch], key=rank.__getitem__) for switch in order},
        {switch: sorted(below[switch]) for switch in order},
        {pair: [port for _, port in sorted(links)] for pair, links in cables.items()},
    )
    _check_alike(fabric, found)
    return found


def _used_switches(wiring: Wiring) -> NDArray[np.bool_]:
    """(switches,): whether a switch is on a shortest path between two hosts. Other switches, such
    as empty leaves and pods, need no routes."""
    distances = leaf_distances(wiring)
    used = np.zeros(len(wiring.out) - len(wiring.leaf), bool)
    if distances:
        table = np.array(list(distances.values())).astype(np.int64)
        for leaf, distance in zip(distances, table, strict=True):
            way = table[:, leaf, None]
            used |= ((distance + table == way) & (way < FAR)).any(axis=0)
    return used


def _check_alike(fabric: Fabric, tree: _Tree) -> None:
    """Check that switches with a common switch above have all in common, so that numbers agree."""
    first: dict[int, int] = {}
    for switch, above in tree.above.items():
        for other in above:
            fellow = first.setdefault(other, switch)
            if tree.above[fellow] != above:
                names = fabric.switches
                [odd, *_] = sorted(set(above) ^ set(tree.above[fellow]))
                without = switch if odd not in above else fellow
                raise _not_a_tree(
                    f"{names[without].name} has no cable to {names[odd].name}, which "
                    f"{names[fellow if without == switch else switch].name} has"
                )


def _not_a_tree(why: str) -> TopologyError:
    return TopologyError(
        f"D-mod-K requires a folded Clos, with all leaves cabled to the same spines: {why}; "
        "use minimal routing for fabrics that are not regular"
    )
