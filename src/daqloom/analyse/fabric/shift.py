"""Closed forms of linear shifting: time of a round, bounds of the event rate, time in barriers."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daqloom.analyse.answer import Answer, Condition
from daqloom.analyse.fabric.barrier import CLOSING, Barrier, barriers_of, network_barrier
from daqloom.analyse.fabric.pace import paced_round_s
from daqloom.analyse.fabric.push import EXCHANGES, Push
from daqloom.analyse.fabric.ring import Comparison, ring_of
from daqloom.analyse.fabric.slowest import Chance, Times, delay_of
from daqloom.analyse.fabric.view import rates_of
from daqloom.analyse.fabric.windows import by_clock
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import Parts
from daqloom.topology.routing.max_flow import least_time
from daqloom.topology.schedule.slots import DUMMY

TOLERANCE = 0.05
"""Largest relative error up to which the closed form of a phase counts as valid."""
WAITING = {"centralised": 1.7, "tournament": 0.9, "dissemination": 1.5}
"""Mean number of messages whose processing at busy processors delays a phase, divided by log2 N for
N nodes, by kind of barrier; from simulations of 2 to 40 nodes. `unmodelled_s` also counts the size
and grant messages of multi-event packets (MEPs): those of all MEPs without a barrier, and
those of all but the first MEP with a barrier."""
CROWDED = 0.4
"""Relative increase of message delays if no polling delay spreads messages; from simulations."""
SAMPLED = 8
"""Number of phases, spread over the round, for which the effect of random delays is computed."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times of the phases of a round; arrays have shape (phases,) unless another is stated."""

    samples: list[tuple[bool, Times]]
    """For sampled phases: whether nodes send to others, and times of entry into the barrier."""
    own_s: Times
    """(nodes,): time of a node for all its phases without contention for links."""
    busiest_s: float
    """Time of the most loaded link over the round."""
    entered_s: Times
    """Time from the release by the root of the barrier tree until a node enters the next barrier,
    mean over phases and over the nodes of each group. Shape (groups,); with several groups, one
    value for all nodes is appended. `last_s` and `length_s` have the same shape."""
    last_s: Times
    """Time from the root's release until the last node of a group enters the next barrier."""
    length_s: Times
    """Time from one release by the root to the next, mean over phases."""
    links_s: Times
    """Time of the flows on the most loaded link, for each phase."""
    flows: NDArray[np.int32]
    """Largest number of flows on one link, for each phase."""

    @property
    def conflicting(self) -> int:
        """Number of phases in which flows share a link."""
        return int((self.flows > 1).sum())


@dataclass(frozen=True, slots=True)
class Round:
    """A round in the steady state: all phases of the schedule, once each."""

    length_s: float
    waiting_s: float
    """Time from a node's entry into a barrier until the slowest enters; mean over all."""
    releasing_s: float
    """Time from the slowest node's entry until a node's release, mean over nodes and barriers."""
    schedule: Schedule
    at_most_s: float | None = None
    """Upper bound of `length_s`; None if unknown."""


def shift(scenario: Scenario) -> Answer:
    """Evaluate closed forms of linear shifting. Raises ScenarioError if units are not folded."""
    if not scenario.is_folded:
        raise ScenarioError(
            f"{scenario.name}: linear shifting with units that are not folded has no closed form; "
            "simulate it, or put a readout and a builder unit on each host"
        )
    push = Push(scenario)
    push.check_connected()
    return _by_clock(push) if scenario.building.change == "window" else _by_count(push)


