"""Linear shifting: the time of a round, what bounds its rate, and the time spent in barriers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.answer import Answer, Condition
from daqloom.analyse.fabric.barrier import CLOSING, Barrier, barriers_of
from daqloom.analyse.fabric.pace import paced_round_s
from daqloom.analyse.fabric.push import EXCHANGES, Push
from daqloom.analyse.fabric.ring import Comparison, ring_of
from daqloom.analyse.fabric.slowest import Chance, Times, delay_of
from daqloom.analyse.fabric.view import rates_of
from daqloom.analyse.fabric.windows import by_clock
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import Parts, parts_of
from daqloom.topology.routing.max_flow import least_time
from daqloom.topology.schedule.slots import DUMMY

TOLERANCE = 0.05
"""Largest relative error with which the closed form of a phase is valid."""
WAITING = {"centralised": 1.7, "tournament": 0.9, "dissemination": 1.5}
"""Messages for which those of a phase wait at processors, for each round of a tree of all nodes,
log2 N; from simulations of 2 to 40 nodes. Without messages for a barrier these are the exchanges of
one multi-event packet; those of each further one wait, too."""
CROWDED = 0.4
"""Share by which messages wait longer where no polling delay spreads them; from the same."""
SAMPLED = 8
"""Phases, spread over the round, for which the effect of randomness is computed."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The phases; arrays have shape (phases,) except the first ones."""

    samples: list[tuple[bool, Times]]
    """For some phases: whether nodes send to others, and times at which they enter the barrier."""
    own_s: Times
    """(nodes,): time of a node for all its phases without contention for links."""
    busiest_s: float
    """Time of the most loaded link over the round."""
    entered_s: Times
    """(groups + 1,), mean over phases, as the next two: time from the champion's release until a
    node enters the next barrier, mean over a group's nodes; last, of several groups: all."""
    last_s: Times
    """Time from the champion's release until the last node of the group enters the next barrier."""
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


@dataclass(frozen=True, slots=True)
class Round:
    """A round in the steady state: all phases of the schedule, once each."""

    length_s: float
    waiting_s: float
    """Time of a node in a barrier until the slowest has entered, mean over nodes and barriers."""
    releasing_s: float
    """Time from then until its release."""
    schedule: Schedule
    at_most_s: float | None = None
    """Most that it lasts, where known and more."""


def shift(scenario: Scenario) -> Answer:
    """Evaluate the closed forms of linear shifting. Raises ScenarioError where there are none."""
    if not scenario.folded:
        raise ScenarioError(
            f"{scenario.name}: linear shifting with units that are not folded has no closed form; "
            "simulate it, or put a readout and a builder unit on each host"
        )
    push = Push(scenario)
    push.check_connected()
    return _by_clock(push) if scenario.building.change == "window" else _by_count(push)


