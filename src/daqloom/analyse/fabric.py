"""All closed forms of an event builder on a fabric, as a result."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from daqloom.analyse.condition import Condition, first_failing
from daqloom.analyse.fabric_bounds import busy_s
from daqloom.analyse.fabric_conditions import of_daqpipe, of_phases, of_schedule
from daqloom.analyse.fabric_daqpipe import Pipe
from daqloom.analyse.fabric_link import OnWire
from daqloom.analyse.fabric_messages import Messages
from daqloom.analyse.fabric_push import Push
from daqloom.analyse.fabric_shift import Schedule, by_count, fence, schedule
from daqloom.analyse.fabric_traffic import Traffic, traffic
from daqloom.analyse.fabric_windows import by_clock
from daqloom.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import RATE
from daqloom.topology.system import cabled, check_paths

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario


class Answer(NamedTuple):
    """What the closed forms of a protocol say."""

    metrics: dict[str, Any]
    analysis: dict[str, dict[str, Any]]
    conditions: dict[str, list[Condition]]
    """By the entry of `analysis` that asks for them."""


def analyse_fabric(scenario: FabricScenario) -> Result:
    """Every closed form of `scenario`; milliseconds, no random numbers.

    A formula outside its conditions gives a bound, marked in `analysis` with the first condition
    that fails and in `warnings` with a sentence for each. Raises ScenarioError where fabric, nodes
    and routes do not fit together.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    answer = _answer(scenario)
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
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


def _answer(scenario: FabricScenario) -> Answer:
    if scenario.nodes.protocol == "flows":
        raise ScenarioError(
            f"{scenario.name}: flows have no closed form; simulate them, or set nodes.protocol to "
            '"shift" or "daqpipe"'
        )
    scenario = _with_one_rate(scenario)
    if scenario.nodes.protocol == "daqpipe":
        return _daqpipe(Pipe(scenario))
    if not scenario.nodes.folded:
        raise ScenarioError(
            f"{scenario.name}: linear shifting with nodes.folded = false has no closed form; "
            "simulate it, or leave readout and builder units on the same nodes"
        )
    push = Push(scenario)
    return _by_clock(push) if scenario.shift.change == "window" else _by_count(push)


def _with_one_rate(scenario: FabricScenario) -> FabricScenario:
    """The same; that of imported cables, where they keep theirs, said. Raises ScenarioError."""
    if scenario.fabric.rate:
        return scenario
    fabric, _, _ = cabled(scenario.fabric)
    rates = sorted({cable.rate_bps for cable in fabric.cables})
    if len(rates) > 1:
        raise ScenarioError(
            f"{scenario.name}: cables of {RATE.format(rates[0])} to {RATE.format(rates[-1])}, and "
            "closed forms know one rate; set fabric.rate, or simulate"
        )
    return scenario.with_overrides({"fabric.rate": RATE.format(rates[0])})


def _by_count(push: Push) -> Answer:
    _check_paths(push.scenario, push.traffic)
    gate = fence(push)
    found = by_count(push, gate)
    busy = busy_s(push, gate, found.schedule)
    if push.in_step:
        busy["schedule"] = float(found.schedule.links_s.sum())
    bounds = _rates_hz(push.scenario, push.events, busy)
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
    _check_paths(push.scenario, push.traffic)
    gate = fence(push)
    found, plan = by_clock(push), schedule(push, gate)
    bounds = _rates_hz(push.scenario, push.events, busy_s(push, gate, plan))
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
    """What both ways of changing phases have; as many events as the output buffer lets through."""
    rate_hz = min(rate_hz, bounds.get("output_buffer", math.inf))
    throughput_bps = 8 * push.bytes_a_round * rate_hz / push.events
    return {
        "event_rate_hz": rate_hz,
        "event_rate_bound_hz": min(bounds.values()),
        "throughput_bps": throughput_bps,
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
    return {"schedule": phases} | _common(push.messages, push.traffic, largest, bounds)


def _daqpipe(pipe: Pipe) -> Answer:
    scenario, nodes = pipe.scenario, len(pipe.traffic.hosts)
    _check_paths(scenario, pipe.traffic)
    events = scenario.fragments.packing
    bounds = _rates_hz(scenario, events, pipe.busy_s())
    rate_hz = min(bounds.values())
    throughput_bps = 8 * int(pipe.fragments.sum()) * rate_hz / events
    processor_s = 2 * pipe.letters * pipe.messages.cost_s
    metrics = {
        "event_rate_hz": rate_hz,
        "event_rate_bound_hz": rate_hz,
        "throughput_bps": throughput_bps,
        "node_throughput_bps": throughput_bps / len(pipe.readouts),
        "collection_latency_s": {"min": float((pipe.told_s + pipe.collected_s).min())},
        "processor_share": processor_s * rate_hz / events / nodes,
    }
    largest = pipe.link.message(int(pipe.fragments.max()))
    slowest = min(bounds, key=lambda name: bounds[name])
    entries = {"event": {"value_s": float(pipe.collected_s.mean()), "limit": slowest}}
    return Answer(
        metrics,
        entries | _common(pipe.messages, pipe.traffic, largest, bounds),
        {"event": of_daqpipe(pipe)},
    )


def _common(
    messages: Messages, traffic: Traffic, largest: OnWire, bounds: dict[str, float]
) -> dict[str, dict[str, Any]]:
    link = messages.link
    payload = 8 * largest.payload
    return {
        "link": {
            "payload_bps": payload / max(link.wire_s(largest), link.credits_s(largest)),
            "headers_bps": payload / link.bytes_s(largest.bytes),
            "credits_bps": payload / link.credits_s(largest),
        },
        "message": {"value_s": messages.sent_s(messages.control, float(traffic.farthest))},
        "rate_bounds_hz": bounds,
    }


def _rates_hz(scenario: FabricScenario, events: int, busy: Mapping[str, float]) -> dict[str, float]:
    """So many events in the time that each part is busy with them; parts that never are have none.

    Raises ScenarioError where nothing limits the rate.
    """
    rates = {name: events / time_s for name, time_s in busy.items() if time_s > 0}
    if not rates.keys() - {"output_buffer"}:
        raise ScenarioError(
            f"{scenario.name}: a single node exchanges nothing and nothing limits its rate; take "
            "more nodes, or give nodes.local_rate"
        )
    return rates


def _check_paths(scenario: FabricScenario, traffic: Traffic) -> None:
    check_paths(scenario.name, traffic.paths, traffic.hosts, traffic.hosts)


def _validity(conditions: list[Condition]) -> dict[str, Any]:
    failing = first_failing(conditions)
    return {"valid": True} if failing is None else {"valid": False, "failing": failing.name}