def _by_count(push: Push) -> Answer:
    barrier = _barrier(push)
    cycle = _round(push, barrier)
    busy = _busy_s(push, barrier, cycle.schedule)
    if push.in_step:
        busy["schedule"] = float(cycle.schedule.links_s.sum())
    bounds = push.rates_hz(push.events, busy)
    round_s = max(cycle.length_s, busy["processor"], busy.get("source", 0.0))
    metrics = _shift_metrics(push, push.events / round_s, bounds)
    control_s = push.barriers * push.messages.cost_s * float(barrier.messages.mean())
    discards = metrics["event_rate_hz"] < push.events / round_s
    if not discards:  # if events are discarded, some phases send nothing: unknown how many
        metrics["phase_s"] = round_s / push.slots
        metrics["processor_share"] = (push.processor_s + control_s) / round_s
        if push.barriers:
            metrics["barrier_rate_hz"] = push.barriers / round_s
    waits = push.waits_at_barriers and not discards
    if waits and round_s == cycle.length_s:  # else nodes also wait for sources
        metrics["barrier_s"] = {"releasing": cycle.releasing_s}
        if len(push.groups) == 1:  # several groups also wait at builder units
            waits_s = cycle.waiting_s + cycle.releasing_s
            metrics["barrier_share"] = push.barriers * waits_s / round_s
            metrics["barrier_s"]["waiting"] = cycle.waiting_s
    requests = push.nodes - 1 if push.is_paced else 0
    messages = push.barriers * int(barrier.messages.sum()) / 2 / push.nodes
    phase = {
        "value_s": cycle.length_s / push.slots,
        "links_s": float(cycle.schedule.links_s.mean()),
        "own_s": float(cycle.schedule.own_s.max()) / push.slots,
        "messages": (messages + 2 * requests) / push.slots,
    }
    if cycle.at_most_s is not None:
        phase["at_most_s"] = cycle.at_most_s / push.slots
    if push.is_paced:
        phase["asking_s"] = _asking_s(push)
    cost = {"value_s": barrier.cost_s, "messages": int(barrier.messages.sum()) // 2}
    analysis: dict[str, dict[str, Any]] = {"phase": phase, "barrier": cost}
    notes = []
    if ring := ring_of(push):
        ways = Comparison.from_ring(ring, push.scenario.run.duration)
        metrics["ring_share"] = ways.metrics()
        analysis["ring"] = ways.entry()
        notes = [ways.sentence()]
    analysis |= _of_schedule(push, cycle.schedule, bounds)
    return Answer(metrics, analysis, {"phase": _of_phases(push, cycle)}, notes)


def _asking_s(push: Push) -> float:
    """Return the longest time of a request to write and its answer, with mean random latency."""
    farthest = np.array([push.traffic.farthest], np.int32)
    return float(push.asking_s(farthest)[0]) + (push.posts - 1) * push.messages.latency_s


def _by_clock(push: Push) -> Answer:
    barrier = _barrier(push)
    found, plan = by_clock(push), schedule(push, barrier)
    bounds = push.rates_hz(push.events, _busy_s(push, barrier, plan))
    rate_hz = min(push.events * found.meps / found.length_s, bounds.get("source", math.inf))
    metrics = _shift_metrics(push, rate_hz, bounds)
    metrics["phase_s"] = found.length_s / push.slots
    metrics["idle_share"] = metrics["dummy_share"]
    metrics["processor_share"] = push.processor_s * rate_hz / push.events
    window = {"value_s": found.length_s / push.slots, "multi_event_packets": found.meps}
    analysis = {"window": window} | _of_schedule(push, plan, bounds)
    return Answer(metrics, analysis, {"window": [*found.conditions, _conflicts(plan)]}, [])


def _shift_metrics(push: Push, rate_hz: float, bounds: dict[str, float]) -> dict[str, Any]:
    """Return the metrics of linear shifting at an event rate, which the output buffer limits."""
    rate_hz = min(rate_hz, bounds.get("output_buffer", math.inf))
    throughput_bps = 8 * push.bytes_a_round * rate_hz / push.events
    rates = rates_of(rate_hz, min(bounds.values()), throughput_bps, push.nodes)
    metrics: dict[str, Any] = {**rates, "dummy_share": 1 - push.nodes / push.slots}
    if Parts.BROKEN in push.scenario.parts:
        metrics["max_flow_bps"] = _max_flow_bps(push)
    return metrics


def _max_flow_bps(push: Push) -> float:
    """Return the highest throughput that cables allow for any routing and order of flows (b/s)."""
    wiring = push.traffic.paths.wiring
    between_s = least_time(wiring, push.traffic.hosts, push.wire_s)
    return 8 * push.bytes_a_round / max(between_s, (push.nodes - 1) * float(push.wire_s.max()))


def _of_schedule(push: Push, plan: Schedule, bounds: dict[str, float]) -> dict[str, dict[str, Any]]:
    worst_flows = int(plan.flows.max(initial=0))
    phases = {"phases": push.slots, "conflicting": plan.conflicting, "worst_flows": worst_flows}
    return {"schedule": phases} | push.of_network(int(push.mfps.max()), bounds)


def _busy_s(push: Push, barrier: Barrier, plan: Schedule) -> dict[str, float]:
    """Return the busy time of each resource in a round; the longest bounds the event rate.

    In a round each of N nodes sends to each other node, so a node's link, PCIe and memory, and the
    credits of the link, carry N − 1 flows. `fabric_link` is the total of the most loaded cable, for
    any order of flows. `processor` includes barrier messages; the master of a centralised barrier
    has most. By Little's law the output buffer limits the rate: it holds a number of multi-event
    packets, each at least for its processing time. It cannot hold a packet that is larger than the
    buffer.
    """
    scenario, others = push.scenario, push.nodes - 1
    barriers_s = push.barriers * int(barrier.messages.max()) * scenario.hosts.message_cost
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
    """Return conditions for the closed form of phases that end after a number of writes."""
    switch, plan = push.scenario.network.switch, found.schedule
    late = unmodelled_s(push) * push.slots / found.length_s
    has_messages = push.barrier not in ("none", "network", "ideal")
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
            "also wait for a packet in its direction, so that credits allow a lower rate than the "
            "formula",
        ),
        Condition(
            "requests are answered at once" if push.is_paced else "processors are idle",
            late <= TOLERANCE,
            f"{late_in_words}: phases may last {100 * late:.2g} % longer than by the formula; "
            "simulate the system",
        ),
    ]