def _by_count(push: Push) -> Answer:
    gate = _fence(push)
    found = _round(push, gate)
    busy = _busy_s(push, gate, found.schedule)
    if push.in_step:
        busy["schedule"] = float(found.schedule.links_s.sum())
    bounds = push.rates_hz(push.events, busy)
    round_s = max(found.length_s, busy["processor"], busy.get("source", 0.0))
    metrics = _shift_metrics(push, push.events / round_s, bounds)
    control_s = push.barriers * push.messages.cost_s * float(gate.messages.mean())
    discards = metrics["event_rate_hz"] < push.events / round_s
    if not discards:  # else nobody knows how often a phase has nothing to send
        metrics["phase_s"] = round_s / push.slots
        metrics["processor_share"] = (push.processor_s + control_s) / round_s
        if push.barriers:
            metrics["barrier_rate_hz"] = push.barriers / round_s
    waits = push.waits_at_barriers and not discards
    if waits and round_s == found.length_s:  # else sources hold some up
        metrics["barrier_s"] = {"releasing": found.releasing_s}
        if len(push.groups) == 1:  # else groups wait for each other at builder units, too
            waits_s = found.waiting_s + found.releasing_s
            metrics["barrier_share"] = push.barriers * waits_s / round_s
            metrics["barrier_s"]["waiting"] = found.waiting_s
    requests = push.nodes - 1 if push.is_paced else 0
    messages = push.barriers * int(gate.messages.sum()) / 2 / push.nodes
    phase = {
        "value_s": found.length_s / push.slots,
        "links_s": float(found.schedule.links_s.mean()),
        "own_s": float(found.schedule.own_s.max()) / push.slots,
        "messages": (messages + 2 * requests) / push.slots,
    }
    if found.at_most_s is not None:
        phase["at_most_s"] = found.at_most_s / push.slots
    if push.is_paced:
        phase["asking_s"] = _asking_s(push)
    barrier = {"value_s": gate.cost_s, "messages": int(gate.messages.sum()) // 2}
    analysis: dict[str, dict[str, Any]] = {"phase": phase, "barrier": barrier}
    notes = []
    if ring := ring_of(push):
        ways = Comparison.from_ring(ring, push.scenario.run.duration)
        metrics["ring_share"] = ways.metrics()
        analysis["ring"] = ways.entry()
        notes = [ways.sentence()]
    analysis |= _of_schedule(push, found.schedule, bounds)
    return Answer(metrics, analysis, {"phase": _of_phases(push, found)}, notes)


def _asking_s(push: Push) -> float:
    """Return the longest time of a request to write and the answer, latency included."""
    farthest = np.array([push.traffic.farthest], np.int32)
    return float(push.asking_s(farthest)[0]) + (push.posts - 1) * push.messages.latency_s


def _by_clock(push: Push) -> Answer:
    gate = _fence(push)
    found, plan = by_clock(push), schedule(push, gate)
    bounds = push.rates_hz(push.events, _busy_s(push, gate, plan))
    rate_hz = min(push.events * found.meps / found.length_s, bounds.get("source", math.inf))
    metrics = _shift_metrics(push, rate_hz, bounds)
    metrics["phase_s"] = found.length_s / push.slots
    metrics["idle_share"] = metrics["dummy_share"]
    metrics["processor_share"] = push.processor_s * rate_hz / push.events
    window = {"value_s": found.length_s / push.slots, "multi_event_packets": found.meps}
    analysis = {"window": window} | _of_schedule(push, plan, bounds)
    return Answer(metrics, analysis, {"window": [*found.conditions, _conflicts(plan)]}, [])


def _shift_metrics(push: Push, rate_hz: float, bounds: dict[str, float]) -> dict[str, Any]:
    """Return the metrics of linear shifting, for events that the output buffer lets through."""
    rate_hz = min(rate_hz, bounds.get("output_buffer", math.inf))
    throughput_bps = 8 * push.bytes_a_round * rate_hz / push.events
    rates = rates_of(rate_hz, min(bounds.values()), throughput_bps, push.nodes)
    metrics: dict[str, Any] = {**rates, "dummy_share": 1 - push.nodes / push.slots}
    if Parts.BROKEN in parts_of(push.scenario):
        metrics["max_flow_bps"] = _max_flow_bps(push)
    return metrics


def _max_flow_bps(push: Push) -> float:
    """Return what cables allow, however flows are routed and ordered."""
    wiring = push.traffic.paths.wiring
    between_s = least_time(wiring, push.traffic.hosts, push.wire_s)
    return 8 * push.bytes_a_round / max(between_s, (push.nodes - 1) * float(push.wire_s.max()))


def _of_schedule(push: Push, plan: Schedule, bounds: dict[str, float]) -> dict[str, dict[str, Any]]:
    worst_flows = int(plan.flows.max(initial=0))
    phases = {"phases": push.slots, "conflicting": plan.conflicting, "worst_flows": worst_flows}
    return {"schedule": phases} | push.of_network(int(push.mfps.max()), bounds)


def _busy_s(push: Push, gate: Barrier, plan: Schedule) -> dict[str, float]:
    """Return the busy time of each part in a round; the longest bounds the rate.

    A round brings each of N nodes to each other: so a node's link, its PCIe, its memory and the
    credits of its link have N − 1 flows of it. Of all cables the fullest one counts, whatever the
    order of flows. A processor has the messages of its node, those of the barriers included; the
    master of a centralised one has most. By Little's law the output buffer limits the rate: it
    holds a number of multi-event packets, each at least for its processing, and none larger than
    itself.
    """
    scenario, others = push.scenario, push.nodes - 1
    barriers_s = push.barriers * int(gate.messages.max()) * scenario.hosts.message_cost
    busy = {
        "host_link": others * float(push.wire_s.max()),
        "fabric_link": plan.busiest_s,
        "link_credits": others * float(push.credits_s.max()),
        "pcie": others * float(push.pcie_s.max()),
        "memory": others * float(push.memory_s.max()),
        "local_copy": float(push.copy_s.max()),
        "processor": push.processor_s + barriers_s,
    }
    if scenario.event.rate:
        busy["source"] = push.events / scenario.event.rate
    room = scenario.builders.buffer // int(push.mfps.sum())
    each_s = scenario.builders.processing_mean
    if each_s or not room:
        processing_s = push.meps * each_s
        busy["output_buffer"] = processing_s / room if room else float("inf")
    return busy


def _of_phases(push: Push, found: Round) -> list[Condition]:
    """Return the conditions of phases that change by count."""
    switch, plan = push.scenario.network.switch, found.schedule
    late = unmodelled_s(push) * push.slots / found.length_s
    has_messages = push.barrier not in ("none", "ideal")
    late_in_words = (
        "messages wait for each other at processors, and for data that overtakes them where "
        "hosts.latency is random"
    )
    if push.is_paced:
        late_in_words = (
            "requests to write and their answers wait for other messages at processors, and behind "
            "data where two nodes write to each other at a time"
        )
    return [
        Condition("a barrier after each phase", push.in_step, _out_of_step_in_words(push)),
        _conflicts(plan),
        Condition(
            "messages pass streams",
            not has_messages
            or (switch.crossbar_speedup > 1 and switch.input_queue == "virtual-output"),
            f"a barrier message can wait at a switch for the end of a data stream (network.switch."
            f"crossbar_speedup = {switch.crossbar_speedup}, input_queue = {switch.input_queue}), "
            "the more so the more nodes are released one after the other: the length of a phase is "
            "a lower bound",
        ),
        Condition(
            "room for what is built",
            push.scenario.builders.buffer >= 2 * push.meps * int(push.mfps.sum()),
            f"builders.buffer is smaller than the {2 * push.meps} multi-event packets that a "
            "builder unit grants: it discards events, and phases in which nothing is sent are "
            "shorter",
        ),
        Condition(
            "credits for the line rate",
            bool((push.credits_s <= push.wire_s).all()),
            "network.switch.buffer holds too few packets for the line rate; a credit update can "
            "also wait for a packet in its direction, so that credits allow less than the formula "
            "says",
        ),
        Condition(
            "requests are answered at once" if push.is_paced else "processors are idle",
            late <= TOLERANCE,
            f"{late_in_words}: phases may last {100 * late:.2g} % longer than the formula says; "
            "simulate the system",
        ),
    ]


def unmodelled_s(push: Push) -> float:
    """Return by how much the formula of a phase of `in_step` nodes is too short, about (s).

    Messages wait for others at processors. Unless virtual lanes part them, they also wait behind
    data to the same node: one transfer in N phases at each level of a tree, as far as random
    latency lets data overtake messages. As builder units set the pace, messages of a barrier wait
    for half a packet, on average, at each level, and in a phase N/2 of even N, in which two nodes
    write to each other, an answer for one transfer. Where N is a power of two, a tournament or
    dissemination without random delays releases these partners at different times.
    """
    if push.nodes < 2:
        return 0.0
    rounds, exchanges = math.log2(push.nodes), EXCHANGES * (1 - 1 / push.nodes)
    barriers, cost_s = WAITING.get(push.barrier, 0.0) * rounds, push.messages.cost_s
    crowded_s = CROWDED * max(0.0, cost_s - push.messages.polling_s)
    waits_s = ((barriers or exchanges) + (push.meps - 1) * exchanges) * (cost_s + crowded_s)
    if not barriers or push.parts_lanes:
        return waits_s
    latency_s = delay_of(push.scenario.hosts.latency).deviation_s
    jitter_s = delay_of(push.scenario.building.jitter).deviation_s
    transfer_s = float(push.alone_s.max()) / push.nodes
    if latency_s:
        waits_s += rounds * min(1.0, latency_s / cost_s if cost_s else 1.0) * transfer_s
    if push.is_paced:
        waits_s += rounds * push.link.bytes_s(push.link.packet) / 2
        apart = rounds % 1 == 0 and push.barrier != "centralised" and not latency_s + jitter_s
        waits_s += 0.0 if push.nodes % 2 or apart else transfer_s
    return waits_s


def _out_of_step_in_words(push: Push) -> str:
    """Return why phases without a barrier of all nodes after each have no exact form."""
    building, groups = push.scenario.building, len(push.groups)
    bounds = "these are upper bounds of the simulated rate"
    slack = building.barrier_slack
    how = f"with a slack of {slack} barrier{'s' * (slack > 1)}" if slack else "without a barrier"
    if push.barrier == "neighbour":
        how = "where nodes wait for their neighbours only"
    if building.synchronise == "adaptive":
        how = "where nodes leave step (building.synchronise)"
    if not push.waits_at_barriers and push.is_paced and building.phases_under_way == 1:
        return (
            f"{how}, phases are those of nodes on a ring whose builder units let "
            f"{building.writers} write at a time, once settled; contention on the way to different "
            "builder units, and answers that come too early, or late as they wait behind data to "
            "the same node (unless transport.control_service_level parts them), have no closed "
            "form: " + bounds
        )
    if not push.has_barrier_each_phase or groups == 1:
        if push.waits_at_barriers:
            how = f"with a barrier once in {building.phases_per_barrier} phases"
        contend = "nodes fall out of step and contend for links, for which there is no closed form"
        return f"{how} {contend}: {bounds}"
    apart = f"each of {groups} groups is in step by itself (building.barrier_group), and groups "
    if push.is_paced:
        return (
            apart + "wait for each other at builder units: a phase lasts at least as long as that "
            "of the slowest group, and without contention for links at most as long as that of all "
            "nodes in step (analysis.phase.at_most_s); " + bounds
        )
    return f"{apart}meet at builder units and on links, for which there is no closed form: {bounds}"


def _conflicts(plan: Schedule) -> Condition:
    return Condition(
        "no conflicts",
        not plan.conflicting,
        f"in {plan.conflicting} of {len(plan.flows)} phases transfers share a link, up to "
        f"{int(plan.flows.max(initial=0))} of them: such a phase lasts at least as long as its "
        "most loaded link (`daqloom topology check` tries other node orders and network.routing = "
        "mended)",
    )


def _fence(push: Push) -> Barrier:
    """Return the barriers of a scenario."""
    hosts, between = push.traffic.hosts.tolist(), push.traffic.between
    closes = push.barrier == "neighbour" and push.scenario.building.keeps_order
    return barriers_of(
        CLOSING if closes else push.barrier,
        push.groups,
        push.messages,
        lambda one, other: between(hosts[one], hosts[other]),
    )


def _round(push: Push, gate: Barrier) -> Round:
    """Return the round of a scenario whose phases change by count, with this barrier."""
    found = schedule(push, gate)
    if not push.has_barrier_each_phase:
        return _out_of_step(push, gate, found)
    if push.in_step:
        return _in_step(push, gate, found, 0)
    return _in_groups(push, gate, found)


def schedule(push: Push, gate: Barrier) -> Schedule:
    """Return all phases, each on its own. Copies take time, a dummy's turn none. Flows on a link
    take at least their sum; exactly that if equal and sharing one link (`Conflicts.*`)."""
    hosts, own_s = push.traffic.hosts, np.zeros(push.nodes)
    busy_s = np.zeros(push.traffic.paths.wiring.links)
    together = _sets(push)
    columns = np.zeros((3, len(together)))
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
        asking_s = push.asking_s(phases.switches)
        own_s += np.where(remote, alone_s + asking_s, still_s).sum(axis=0)
        busy_s += phases.links_s
        begun_s = np.where(remote, gate.begins_s, gate.released_s)
        entered_s = begun_s + np.where(remote, asking_s + shared_s, still_s)
        for column, nodes in zip(columns.T, together, strict=True):
            of_set_s, report_s = entered_s[:, nodes], gate.report_s[nodes]
            begins_s = (of_set_s + report_s).max(axis=1).sum()
            column += (of_set_s.mean(axis=1).sum(), of_set_s.max(axis=1).sum(), begins_s)
        found.append((phases.shared_s.max(axis=1), phases.flows))
        for phase in chosen[(chosen >= first) & (chosen < first + len(remote))] - first:
            samples.append((bool(remote[phase].any()), entered_s[phase]))
        first += len(remote)
    by_phase = [np.concatenate(part) for part in zip(*found, strict=True)]
    busiest_s = float(busy_s.max(initial=0.0))
    return Schedule(samples, own_s, busiest_s, *(columns / push.slots), *by_phase)


def _sets(push: Push) -> list[NDArray[np.intp]]:
    """Return the nodes of each group, and if they are several those of all together."""
    return push.groups + ([np.arange(push.nodes)] if len(push.groups) > 1 else [])


def _in_step(push: Push, gate: Barrier, found: Schedule, set_index: int) -> Round:
    """Return the round with a barrier after each phase of the nodes of one set: a phase lasts as
    long as its slowest node from one release to the next: with the most bytes, the last release, or
    a shared link. Random delays add that of the slowest node."""
    nodes = _sets(push)[set_index]
    report_s, released_s = gate.report_s[nodes], gate.released_s[nodes]
    kinds = {remote: push.chance(1, remote) for remote in (True, False)}
    usual = [(kinds[remote], entered_s[nodes]) for remote, entered_s in found.samples]
    added_s = np.mean([_added_s(chance, entered_s + report_s) for chance, entered_s in usual])
    late_s = np.mean([_added_s(chance, entered_s) for chance, entered_s in usual])
    mean_s = np.mean([chance.mean_s for chance, _ in usual])
    length_s = float(found.length_s[set_index] + added_s)
    last_s = float(found.last_s[set_index] + late_s)
    waiting_s = last_s - float(found.entered_s[set_index] + mean_s)
    releasing_s = length_s + float(released_s.mean()) - last_s
    return Round(length_s * push.slots, waiting_s, releasing_s, found)


def _in_groups(push: Push, gate: Barrier, found: Schedule) -> Round:
    """Return the round in which each group is in step by itself, as a bound: none builds more
    events than another, so that the slowest one counts. If builder units set the pace, waiting for
    barriers adds to what nodes on a ring wait; and all nodes in step are no faster: if all of a
    step had ended by some time, none ends the next one later than the slowest of all after it."""
    one = _in_step(push, gate, found, _slowest_group(push, found))
    if not push.is_paced:
        return one
    all_s = _in_step(push, gate, found, len(push.groups)).length_s
    length_s = max(one.length_s, paced_round_s(push, _own_s(push, found)))
    return Round(length_s, one.waiting_s, one.releasing_s, found, max(length_s, all_s))


def _slowest_group(push: Push, found: Schedule) -> int:
    """Return the group whose phases are longest without random delays, of equal ones the largest:
    the more nodes, the longer the delay of the slowest."""
    ranks = [(round(float(found.length_s[n]), 12), len(g)) for n, g in enumerate(push.groups)]
    return ranks.index(max(ranks))


def _own_s(push: Push, found: Schedule) -> Times:
    """Return (nodes,): a node's time for all its phases by itself. With several of them under way,
    requests, answers and acknowledges may pass while earlier writes do."""
    if push.is_paced and push.scenario.building.phases_under_way > 1:
        return push.copy_s + (push.nodes - 1) * push.alone_s
    return found.own_s


def _added_s(chance: Chance, times_s: Times) -> float:
    """Return the time that random delays add to the slowest node."""
    return chance.slowest_s(times_s) - float(times_s.max())


def _out_of_step(push: Push, gate: Barrier, found: Schedule) -> Round:
    """Return the round without a barrier, with slack, or with one in k phases, as a bound: nodes
    fall out of step and contend for links. A node needs its own time for all its phases, and none
    builds more events than another; a link needs the time of all flows of a round."""
    building, own_s = push.scenario.building, _own_s(push, found)
    if not push.waits_at_barriers:
        if not push.is_paced:
            round_s = float(own_s.max()) + push.chance(push.slots).mean_s
        elif building.phases_under_way == 1:
            round_s = paced_round_s(push, own_s)
        else:
            round_s = float(own_s.max())
        return Round(max(round_s, found.busiest_s), 0.0, 0.0, found)
    k, nodes = building.phases_per_barrier, push.groups[_slowest_group(push, found)]
    chance = push.chance(k)
    entered_s = (gate.begins_s + own_s * k / push.slots)[nodes]
    step_s, last_s = chance.slowest_s(entered_s + gate.report_s[nodes]), chance.slowest_s(entered_s)
    waiting_s = last_s - float(entered_s.mean()) - chance.mean_s
    releasing_s = step_s + float(gate.released_s[nodes].mean()) - last_s
    return Round(max(step_s * push.barriers, found.busiest_s), waiting_s, releasing_s, found)
