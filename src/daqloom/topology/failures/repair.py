"""Forwarding tables and schedule of linear shift for a tree of switches with broken cables.

In the schedule of `frames`, a turn of a leaf is one of its builder units in each frame. Each other
leaf sends one flow to the turn in every phase: its hosts change, its two leaves stay the same for a
whole round. A turn thus needs one path from each other leaf, on separate cables; `spread` finds
these paths. Flows to extras (slots behind the turns) use the remaining cables.
"""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import wire
from daqloom.topology.routing.routes import Routes, trace
from daqloom.topology.schedule.frames import Frames
from daqloom.topology.schedule.shift_check import check_shift
from daqloom.topology.schedule.slots import DUMMY, Slots, hosts_of
from daqloom.topology.schedule.spread import NOWHERE, spread

Ints = NDArray[np.int64]


UNCHANGED = (
    "network.routing = mended changes nothing: no tables and order of builder units that were "
    "tried take less time than the usual ones"
)


class Repair(NamedTuple):
    """Forwarding tables, and a schedule with equally many slots of readout and builder units."""

    routes: Routes
    readouts: Slots
    builders: Slots


def mend(fabric: Fabric, routes: Routes, slots: Slots) -> Repair:
    """Return the tables and schedule with which a round of the same hosts, with a barrier after
    each phase, takes least time: those of frames, or the given ones if equally fast."""
    best = Repair(routes, slots, slots)
    least = round_time(fabric, best)
    tree = _tree(fabric, slots)
    for frames in tree.frames():
        if frames.count * frames.length < least:
            tried = Repair(_Ways(tree, frames, routes.ports.copy()).routes(), *frames.schedule())
            if (time := round_time(fabric, tried)) < least:
                best, least = tried, time
    return best


def round_time(fabric: Fabric, mended: Repair) -> float:
    """Return the time of a round with barriers, in transfers by a host's cable; or infinity."""
    paths = trace(fabric, mended.routes)
    found = check_shift(paths, mended.readouts, builders=mended.builders)
    return float("inf") if found.lost else found.round_time