def unmodelled_s(push: Push) -> float:
    """Return the estimated time by which the formula for a phase of nodes in step is too short (s).

    Messages queue behind others at processors. Without separate virtual lanes, messages also queue
    behind data to the same node if random latency lets data overtake them: one transfer in N phases
    for each level of the barrier tree. With builder pacing, a barrier message waits for half a
    packet, on average, at each level. In phase N/2 of an even N, pairs of nodes write to each
    other, and an answer waits for one transfer. If N is a power of two, a tournament or
    dissemination barrier without random delays releases both nodes of a pair at different times: no
    answer waits.
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
    """Return why phases without a barrier of all nodes after each phase have no exact formula."""
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


def _barrier(push: Push) -> Barrier:
    """Return the cost of the barriers of a scenario."""
    if push.barrier == "network":
        return network_barrier(push.crossing_s, push.messages)
    hosts, between = push.traffic.hosts.tolist(), push.traffic.between
    closes = push.barrier == "neighbour" and push.scenario.building.keeps_order
    return barriers_of(
        CLOSING if closes else push.barrier,
        push.groups,
        push.messages,
        lambda one, other: between(hosts[one], hosts[other]),
    )


def _round(push: Push, barrier: Barrier) -> Round:
    """Return the round for phases that end after a number of writes."""
    found = schedule(push, barrier)
    if not push.has_barrier_each_phase:
        return _out_of_step(push, barrier, found)
    if push.in_step:
        return _in_step(push, barrier, found, 0)
    return _in_groups(push, barrier, found)


def schedule(push: Push, barrier: Barrier) -> Schedule:
    """Return the times of all phases without random delays. Copies within a node take time; a phase
    in which a node sends to an empty slot takes none. Flows on a shared link take at least the sum
    of their times, exactly the sum if they are equal and share one link (tests `Conflicts.*`)."""
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
        begun_s = np.where(remote, barrier.begins_s, barrier.released_s)
        entered_s = begun_s + np.where(remote, asking_s + shared_s, still_s)
        for column, nodes in zip(columns.T, together, strict=True):
            of_set_s, report_s = entered_s[:, nodes], barrier.report_s[nodes]
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
    """Return the nodes of each barrier group and, with several groups, a last set of all nodes."""
    return push.groups + ([np.arange(push.nodes)] if len(push.groups) > 1 else [])


def _in_step(push: Push, barrier: Barrier, plan: Schedule, set_index: int) -> Round:
    """Return the round for one set of nodes with a barrier after each phase. A phase lasts as long
    as its slowest node needs from one release to the next. That node has the most bytes, the last
    release or a shared link. Random delays are added for the slowest node."""
    nodes = _sets(push)[set_index]
    report_s, released_s = barrier.report_s[nodes], barrier.released_s[nodes]
    kinds = {remote: push.chance(1, remote) for remote in (True, False)}
    usual = [(kinds[remote], entered_s[nodes]) for remote, entered_s in plan.samples]
    added_s = np.mean([_added_s(chance, entered_s + report_s) for chance, entered_s in usual])
    late_s = np.mean([_added_s(chance, entered_s) for chance, entered_s in usual])
    mean_s = np.mean([chance.mean_s for chance, _ in usual])
    length_s = float(plan.length_s[set_index] + added_s)
    last_s = float(plan.last_s[set_index] + late_s)
    waiting_s = last_s - float(plan.entered_s[set_index] + mean_s)
    releasing_s = length_s + float(released_s.mean()) - last_s
    return Round(length_s * push.slots, waiting_s, releasing_s, plan)


def _in_groups(push: Push, barrier: Barrier, plan: Schedule) -> Round:
    """Return bounds of a round in which each group has barriers of its own. All groups build
    equally many events, so the slowest group gives the lower bound. If builder units set the pace,
    nodes also wait as on a ring. Then the round with all nodes in step is the upper bound, because
    no node ends a phase later than it would there."""
    one = _in_step(push, barrier, plan, _slowest_group(push, plan))
    if not push.is_paced:
        return one
    all_s = _in_step(push, barrier, plan, len(push.groups)).length_s
    length_s = max(one.length_s, paced_round_s(push, _own_s(push, plan)))
    return Round(length_s, one.waiting_s, one.releasing_s, plan, max(length_s, all_s))


def _slowest_group(push: Push, found: Schedule) -> int:
    """Return the group with the longest phases without random delays. Of equal groups the largest
    is chosen, as its slowest node has the longest random delay."""
    ranks = [(round(float(found.length_s[n]), 12), len(g)) for n, g in enumerate(push.groups)]
    return ranks.index(max(ranks))


def _own_s(push: Push, found: Schedule) -> Times:
    """Return a node's time for all its phases without waiting for others, shape (nodes,). With
    several builder-paced phases in flight, control messages overlap with earlier writes."""
    if push.is_paced and push.scenario.building.phases_under_way > 1:
        return push.copy_s + (push.nodes - 1) * push.alone_s
    return found.own_s


def _added_s(chance: Chance, times_s: Times) -> float:
    """Return the time that random delays add to the slowest node."""
    return chance.slowest_s(times_s) - float(times_s.max())


def _out_of_step(push: Push, barrier: Barrier, plan: Schedule) -> Round:
    """Return a lower bound of the round without a barrier, with slack, or with one barrier in k
    phases. Nodes then fall out of step and contend for links. The bound is the longer of the
    slowest node's time for all phases and the time of all flows on the most loaded link."""
    building, own_s = push.scenario.building, _own_s(push, plan)
    if not push.waits_at_barriers:
        if not push.is_paced:
            round_s = float(own_s.max()) + push.chance(push.slots).mean_s
        elif building.phases_under_way == 1:
            round_s = paced_round_s(push, own_s)
        else:
            round_s = float(own_s.max())
        return Round(max(round_s, plan.busiest_s), 0.0, 0.0, plan)
    k, nodes = building.phases_per_barrier, push.groups[_slowest_group(push, plan)]
    chance = push.chance(k)
    entered_s = (barrier.begins_s + own_s * k / push.slots)[nodes]
    step_s = chance.slowest_s(entered_s + barrier.report_s[nodes])
    last_s = chance.slowest_s(entered_s)
    waiting_s = last_s - float(entered_s.mean()) - chance.mean_s
    releasing_s = step_s + float(barrier.released_s[nodes].mean()) - last_s
    return Round(max(step_s * push.barriers, plan.busiest_s), waiting_s, releasing_s, plan)
