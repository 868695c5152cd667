"""Closed forms for one rack, evaluated as a result."""

from typing import Any

from daqloom.analyse.answer import Answer, Condition, evaluate, first_failing
from daqloom.analyse.bottleneck import Incast, bandwidth_delay, incast
from daqloom.analyse.bounds import event_rate_bounds_hz, unloaded_latency_s
from daqloom.analyse.departures import departures
from daqloom.analyse.drops import any_events_fit, regular_events_fit
from daqloom.analyse.peak import back_to_back, exact, published_peak
from daqloom.analyse.system import System
from daqloom.results.result import Result
from daqloom.scenario import Scenario


def analyse(scenario: Scenario) -> Result:
    """Evaluate all closed forms for a rack, in milliseconds and without random numbers. A formula
    whose conditions fail still gives a value, which `analysis` and `warnings` mark."""
    return evaluate(scenario, _answer)


def _answer(scenario: Scenario) -> Answer:
    system, builders = System(scenario), scenario.builders.units
    in_turn = scenario.building.assignment == "round-robin"
    rates_bps = system.sent_at_once_bps, system.output_bps
    windows = incast(system.under_way_bytes, *rates_bps, system.rtt_s)
    by_rate = exact(system.triangle, system.rate_hz, builders, windows.peak_bytes)
    peaks = {
        "exact": by_rate,
        "published": published_peak(system.triangle, system.rate_hz, by_rate.peak_bytes),
        "back_to_back": back_to_back(system.triangle, builders, in_turn, windows.peak_bytes),
    }
    window = system.first_window_bytes
    replies = [system.reply(min(fragment, window)) for fragment in system.fragments_bytes]
    first_bytes = sum(reply.frame_bytes for reply in replies)
    bdp = bandwidth_delay(system.rtt_s, system.output_bps, builders, first_bytes)
    bounds = event_rate_bounds_hz(system)
    of_form = {name: peak.conditions for name, peak in peaks.items()}
    of_form["exact"] += (_sustainable_rate(system.rate_hz, bounds),)
    of_form |= {"bdp": bdp.conditions, "incast": windows.conditions}
    failing = [
        f"analysis.{name}: {condition.sentence}"
        for name, conditions in of_form.items()
        if (condition := first_failing(conditions))
    ]
    fits = list(regular_events_fit(system, windows))
    is_regular = (
        system.is_in_turn
        and scenario.event.arrivals == "deterministic"
        and scenario.network.links.uplink.count == 1
        and first_failing(of_form["exact"]) is None
    )
    of_form["exact"] += tuple(fits)
    of_form["published"] += tuple(fits)
    if not is_regular and first_failing(fits) is None:
        fits = list(any_events_fit(system, windows))
    entries = {name: {"value_bytes": p.peak_bytes, "events": p.events} for name, p in peaks.items()}
    analysis: dict[str, dict[str, Any]] = {
        **entries,
        "bdp": {
            "value_bytes": bdp.switch_bytes,
            "per_port_bytes": bdp.per_port_bytes,
            "rtt_s": system.rtt_s,
        },
        "incast": _incast(system, windows),
        "rate_bounds_hz": bounds,
        "overhead": {
            "event_frame_bytes": system.event.frame_bytes,
            "packets": system.event.packets,
            "mean_frame_bytes": system.event.mean_frame_bytes,
            "wire_share": system.event.wire_share,
        },
    }
    metrics = _metrics(system, by_rate.peak_bytes, windows, bounds)
    drops = [condition.sentence for condition in fits if not condition.holds]
    return Answer(metrics, analysis, of_form, [*failing, *departures(system), *drops])


def _sustainable_rate(rate_hz: float, bounds: dict[str, float]) -> Condition:
    lowest = min(bounds, key=bounds.__getitem__)
    return Condition(
        "f ≤ event_rate_bound",
        rate_hz <= bounds[lowest] * (1 + 1e-12),
        f"the event rate, {rate_hz / 1e3:.4g} kHz, has to stay below the highest that the system "
        f"sustains, {bounds[lowest] / 1e3:.4g} kHz (rate_bounds_hz.{lowest}): events wait before "
        "they are requested",
    )


def _metrics(
    system: System, peak_bytes: float, windows: Incast, bounds: dict[str, float]
) -> dict[str, Any]:
    links = [link for link in ("uplink", "access", "storage") if link in bounds]
    shares = {link: min(1.0, system.rate_hz / bounds[link]) for link in links}
    metrics: dict[str, Any] = {
        "event_rate_bound_hz": min(bounds.values()),
        "buffer_peak_bytes": {"tor": peak_bytes},
        "link_utilisation": {f"{link}.down": share for link, share in shares.items()},
    }
    if (buffer := system.port_buffer_bytes) is not None:
        metrics["incast_margin_bytes"] = buffer - windows.needed_bytes
    scenario = system.scenario
    if (storage := scenario.storage).units:
        stored_bits = 8 * scenario.event.size * storage.accepted
        metrics["stored_throughput_bps"] = system.rate_hz * stored_bits
    if not scenario.readout.message_cost and not scenario.builders.message_cost:
        metrics["collection_latency_s"] = {"min": unloaded_latency_s(system)}
    return metrics


def _incast(system: System, windows: Incast) -> dict[str, Any]:
    numbers: dict[str, Any] = {
        "value_bytes": windows.needed_bytes,
        "windows_bytes": windows.windows_bytes,
        "bdp_bytes": windows.bdp_bytes,
        "satisfied": True,
    }
    if (buffer := system.port_buffer_bytes) is not None:
        numbers |= {"buffer_bytes": buffer, "satisfied": windows.satisfied_by(buffer)}
    return numbers
