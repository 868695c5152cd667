"""Linear shifting by count: how long a round takes, and what of it is spent in barriers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.fabric_barrier import Barrier, barrier
from daqloom.analyse.fabric_push import Push
from daqloom.analyse.fabric_slowest import Times, expected_slowest_s
from daqloom.topology.schedule import DUMMY


@dataclass(frozen=True, slots=True)
class Round:
    """All phases of the schedule, in which each node meets each other once, in the steady state."""

    length_s: float
    waiting_s: float
    """Of a node in a barrier until the slowest has entered, mean over nodes and barriers."""
    releasing_s: float
    """From then on until it is released."""
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Schedule:
    """The phases; arrays (phases,) but for the first one."""

    own_s: Times
    """(nodes,): what a node takes for all its phases, with all links for itself."""
    entered_s: Times
    """From the champion's release until a node enters the next barrier, mean over the nodes."""
    last_s: Times
    """The same of the last one."""
    length_s: Times
    """From one release of the champion to the next."""
    links_s: Times
    """Time of the fullest link."""
    flows: NDArray[np.int32]
    """The most flows on one link."""

    @property
    def conflicting(self) -> int:
        """Phases in which some link carries several flows."""
        return int((self.flows > 1).sum())


def fence(push: Push) -> Barrier:
    """The barrier of a scenario."""
    hosts, between = push.traffic.hosts.tolist(), push.traffic.between
    return barrier(
        push.barrier,
        push.nodes,
        push.messages,
        lambda one, other: between(hosts[one], hosts[other]),
    )


def by_count(push: Push, gate: Barrier) -> Round:
    """The round of a scenario whose phases change by count, behind such a barrier."""
    found = schedule(push, gate)
    if push.in_step:
        return _in_step(push, gate, found)
    return _out_of_step(push, gate, found)


def schedule(push: Push, gate: Barrier) -> Schedule:
    """All phases, each on its own. Copies within a node take their time, a dummy's turn none.

    Several flows on a link take at least their sum (facts, part E; `Conflicts.*`); exactly that if
    they are equal and share one link.
    """
    hosts, own_s = push.traffic.hosts, np.zeros(push.nodes)
    found: list[tuple[NDArray[Any], ...]] = []
    for phases in push.traffic.phases(push.wire_s):
        local = phases.receivers == hosts
        remote = (phases.receivers != DUMMY) & ~local
        still_s = np.where(local, push.copy_s, 0.0)
        alone_s = push.transfer_s(push.alone_s, phases.switches)
        shared_s = push.transfer_s(np.maximum(phases.shared_s, push.alone_s), phases.switches)
        own_s += np.where(remote, alone_s, still_s).sum(axis=0)
        begun_s = np.where(remote, gate.begins_s, gate.released_s)
        entered_s = begun_s + np.where(remote, shared_s, still_s)
        found.append(
            (
                entered_s.mean(axis=1),
                entered_s.max(axis=1),
                (entered_s + gate.report_s).max(axis=1),
                phases.shared_s.max(axis=1),
                phases.flows,
            )
        )
    return Schedule(own_s, *(np.concatenate(part) for part in zip(*found, strict=True)))


def _in_step(push: Push, gate: Barrier, found: Schedule) -> Round:
    """Behind a barrier after each phase a phase lasts as long as its slowest node takes from one
    release to the next: the one with the most bytes, or the last to be released, or one whose flow
    shares a link. What is drawn by chance adds what the slowest of all draws adds."""
    far = np.full(push.nodes, push.traffic.farthest)
    usual_s = gate.begins_s + push.transfer_s(push.alone_s, far) + gate.report_s
    chance_s = expected_slowest_s(usual_s, push.delays(1), push.deviation_s) - float(usual_s.max())
    mean_s = sum(delay.sum_mean_s for delay in push.delays(1))
    length_s = float(found.length_s.mean()) + chance_s
    last_s = float(found.last_s.mean()) + chance_s
    return Round(
        length_s * push.slots,
        last_s - float(found.entered_s.mean()) - mean_s,
        length_s + float(gate.released_s.mean()) - last_s,
        found,
    )


def _out_of_step(push: Push, gate: Barrier, found: Schedule) -> Round:
    """Without a barrier, or with one once in k phases, nodes fall out of step and meet on links, by
    how much no closed form says. A bound: a node needs its own time for all its phases, and in the
    long run none builds more events than another; a link needs what all flows of a round take."""
    hosts = push.traffic.hosts
    busiest_s = push.traffic.busiest_s(hosts, hosts, push.wire_s)
    if not push.barriers:
        mean_s = sum(delay.sum_mean_s for delay in push.delays(push.slots))
        return Round(max(float(found.own_s.max()) + mean_s, busiest_s), 0.0, 0.0, found)
    k = push.scenario.shift.phases_per_barrier
    delays, deviation_s = push.delays(k), math.sqrt(k) * push.deviation_s
    entered_s = gate.begins_s + found.own_s * k / push.slots
    step_s = expected_slowest_s(entered_s + gate.report_s, delays, deviation_s)
    last_s = expected_slowest_s(entered_s, delays, deviation_s)
    mean_s = float(entered_s.mean()) + sum(delay.sum_mean_s for delay in delays)
    return Round(
        max(step_s * push.barriers, busiest_s),
        last_s - mean_s,
        step_s + float(gate.released_s.mean()) - last_s,
        found,
    )