@dataclass(frozen=True)
class _Tree:
    """Leaves with hosts of the schedule, numbered from 0, and the switches directly above them."""

    leaves: list[int]
    hosts: list[list[int]]
    spines: list[int]
    """Spines, those with most cables first, so that the last one is used least."""
    cables: dict[tuple[int, int], list[tuple[int, int]]]
    """Ports of leaf and spine for each cable, by (leaf, spine)."""

    @cached_property
    def capacity(self) -> Ints:
        """(leaves, spines): number of cables."""
        count = np.zeros((len(self.leaves), len(self.spines)), np.int64)
        for pair, ports in self.cables.items():
            count[pair] = len(ports)
        return count

    def frames(self) -> list[Frames]:
        """Return frames to be tried, shortest rounds first: as many frames as leaves; if these have
        extras, also more frames, whose dummies replace the extras."""
        leaves, size = len(self.leaves), max(map(len, self.hosts), default=0)
        if leaves < 2:
            return []
        turns = max(1, size // leaves)
        whole = Frames(self.hosts, turns, max(size, leaves))
        more = -(-size // turns) - leaves
        if not whole.extras:
            return [whole]
        return [whole, Frames(self.hosts + [[]] * more, turns, turns * (leaves + more))]


def _tree(fabric: Fabric, slots: Slots) -> _Tree:
    wiring, first = wire(fabric), len(fabric.hosts)
    hosts: dict[int, list[int]] = defaultdict(list)
    for host in hosts_of(slots):
        hosts[int(wiring.leaf[host])].append(host)
    number = {leaf: place for place, leaf in enumerate(hosts)}
    above: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for here, there in sorted(fabric.peers.items()):
        leaf, spine = here.node - first, there.node - first
        if leaf in number and spine >= 0 and spine not in number:
            above[spine].append((number[leaf], here.port, there.port))
    spines = sorted(above, key=lambda spine: (-len(above[spine]), spine))
    cables: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for place, spine in enumerate(spines):
        for leaf, port, port_above in above[spine]:
            cables[leaf, place].append((port, port_above))
    return _Tree(list(hosts), list(hosts.values()), spines, cables)


class _Ways:
    """Paths of all flows of a schedule; they are added one after the other."""

    def __init__(self, tree: _Tree, frames: Frames, ports: NDArray[np.int16]) -> None:
        self._tree, self._frames, self._ports = tree, frames, ports
        self._up_taken, self._down_taken = np.zeros((2, *tree.capacity.shape), np.int64)
        """(leaves, spines): number of cables that flows use during a whole round."""

    def routes(self) -> Routes:
        """Return tables; leaves without a common spine keep the entries of the given tables."""
        if self._frames.turns:
            self._of_turns()
        if self._frames.extras:
            self._of_extras()
        return Routes(self._ports)

    def _of_turns(self) -> None:
        """Give each parallel cable from a spine to a leaf the flows of one turn from one leaf.
        Flows of one turn from two leaves can share two such cables, by frame, if the leaf numbers
        differ by an odd number and the number of leaves is even (and so on for more cables)."""
        tree, frames = self._tree, self._frames
        leaves = len(tree.leaves)
        others = ~np.eye(leaves, dtype=bool)[:, :, None]
        leaf, to, turn = np.nonzero(np.repeat(others, frames.turns, axis=2))
        cables = np.maximum(tree.capacity[to], 1)
        shares = (frames.count % cables == 0) & ((cables == 2) | (frames.turns < cables))
        residue = np.where(shares, leaf[:, None] % cables, 0)
        alone = (to * frames.turns + turn)[:, None] * (frames.count + 1) + residue
        spines = spread(leaf, to, tree.capacity, tree.capacity, alone, np.ones(cables.shape))
        arriving: dict[tuple[int, int, int], int] = defaultdict(int)
        for a, b, c, spine in zip(*(x.tolist() for x in (leaf, to, turn, spines)), strict=True):
            if (way := self._way(a, b, spine)) is None:
                continue
            for host in frames.of_turn(c, b):
                self._send(a, way, host, int(self._up_taken[a, way]), down=False)
            self._up_taken[a, way] += 1
            arriving[b, way, c] += 1
        for (b, way, c), flows in arriving.items():
            for frame, host in enumerate(frames.of_turn(c, b)):
                place = int(self._down_taken[b, way]) + (frame if flows > 1 else 0)
                self._send(b, way, host, place, down=True)
            self._down_taken[b, way] += flows

    def _of_extras(self) -> None:
        """Find paths for extras. In each step (one per frame), a leaf meets a different host of an
        extra slot. Steps are independent, except that a spine sends to a host by one cable. A small
        bonus for one spine per extra avoids conflicts between two steps at no cost."""
        tree, frames = self._tree, self._frames
        count = frames.count
        up = np.maximum(tree.capacity - self._up_taken, 0)
        down = np.maximum(tree.capacity - self._down_taken, 0)
        flows = [
            (a, b, extra, host, (frame - a) % count)
            for extra in range(frames.extras)
            for frame, (b, host) in enumerate(frames.of_extra(extra))
            for a in range(len(tree.leaves))
            if a != b and host != DUMMY
        ]
        if not flows:
            return
        leaf, to, extra, _, step = np.array(flows, np.int64).T
        place = extra[:, None] % np.maximum(down[to], 1)
        alone = (to * count + step)[:, None] * frames.length + place
        usual = np.repeat(np.arange(up.shape[1]), np.median(up, axis=0).astype(int))
        worth = np.ones(place.shape)
        if len(usual):
            worth[np.arange(len(flows)), usual[extra % len(usual)]] += 0.1
        senders, receivers = leaf * count + step, to * count + step
        up_by_step, down_by_step = np.repeat(up, count, axis=0), np.repeat(down, count, axis=0)
        spines = spread(senders, receivers, up_by_step, down_by_step, alone, worth)
        taken: dict[tuple[int, int, int], int] = defaultdict(int)
        for (a, b, v, host, t), spine in zip(flows, spines.tolist(), strict=True):
            if (way := self._way(a, b, spine)) is None:
                continue
            self._send(a, way, host, int(self._up_taken[a, way]) + taken[a, way, t], down=False)
            taken[a, way, t] += 1
            place_down = v % max(int(down[b, way]), 1)
            self._send(b, way, host, int(self._down_taken[b, way]) + place_down, down=True)

    def _way(self, leaf: int, to: int, spine: int) -> int | None:
        """Return the spine of a flow, a shared one if none is left; None without a common spine."""
        if spine != NOWHERE:
            return spine
        both = np.minimum(self._tree.capacity[leaf], self._tree.capacity[to])
        load = self._up_taken[leaf] + self._down_taken[to]
        load[both == 0] = np.iinfo(load.dtype).max
        return int(load.argmin()) if both.any() else None

    def _send(self, leaf: int, spine: int, host: int, place: int, *, down: bool) -> None:
        if host != DUMMY:
            cables = self._tree.cables[leaf, spine]
            switch = self._tree.spines[spine] if down else self._tree.leaves[leaf]
            self._ports[switch, host] = cables[place % len(cables)][down]
