"""Linear shifting by count: the time of a round, and the part of it spent in barriers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.fabric_barrier import Barrier, barrier
from daqloom.analyse.fabric_push import Push
from daqloom.analyse.fabric_slowest import Chance, Times
from daqloom.topology.schedule import DUMMY

SAMPLED = 8
"""Phases, spread over the round, for which the effect of randomness is computed."""


@dataclass(frozen=True, slots=True)
class Round:
    """A round in the steady state: all phases of the schedule, once each."""

    length_s: float
    waiting_s: float
    """Time of a node in a barrier until the slowest has entered, mean over nodes and barriers."""
    releasing_s: float
    """Time from then until its release."""
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Schedule:
    """The phases; arrays have shape (phases,) except the first ones."""

    samples: list[tuple[bool, Times]]
    """For some phases: whether nodes send to others, and (nodes,) when they enter the barrier."""
    own_s: Times
    """(nodes,): time of a node for all its phases without contention for links."""
    busiest_s: float
    """Time of the most loaded link over the round."""
    entered_s: Times
    """Time from the champion's release until a node enters the next barrier, mean over nodes."""
    last_s: Times
    """Time from the champion's release until the last node enters the next barrier."""
    length_s: Times
    """Time from one release of the champion to the next."""
    links_s: Times
    """Time of the most loaded link."""
    flows: NDArray[np.int32]
    """Largest number of flows on one link."""

    @property
    def conflicting(self) -> int:
        """Number of phases in which flows share a link."""
        return int((self.flows > 1).sum())


def fence(push: Push) -> Barrier:
    """Return the barrier of a scenario."""
    hosts, between = push.traffic.hosts.tolist(), push.traffic.between
    return barrier(
        push.barrier,
        push.nodes,
        push.messages,
        lambda one, other: between(hosts[one], hosts[other]),
    )


def by_count(push: Push, gate: Barrier) -> Round:
    """Return the round of a scenario whose phases change by count, with this barrier."""
    found = schedule(push, gate)
    if push.in_step:
        return _in_step(push, gate, found)
    return _out_of_step(push, gate, found)


def schedule(push: Push, gate: Barrier) -> Schedule:
    """Return all phases, each on its own. Copies within a node take time, a dummy's turn none.
    Several flows on a link take at least their sum; exactly that if they are equal and share one
    link (`Conflicts.*` in the engine's tests)."""
    hosts, own_s = push.traffic.hosts, np.zeros(push.nodes)
    busy_s = np.zeros(push.traffic.paths.wiring.links)
    chosen = ((np.arange(SAMPLED) + 0.5) * push.slots / SAMPLED).astype(int)
    samples: list[tuple[bool, Times]] = []
    first = 0
    found: list[tuple[NDArray[Any], ...]] = []
    for phases in push.traffic.phases(push.wire_s):
        local = phases.receivers == hosts
        remote = (phases.receivers != DUMMY) & ~local
        still_s = np.where(local, push.copy_s, 0.0)
        alone_s = push.transfer_s(push.alone_s, phases.switches)
        shared_s = push.transfer_s(np.maximum(phases.shared_s, push.alone_s), phases.switches)
        own_s += np.where(remote, alone_s, still_s).sum(axis=0)
        busy_s += phases.links_s
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
        for phase in chosen[(chosen >= first) & (chosen < first + len(remote))] - first:
            samples.append((bool(remote[phase].any()), entered_s[phase]))
        first += len(remote)
    columns = [np.concatenate(part) for part in zip(*found, strict=True)]
    return Schedule(samples, own_s, float(busy_s.max(initial=0.0)), *columns)


def _in_step(push: Push, gate: Barrier, found: Schedule) -> Round:
    """Return the round with a barrier after each phase: a phase lasts as long as its slowest node
    from one release to the next, which is the one with the most bytes, or the last to be released,
    or one whose flow shares a link. Random delays add that of the slowest node."""
    kinds = {remote: push.chance(1, remote) for remote in (True, False)}
    usual = [(kinds[remote], entered_s) for remote, entered_s in found.samples]
    added_s = np.mean([_added_s(chance, entered_s + gate.report_s) for chance, entered_s in usual])
    late_s = np.mean([_added_s(chance, entered_s) for chance, entered_s in usual])
    mean_s = np.mean([chance.mean_s for chance, _ in usual])
    length_s = float(found.length_s.mean() + added_s)
    last_s = float(found.last_s.mean() + late_s)
    return Round(
        length_s * push.slots,
        last_s - float(found.entered_s.mean() + mean_s),
        length_s + float(gate.released_s.mean()) - last_s,
        found,
    )


def _added_s(chance: Chance, times_s: Times) -> float:
    """Return the time that random delays add to the slowest node."""
    return chance.slowest_s(times_s) - float(times_s.max())


def _out_of_step(push: Push, gate: Barrier, found: Schedule) -> Round:
    """Return the round without a barrier, or with one in k phases, as a bound: nodes fall out of
    step and contend for links, for which there is no closed form. A node needs its own time for all
    its phases, and in the long term none builds more events than another; a link needs the time of
    all flows of a round."""
    if not push.barriers:
        mean_s = push.chance(push.slots).mean_s
        return Round(max(float(found.own_s.max()) + mean_s, found.busiest_s), 0.0, 0.0, found)
    k = push.scenario.building.phases_per_barrier
    chance = push.chance(k)
    entered_s = gate.begins_s + found.own_s * k / push.slots
    step_s, last_s = chance.slowest_s(entered_s + gate.report_s), chance.slowest_s(entered_s)
    return Round(
        max(step_s * push.barriers, found.busiest_s),
        last_s - float(entered_s.mean()) - chance.mean_s,
        step_s + float(gate.released_s.mean()) - last_s,
        found,
    )
