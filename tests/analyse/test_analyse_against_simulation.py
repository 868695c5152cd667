"""The closed forms against the packet-level simulation, where both have to agree."""

from __future__ import annotations

from typing import Any

import pytest

from daqloom import methods
from daqloom.result import Result
from daqloom.scenario import Scenario
from daqloom.topology.loaded import load

PERIODIC: dict[str, Any] = {
    "event.arrivals": "deterministic",
    "building.assignment": "round-robin",
    "transport.congestion": "static",
    "transport.static_window": "8 MB",
    "transport.receive_window": "8 MB",
}


def atlas(**overrides: Any) -> Scenario:
    """The ATLAS rack for long enough to settle: a few times S/O."""
    times = {"run.duration": "8 ms", "run.warmup": "4 ms"}
    return load("atlas-lab", PERIODIC | times | overrides)


def peak(result: Result) -> float:
    held = result.metric("buffer_peak_bytes.tor")
    assert held is not None
    return held


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"network.mtu": "9000 B"},
        {"transport.timestamps": False},
        {"event.rate": "1 kHz"},  # one event at a time
        {"event.rate": "18 kHz"},  # 96 % of what the links carry
        {"event.size": "2 MB"},
        {"builders.units": 21},  # just enough for the 20.4 events that overlap
        {"readout.units": 600},
        {"network.links.uplink.rate": "400 Gb/s", "event.rate": "6 kHz"},
        {
            "network.links.source.rate": "10 Gb/s",
            "event.rate": "6 kHz",
        },  # slower than the uplink
        {"network.links.access.rate": "100 Gb/s", "builders.units": 8},
    ],
    ids=str,
)
def test_periodic_events_peak_within_one_percent_of_the_exact_sum(
    overrides: dict[str, Any],
) -> None:
    scenario = atlas(**overrides)
    formula = methods.analyse(scenario)
    assert formula.analysis["exact"]["valid"]
    assert peak(methods.simulate(scenario)) == pytest.approx(peak(formula), rel=0.01)


def test_the_first_event_takes_the_unloaded_latency() -> None:
    scenario = atlas()
    simulated = methods.simulate(scenario).metric("collection_latency_s.min")
    assert simulated == pytest.approx(
        methods.analyse(scenario).metric("collection_latency_s.min"), 1e-3
    )


def test_the_all_to_one_burst_fills_its_ring_and_drains_as_the_formulas_say() -> None:
    scenario = load("lossless-switch-all-to-one", {"run.duration": "1.5 s"})
    formula, simulated = methods.analyse(scenario), methods.simulate(scenario)
    assert peak(simulated) == pytest.approx(peak(formula), rel=0.01)
    for statistic in ("min", "max"):
        assert simulated.metric(f"collection_latency_s.{statistic}") == pytest.approx(
            formula.metric("collection_latency_s.min"), rel=1e-3
        )
    assert simulated.metric("packets_dropped") == 0


def test_too_few_builders_hold_more_than_the_formula_and_it_says_so() -> None:
    scenario = atlas(**{"builders.units": 18, "run.duration": "30 ms"})
    formula = methods.analyse(scenario)
    assert formula.analysis["exact"]["failing"] == "overlapping events ≤ builders"
    assert peak(methods.simulate(scenario)) > 1.2 * peak(formula)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_events_hold_no_more_than_events_back_to_back(seed: int) -> None:
    scenario = atlas(**{"event.arrivals": "poisson", "event.rate": "16 kHz"})
    bound = methods.analyse(scenario).analysis["back_to_back"]
    assert bound["valid"]
    held = peak(methods.simulate(scenario, seed=seed))
    packets = scenario.readout.units * scenario.builders.units
    # Replies of two events share the uplink packet by packet, not event by event.
    assert peak(methods.analyse(scenario)) < held <= bound["value_bytes"] + packets * 1518
