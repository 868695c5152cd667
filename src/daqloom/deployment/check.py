"""Result of `daqloom topology check`: routes, schedule, and better schedules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.fabric.summary import Summary, summarise
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
    fold,
    hosts_of,
    slots_of,
    whole_pods,
)

SCHEMA = 1
Progress = Callable[[float], None] | None
"""Called with the share done."""
MOST_SLOTS = 8192
"""Limit on slots. The time of a check is proportional to phases × slots: about 15 s at the limit,
for each node order."""
MOST_MENDED = 4096
"""Limit on slots for which mended tables are tried: some seconds; a minute for twice as many."""
WHOLE_PODS = "leaf after leaf, by port, dummies for whole pods"


@dataclass(frozen=True)
class Schedule:
    """Node order, and the result of checking linear shift with it."""

    what: str
    slots: Slots
    """The hosts that send."""
    check: ShiftCheck
    builders: Slots
    """Hosts that receive; equal to `slots` if each host both sends and receives."""
    routing: str = ""
    """Name of the schedule's routing; empty: the tables under check."""

    @property
    def hosts(self) -> int:
        """Number of hosts in the schedule."""
        return len({*hosts_of(self.slots), *hosts_of(self.builders)})

    @property
    def dummies(self) -> int:
        """Number of slots without a real node (dummies), D."""
        return int((self.slots == DUMMY).sum())

    @property
    def built(self) -> int:
        """Number of slots with a builder unit, R: events of a round."""
        return len(hosts_of(self.builders))

    @property
    def rate_share(self) -> float:
        """Event rate as a share of the rate of as many hosts limited only by their own cables.

        An upper bound: with a barrier after each phase, a round builds R events and takes at least
        `round_time` transfers by the slowest host cable, or R + D if no other link takes longer.
        """
        return self.built / max(1, self.check.round_time)


@dataclass(frozen=True)
class FabricCheck:
    """Result of the check: paths of a fabric, its cabling, a schedule, and better schedules."""

    fabric: Fabric
    paths: Paths
    summary: Summary
    schedule: Schedule
    suggestions: list[Schedule]
    credit_loops: list[Loop]
    """Circles of outputs that can block a lossless network for good."""
    tried_mended: bool
    """Whether the tables and order of `network.routing = mended` were tried."""

    @property
    def pairs(self) -> int:
        """Number of (source, destination) pairs of different hosts."""
        return len(self.fabric.hosts) * (len(self.fabric.hosts) - 1)

    def conflicts(self) -> list[int]:
        """Return the directed links with several flows in some phase, by number of such phases."""
        phases = self.schedule.check.link_conflicts
        order = np.lexsort((-self.schedule.check.link_worst, -phases))
        return [int(link) for link in order[: int((phases > 0).sum())]]

    def ends(self, link: int) -> tuple[End, End]:
        """Return the ports at which a directed link begins and ends."""
        wiring = self.paths.wiring
        return (
            End(int(wiring.tail[link]), int(wiring.tail_port[link])),
            End(int(wiring.head[link]), int(wiring.head_port[link])),
        )

    def upward(self, link: int) -> bool:
        """Return whether a directed link leads away from the hosts."""
        begin, end = (self.summary.level[end.node] for end in self.ends(link))
        return begin < end

    def record(self) -> dict[str, Any]:
        """Return all results for JSON; ends are [node, port], and dummies in an order are null.
        `rate_share` is null if flows have no route."""
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
    units: Units = fold,
    *,
    mends: bool = True,
) -> FabricCheck:
    """Check the routes of all pairs and linear shift over the slots; suggest schedules if flows
    conflict.

    `builders`: the slots of receivers, if they differ. `units`: function from an order of nodes to
    the slots of both kinds of units. `mends`: whether mended tables are tried. Raises TopologyError
    for a schedule without hosts, with an uncabled host, or with more than `MOST_SLOTS`."""
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
        better = [*_mended_schedules(fabric, routes, checked, best.rate_share), *better]
    loops = credit_loops(paths)
    return FabricCheck(fabric, paths, summarise(fabric), checked, better, loops, mends)


def check_order(
    what: str,
    paths: Paths,
    slots: Slots,
    progress: Progress = None,
    builders: Slots | None = None,
) -> Schedule:
    """Return a node order with its check. `builders`: the slots of receivers, if they differ."""
    receivers = slots if builders is None else builders
    return Schedule(what, slots, check_shift(paths, slots, progress, receivers), receivers)


def suggest(
    fabric: Fabric,
    paths: Paths,
    checked: Schedule,
    progress: Progress = None,
    units: Units = fold,
) -> list[Schedule]:
    """Return other schedules of the same hosts with a higher `rate_share`, best first.

    The tried schedules order the slots by leaf and port, or keep the order of leaves and use the
    same order of ports on each leaf; both without and with dummies that give every leaf the same
    ports. If all conflict, dummies for missing leaves of pods are tried. Empty if none is better.
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


def _mended_schedules(
    fabric: Fabric, routes: Routes, checked: Schedule, best: float
) -> list[Schedule]:
    """Return the schedule of mended tables if its `rate_share` exceeds `best`, of node orders."""
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
