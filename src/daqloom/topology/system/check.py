"""Result of `daqloom topology check`: routes, schedule, suggestions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.fabric.wiring import NONE
from daqloom.topology.failures.repair import mend
from daqloom.topology.routing.by_name import MENDED
from daqloom.topology.routing.credit_loops import Loop, credit_loops
from daqloom.topology.routing.routes import Paths, Routes, trace
from daqloom.topology.schedule.shift_check import ShiftCheck, check_shift
from daqloom.topology.schedule.slots import (
    DUMMY,
    Slots,
    Units,
    alike,
    by_port,
    folded,
    hosts_of,
    slots_of,
    whole_pods,
)
from daqloom.topology.system.summary import Summary, summarise

SCHEMA = 1
Progress = Callable[[float], None] | None
"""Called with the share done."""
MOST_SLOTS = 8192
"""Limit on slots. The time of a check is proportional to phases × slots: some 15 s at the limit,
for each order."""
MOST_MENDED = 4096
"""Most slots for which mended tables are tried, in some seconds; twice as many take a minute."""
WHOLE_PODS = "leaf after leaf, by port, dummies for whole pods"


@dataclass(frozen=True)
class Schedule:
    """A node order, and the check of linear shift over it."""

    what: str
    slots: Slots
    """The hosts that send."""
    check: ShiftCheck
    builders: Slots
    """The hosts that receive; `slots` if each host does both."""
    routing: str = ""
    """The name of its tables; empty: those that are checked."""

    @property
    def hosts(self) -> int:
        """Hosts in the schedule."""
        return len({*hosts_of(self.slots), *hosts_of(self.builders)})

    @property
    def dummies(self) -> int:
        """Slots of nodes that exist in the schedule only, D."""
        return int((self.slots == DUMMY).sum())

    @property
    def built(self) -> int:
        """Slots with a builder unit, R: events of a round."""
        return len(hosts_of(self.builders))

    @property
    def rate_share(self) -> float:
        """Event rate as a share of what as many hosts reach where only their own cables bound it.

        An upper bound: with a barrier after each phase, a round builds R events and takes at least
        `round_time` transfers by the slowest of these cables, R + D if no other link takes longer.
        """
        return self.built / max(1, self.check.round_time)


@dataclass(frozen=True)
class FabricCheck:
    """The paths of a fabric, its cabling, a schedule, and better ones."""

    fabric: Fabric
    paths: Paths
    summary: Summary
    schedule: Schedule
    suggestions: list[Schedule]
    credit_loops: list[Loop]
    """Circles of outputs that can block a network without drops."""
    tried_mended: bool
    """Whether tables and order of `network.routing = mended` were tried."""

    @property
    def pairs(self) -> int:
        """(source, destination) pairs of different hosts."""
        return len(self.fabric.hosts) * (len(self.fabric.hosts) - 1)

    def conflicts(self) -> list[int]:
        """Directed links that carry several flows in some phase, most phases first."""
        phases = self.schedule.check.link_conflicts
        order = np.lexsort((-self.schedule.check.link_worst, -phases))
        return [int(link) for link in order[: int((phases > 0).sum())]]

    def ends(self, link: int) -> tuple[End, End]:
        """Ports at which a directed link begins and ends."""
        wiring = self.paths.wiring
        return (
            End(int(wiring.tail[link]), int(wiring.tail_port[link])),
            End(int(wiring.head[link]), int(wiring.head_port[link])),
        )

    def upward(self, link: int) -> bool:
        """Whether a directed link leads away from the hosts."""
        begin, end = (self.summary.level[end.node] for end in self.ends(link))
        return begin < end

    def record(self) -> dict[str, Any]:
        """Everything, fit for JSON; ends are [node, port], dummies in an order are null.
        `rate_share` is null where flows have no route."""
        hosts = self.fabric.hosts
        return {
            "schema": SCHEMA,
            "fabric": self.fabric.name,
            "hosts": len(hosts),
            "pairs": self.pairs,
            "pairs_lost": self.paths.pairs_lost,
            "defects": [
                {
                    "kind": defect.kind,
                    "switch": None
                    if defect.switch == NONE
                    else self.fabric.switches[defect.switch].name,
                    "port": defect.port or None,
                    "destinations": [hosts[host].name for host in defect.destinations],
                    "pairs": defect.pairs,
                    "sentence": defect.sentence,
                }
                for defect in self.paths.defects
            ],
            "credit_loops": [[self._end(end) for end in loop] for loop in self.credit_loops],
            "anomalies": self.summary.record()["anomalies"],
            "schedule": self._schedule(self.schedule)
            | {
                "worst_flows_per_phase": self.schedule.check.worst.tolist(),
                "transfers_per_phase": self.schedule.check.transfers.tolist(),
                "links_per_flows": self.schedule.check.histogram.tolist(),
                "links_unused": self.schedule.check.links_unused,
                "conflicts": [
                    self._link(link)
                    | {
                        "upward": self.upward(link),
                        "flows": int(self.schedule.check.link_worst[link]),
                        "phases": int(self.schedule.check.link_conflicts[link]),
                    }
                    for link in self.conflicts()
                ],
            },
            "suggestions": [self._schedule(suggestion) for suggestion in self.suggestions],
        }

    def _schedule(self, schedule: Schedule) -> dict[str, Any]:
        check, hosts = schedule.check, self.fabric.hosts
        same = np.array_equal(schedule.slots, schedule.builders)

        def names(slots: Slots) -> list[str | None]:
            return [None if host == DUMMY else hosts[host].name for host in slots.tolist()]

        worst = None
        if check.worst_flows:
            phase = check.worst_phase
            worst = {"phase": phase} | self._link(int(check.worst_link[phase]))
        return {
            "what": schedule.what,
            "routing": schedule.routing or None,
            "phases": check.phases,
            "conflicting_phases": check.conflicting,
            "worst_flows": check.worst_flows,
            "worst": worst,
            "flows_lost": check.lost,
            "hosts": schedule.hosts,
            "dummies": schedule.dummies,
            "rate_share": None if check.lost else schedule.rate_share,
            "order": names(schedule.slots),
            "builders": None if same else names(schedule.builders),
        }

    def _link(self, link: int) -> dict[str, Any]:
        begin, end = map(self._end, self.ends(link))
        return {"from": begin, "to": end}

    def _end(self, end: End) -> list[Any]:
        return [self.fabric.nodes[end.node].name, end.port]


def check_fabric(
    fabric: Fabric,
    routes: Routes,
    slots: Slots,
    what: str = "as given",
    progress: Progress = None,
    builders: Slots | None = None,
    units: Units = folded,
    *,
    mends: bool = True,
) -> FabricCheck:
    """Check the routes of all pairs and linear shift over the slots; suggest schedules if it
    conflicts.

    `builders`: the slots of receivers, if they differ. `units`: how an order of nodes becomes slots
    of both. `mends`: whether mended tables are tried. Raises TopologyError for a schedule without
    hosts, with an uncabled host, or with more than `MOST_SLOTS`."""
    if len(slots) > MOST_SLOTS:
        refusal = f"a schedule of {len(slots)} slots; at most {MOST_SLOTS} are checked"
        raise TopologyError(f"{refusal}: give an order of fewer hosts")
    paths = trace(fabric, routes)
    receivers = slots if builders is None else builders
    hosts = hosts_of(np.append(slots, receivers))
    if not hosts:
        raise TopologyError(f"{fabric.name} has no hosts, which a schedule requires")
    loose = [host for host in hosts if paths.wiring.leaf[host] == NONE]
    if loose:
        refusal = f"{fabric.hosts[loose[0]].name} is cabled to no switch and cannot have a slot"
        raise TopologyError(f"{refusal}; give an order without it")
    checked = check_order(what, paths, slots, progress, receivers)
    better = suggest(fabric, paths, checked, progress, units) if checked.check.conflicting else []
    mends = mends and len(slots) <= MOST_MENDED
    if mends and checked.check.conflicting:
        best = better[0] if better else checked
        better = [*_mended(fabric, routes, checked, best.rate_share), *better]
    loops = credit_loops(paths)
    return FabricCheck(fabric, paths, summarise(fabric), checked, better, loops, mends)


def check_order(
    what: str,
    paths: Paths,
    slots: Slots,
    progress: Progress = None,
    builders: Slots | None = None,
) -> Schedule:
    """Return a node order, checked. `builders`: the slots of receivers, if they differ."""
    receivers = slots if builders is None else builders
    return Schedule(what, slots, check_shift(paths, slots, progress, receivers), receivers)


def suggest(
    fabric: Fabric,
    paths: Paths,
    checked: Schedule,
    progress: Progress = None,
    units: Units = folded,
) -> list[Schedule]:
    """Other schedules of the same hosts with a higher `rate_share`, best first.

    Tried are the slots by leaf and port, and the slots' own order of leaves with the same order of
    ports on each; both as they are, and with dummies so that every leaf has the same ports. If all
    conflict, dummies for the leaves that pods lack are tried too. Empty if none is better.
    """
    wiring = paths.wiring
    by_slot = np.stack([checked.slots, checked.builders], axis=1).reshape(-1)
    slots = slots_of(dict.fromkeys(hosts_of(by_slot)))
    orders = {
        "leaf after leaf, by port": by_port(fabric, wiring, slots, dummies=False),
        "same order of ports on every leaf": alike(wiring, slots, dummies=False),
        "leaf after leaf, by port, dummies": by_port(fabric, wiring, slots, dummies=True),
        "same order of ports on every leaf, dummies": alike(wiring, slots, dummies=True),
        WHOLE_PODS: whole_pods(fabric, wiring, slots),
    }
    tried: list[Schedule] = []
    for what, order in orders.items():
        if what == WHOLE_PODS and not all(other.check.conflicting for other in tried):
            continue
        readouts, builders = units(order)
        part = _part(progress, len(tried), len(orders))
        tried.append(check_order(what, paths, readouts, part, builders))
    better: list[Schedule] = []
    for other in tried:
        new = not any(
            np.array_equal(other.slots, known.slots)
            and np.array_equal(other.builders, known.builders)
            for known in better
        )
        if new and other.rate_share > checked.rate_share:
            better.append(other)
    return sorted(better, key=lambda other: -other.rate_share)


def _mended(fabric: Fabric, routes: Routes, checked: Schedule, best: float) -> list[Schedule]:
    """The schedule of mended tables where its `rate_share` is above the best of node orders."""
    if best >= 1:
        return []
    tables, readouts, builders = mend(fabric, routes, checked.slots)
    if tables is routes:
        return []
    check = check_shift(trace(fabric, tables), readouts, builders=builders)
    what = f"network.routing = {MENDED}, tables and an order of builder units of its own"
    found = Schedule(what, readouts, check, builders, MENDED)
    return [found] if found.rate_share > best else []


def _part(progress: Progress, done: int, parts: int) -> Progress:
    return progress and (lambda share: progress((done + share) / parts))
