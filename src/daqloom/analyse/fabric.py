"""Evaluates all closed forms of an event builder on a fabric."""

import math
import time
from typing import Any

from daqloom.analyse.condition import Condition, first_failing
from daqloom.analyse.fabric_answer import Answer, check_connected, of_network, rates_hz, written
from daqloom.analyse.fabric_barrier import Barrier
from daqloom.analyse.fabric_conditions import of_phases, of_schedule
from daqloom.analyse.fabric_daqpipe import Pipe, daqpipe
from daqloom.analyse.fabric_push import Push
from daqloom.analyse.fabric_shift import Schedule, by_count, fence, schedule
from daqloom.analyse.fabric_traffic import traffic
from daqloom.analyse.fabric_windows import by_clock
from daqloom.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.models import Scenario
from daqloom.scenario.quantities import RATE
from daqloom.topology.cabled import cables
from daqloom.topology.loaded import override


def analyse_fabric(scenario: Scenario) -> Result:
    """Evaluate all closed forms of `scenario`; this takes milliseconds and no random numbers.

    A formula outside its conditions gives a bound, marked in `analysis` with the first condition
    that fails and in `warnings` with a sentence for each. Raises ScenarioError where fabric, nodes
    and routes do not fit together.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    answer = _answer(scenario)
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        assumed=scenario.assumed(),
        method="analyse",
        metrics=answer.metrics,
        analysis={
            name: entry | _validity(answer.conditions[name]) if name in answer.conditions else entry
            for name, entry in answer.analysis.items()
        },
        engine={"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu},
        warnings=traffic(scenario).warnings
        + [
            f"analysis.{name}: {condition.sentence}"
            for name, conditions in answer.conditions.items()
            for condition in conditions
            if not condition.holds
        ],
    )


def _answer(scenario: Scenario) -> Answer:
    scenario = _with_one_rate(scenario)
    if scenario.building.protocol == "daqpipe":
        return daqpipe(Pipe(scenario))
    if not scenario.folded:
        raise ScenarioError(
            f"{scenario.name}: linear shifting with units that are not folded has no closed form; "
            "simulate it, or put a readout and a builder unit on each host"
        )
    push = Push(scenario)
    return _by_clock(push) if scenario.building.change == "window" else _by_count(push)


def _with_one_rate(scenario: Scenario) -> Scenario:
    """Return the scenario with the one rate of its cables. Raises ScenarioError."""
    if not scenario.network.links.are_alike:
        raise ScenarioError(
            f"{scenario.name}: network.links has cables that differ from the others, and closed "
            "forms need one rate and one delay; leave host, spine, core and named out, or simulate"
        )
    if scenario.network.links.rate and scenario.network.shape != "cables":
        return scenario
    fabric, _ = cables(scenario)
    rates = sorted({cable.rate_bps for cable in fabric.cables})
    if len(rates) > 1:
        raise ScenarioError(
            f"{scenario.name}: cables run at {RATE.format(rates[0])} to {RATE.format(rates[-1])}, "
            "and closed forms need one rate; set network.links.rate, or simulate"
        )
    return override(scenario, {"network.links.rate": RATE.format(rates[0])})


def _by_count(push: Push) -> Answer:
    check_connected(push.scenario, push.traffic)
    gate = fence(push)
    found = by_count(push, gate)
    busy = busy_s(push, gate, found.schedule)
    if push.in_step:
        busy["schedule"] = float(found.schedule.links_s.sum())
    bounds = rates_hz(push.scenario, push.events, busy)
    round_s = max(found.length_s, busy["processor"], busy.get("source", 0.0))
    metrics = _shift_metrics(push, push.events / round_s, bounds)
    control_s = push.barriers * push.messages.cost_s * float(gate.messages.mean())
    discards = metrics["event_rate_hz"] < push.events / round_s
    if not discards:  # else nobody knows how often a phase has nothing to send
        metrics["phase_s"] = round_s / push.slots
        metrics["processor_share"] = (push.processor_s + control_s) / round_s
        if push.barriers:
            metrics["barrier_rate_hz"] = push.barriers / round_s
    if push.barriers and not discards and round_s == found.length_s:  # else sources hold some up
        metrics["barrier_share"] = push.barriers * (found.waiting_s + found.releasing_s) / round_s
        metrics["barrier_s"] = {"waiting": found.waiting_s, "releasing": found.releasing_s}
    phase = {
        "value_s": found.length_s / push.slots,
        "links_s": float(found.schedule.links_s.mean()),
        "own_s": float(found.schedule.own_s.max()) / push.slots,
    }
    barrier = {"value_s": gate.cost_s, "messages": int(gate.messages.sum()) // 2}
    return Answer(
        metrics,
        {"phase": phase, "barrier": barrier} | _of_schedule(push, found.schedule, bounds),
        {"phase": of_phases(push, found.schedule)},
    )


def _by_clock(push: Push) -> Answer:
    check_connected(push.scenario, push.traffic)
    gate = fence(push)
    found, plan = by_clock(push), schedule(push, gate)
    bounds = rates_hz(push.scenario, push.events, busy_s(push, gate, plan))
    rate_hz = min(push.events * found.meps / found.length_s, bounds.get("source", math.inf))
    metrics = _shift_metrics(push, rate_hz, bounds)
    metrics["phase_s"] = found.length_s / push.slots
    metrics["idle_share"] = metrics["dummy_share"]
    metrics["processor_share"] = push.processor_s * rate_hz / push.events
    window = {"value_s": found.length_s / push.slots, "multi_event_packets": found.meps}
    return Answer(
        metrics,
        {"window": window} | _of_schedule(push, plan, bounds),
        {"window": [*found.conditions, *of_schedule(plan)]},
    )


def _shift_metrics(push: Push, rate_hz: float, bounds: dict[str, float]) -> dict[str, Any]:
    """Return the metrics of linear shifting, for events that the output buffer lets through."""
    rate_hz = min(rate_hz, bounds.get("output_buffer", math.inf))
    throughput_bps = 8 * push.bytes_a_round * rate_hz / push.events
    return {
        "event_rate_hz": rate_hz,
        "event_rate_bound_hz": min(bounds.values()),
        "throughput_bps": throughput_bps,
        **written(rate_hz, throughput_bps),
        "node_throughput_bps": throughput_bps / push.nodes,
        "dummy_share": 1 - push.nodes / push.slots,
    }


def _of_schedule(push: Push, plan: Schedule, bounds: dict[str, float]) -> dict[str, dict[str, Any]]:
    phases = {
        "phases": push.slots,
        "conflicting": plan.conflicting,
        "worst_flows": int(plan.flows.max(initial=0)),
    }
    largest = push.link.message(int(push.mfps.max()))
    return {"schedule": phases} | of_network(push.messages, push.traffic, largest, bounds)


def _validity(conditions: list[Condition]) -> dict[str, Any]:
    failing = first_failing(conditions)
    return {"valid": True} if failing is None else {"valid": False, "failing": failing.name}


def busy_s(push: Push, gate: Barrier, plan: Schedule) -> dict[str, float]:
    """Return the busy time of each part in a round; the longest bounds the rate.

    A round brings each of N nodes to each other: so a node's link, its PCIe, its memory and the
    credits of its link have N − 1 flows of it. Of all cables the fullest one counts, whatever the
    order of flows. A processor has the messages of its node, those of the barriers included; the
    master of a centralised one has most. The output buffer holds so many multi-event packets, each
    for as long as its processing takes at least (Little), and nothing that is larger than itself.
    """
    scenario, others = push.scenario, push.nodes - 1
    told_s = push.barriers * int(gate.messages.max()) * scenario.hosts.message_cost
    busy = {
        "host_link": others * float(push.wire_s.max()),
        "fabric_link": plan.busiest_s,
        "link_credits": others * float(push.credits_s.max()),
        "pcie": others * float(push.pcie_s.max()),
        "memory": others * float(push.memory_s.max()),
        "local_copy": float(push.copy_s.max()),
        "processor": push.processor_s + told_s,
    }
    if scenario.event.rate:
        busy["source"] = push.events / scenario.event.rate
    room = scenario.builders.buffer // int(push.mfps.sum())
    each_s = scenario.builders.processing_mean
    if each_s or not room:
        processing_s = push.meps * each_s
        busy["output_buffer"] = processing_s / room if room else float("inf")
    return busy
