"""All closed forms of one scenario, as a result."""

import time
from collections.abc import Sequence
from typing import Any

from daqloom.analyse.back_to_back import back_to_back
from daqloom.analyse.bdp import bandwidth_delay
from daqloom.analyse.bounds import event_rate_bounds_hz, unloaded_latency_s
from daqloom.analyse.condition import Condition, first_failing
from daqloom.analyse.departures import departures
from daqloom.analyse.exact import exact
from daqloom.analyse.incast import incast
from daqloom.analyse.published import published
from daqloom.analyse.system import System
from daqloom.result import Result
from daqloom.scenario import Scenario


def analyse(scenario: Scenario) -> Result:
    """Evaluate all closed forms of `scenario`; this takes milliseconds and no random numbers. A
    formula outside its conditions still gives its value, marked in `analysis` with the condition
    that fails and in `warnings` with a sentence."""
    wall, cpu = time.perf_counter(), time.process_time()
    system = System(scenario)
    answers = {
        "exact": _exact(system),
        "published": _published(system),
        "back_to_back": _back_to_back(system),
        "bdp": _bdp(system),
        "incast": _incast(system),
    }
    analysis = {
        name: numbers | _validity(conditions) for name, (numbers, conditions) in answers.items()
    }
    failing = [
        f"analysis.{name}: {condition.sentence}"
        for name, (_, conditions) in answers.items()
        if (condition := first_failing(conditions))
    ]
    peak = analysis["exact"]["value_bytes"]
    bounds = event_rate_bounds_hz(system)
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        assumed=scenario.assumed(),
        method="analyse",
        metrics=_metrics(system, analysis, bounds),
        analysis=analysis | {"rate_bounds_hz": bounds, "overhead": _overhead(system)},
        engine={"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu},
        warnings=[*failing, *departures(system, peak)],
    )


def _metrics(
    system: System, analysis: dict[str, dict[str, Any]], bounds: dict[str, float]
) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "event_rate_bound_hz": min(bounds.values()),
        "buffer_peak_bytes": {"tor": analysis["exact"]["value_bytes"]},
        "link_utilisation": {
            f"{link}.down": min(1.0, system.rate_hz / bounds[link]) for link in ("uplink", "access")
        },
    }
    buffer = system.port_buffer_bytes
    if buffer is not None:
        metrics["incast_margin_bytes"] = buffer - analysis["incast"]["value_bytes"]
    scenario = system.scenario
    if not scenario.readout.message_cost and not scenario.builders.message_cost:
        metrics["collection_latency_s"] = {"min": unloaded_latency_s(system)}
    return metrics


Answer = tuple[dict[str, Any], Sequence[Condition]]


def _exact(system: System) -> Answer:
    answer = exact(system.triangle, system.rate_hz, system.scenario.builders.units)
    return {"value_bytes": answer.peak_bytes, "events": answer.events}, answer.conditions


def _published(system: System) -> Answer:
    answer = published(system.triangle, system.rate_hz)
    return {"value_bytes": answer.peak_bytes, "events": answer.events}, answer.conditions


def _back_to_back(system: System) -> Answer:
    builders = system.scenario.builders
    answer = back_to_back(
        system.triangle, builders.units, system.scenario.building.assignment == "round-robin"
    )
    return {"value_bytes": answer.peak_bytes, "events": answer.events}, answer.conditions


def _bdp(system: System) -> Answer:
    first = sum(
        system.reply(min(fragment, system.first_window_bytes)).frame_bytes
        for fragment in system.fragments_bytes
    )
    answer = bandwidth_delay(system.rtt_s, system.output_bps, system.scenario.builders.units, first)
    return {
        "value_bytes": answer.switch_bytes,
        "per_port_bytes": answer.per_port_bytes,
        "rtt_s": system.rtt_s,
    }, answer.conditions


def _incast(system: System) -> Answer:
    answer = incast(system.under_way_bytes, system.input_bps, system.output_bps, system.rtt_s)
    numbers: dict[str, Any] = {
        "value_bytes": answer.needed_bytes,
        "windows_bytes": answer.windows_bytes,
        "bdp_bytes": answer.bdp_bytes,
        "satisfied": True,
    }
    buffer = system.port_buffer_bytes
    if buffer is not None:
        numbers |= {"buffer_bytes": buffer, "satisfied": answer.satisfied_by(buffer)}
    return numbers, answer.conditions


def _overhead(system: System) -> dict[str, float]:
    return {
        "event_frame_bytes": system.event.frame_bytes,
        "packets": system.event.packets,
        "mean_frame_bytes": system.event.mean_frame_bytes,
        "wire_share": system.event.wire_share,
    }


def _validity(conditions: Sequence[Condition]) -> dict[str, Any]:
    failing = first_failing(conditions)
    return {"valid": True} if failing is None else {"valid": False, "failing": failing.name}
