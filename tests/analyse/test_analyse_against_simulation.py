"""The closed forms against the packet-level simulation, where both have to agree."""

from typing import Any

import pytest

from daqloom.deployment.scenarios import load
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.methods import methods

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
        {"network.links.source.rate": "10 Gb/s", "event.rate": "6 kHz"},  # below the uplink's
        {"network.links.access.rate": "100 Gb/s", "builders.units": 8},
    ],
    ids=str,
)
def test_periodic_events_peak_within_one_percent_of_the_exact_sum(overrides) -> None:
    scenario = atlas(**overrides)
    formula = methods.analyse(scenario)
    assert formula.analysis["exact"]["valid"]
    assert peak(methods.simulate(scenario)) == pytest.approx(peak(formula), rel=0.01)


LINKS = {"source": "25 Gb/s", "uplink": "275 Gb/s", "access": "25 Gb/s"}
OVERCOMMITTED: dict[str, Any] = {f"network.links.{link}.rate": bps for link, bps in LINKS.items()}
OVERCOMMITTED |= {f"network.links.{link}.delay": "0.5 us" for link in LINKS}
OVERCOMMITTED |= {"event.size": "11 MB", "event.rate": "200 Hz", "event.arrivals": "deterministic"}
OVERCOMMITTED |= {"readout.units": 11, "builders.units": 1, "building.concurrent_events": 1}
OVERCOMMITTED |= {"transport.congestion": "static", "transport.static_window": "87.5 kB"}
OVERCOMMITTED |= {"run.duration": "10 ms", "run.warmup": "0 s"}
"""11 senders of 1 MB each; one receiver asks some of them at a time and keeps 87.5 kB under way."""


@pytest.mark.parametrize("requested", [2, 3, 5, 11])
@pytest.mark.parametrize("window", ["87.5 kB", "30 kB"])
def test_windows_and_requests_cap_the_peak(requested: int, window: str) -> None:
    changed = {"building.outstanding_fragments": requested, "transport.static_window": window}
    scenario = load("atlas-lab", OVERCOMMITTED | changed)
    formula, simulated = methods.analyse(scenario), peak(methods.simulate(scenario))
    assert formula.analysis["exact"]["valid"]
    assert peak(formula) == formula.analysis["back_to_back"]["value_bytes"]
    # The last frame of a window is short, and a frame is in the switch as a whole.
    assert simulated == pytest.approx(peak(formula), rel=0.02, abs=2 * 1518)
    assert not formula.analysis["published"]["valid"]


def test_one_sender_needs_no_buffer_and_too_few_builders_more_than_the_formula() -> None:
    scenario = load("atlas-lab", OVERCOMMITTED | {"building.outstanding_fragments": 1})
    assert peak(methods.analyse(scenario)) == 0
    assert peak(methods.simulate(scenario)) <= 2 * 1518
    scenario = atlas(**{"builders.units": 18, "run.duration": "30 ms"})
    formula = methods.analyse(scenario)
    assert formula.analysis["exact"]["failing"] == "overlapping events ≤ builders"
    assert peak(methods.simulate(scenario)) > 1.2 * peak(formula)


@pytest.mark.parametrize(
    "cap", [{"building.outstanding_fragments": 5}, {"transport.static_window": "20 kB"}], ids=str
)
def test_capped_ports_of_many_builders_hold_no_more_than_the_bound(cap: dict[str, Any]) -> None:
    scenario = atlas(**cap)
    formula = methods.analyse(scenario)
    assert formula.analysis["exact"]["failing"] == "one event in capped ports"
    held = peak(methods.simulate(scenario))
    assert 0.7 * peak(formula) < held < peak(formula)


def test_the_first_event_takes_the_unloaded_latency_and_a_burst_fills_its_ring() -> None:
    scenario = atlas()
    simulated = methods.simulate(scenario).metric("collection_latency_s.min")
    expected = methods.analyse(scenario).metric("collection_latency_s.min")
    assert simulated == pytest.approx(expected, 1e-3)
    scenario = load("lossless-switch-all-to-one", {"run.duration": "1.5 s"})
    formula, simulated = methods.analyse(scenario), methods.simulate(scenario)
    assert peak(simulated) == pytest.approx(peak(formula), rel=0.01)
    expected = pytest.approx(formula.metric("collection_latency_s.min"), rel=1e-3)
    for statistic in ("min", "max"):
        assert simulated.metric(f"collection_latency_s.{statistic}") == expected
    assert simulated.metric("packets_dropped") == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_events_hold_no_more_than_events_back_to_back(seed: int) -> None:
    scenario = atlas(**{"event.arrivals": "poisson", "event.rate": "16 kHz"})
    bound = methods.analyse(scenario).analysis["back_to_back"]
    assert bound["valid"]
    held = peak(methods.simulate(scenario, seed=seed))
    packets = scenario.readout.units * scenario.builders.units
    # Replies of two events share the uplink packet by packet, not event by event.
    assert peak(methods.analyse(scenario)) < held <= bound["value_bytes"] + packets * 1518


def held_in(model: str, level: str = "tor", **keys: Any) -> dict[str, Any]:
    """A switch whose limits are the given ones alone."""
    alone: dict[str, dict[str, Any]] = {
        "drop-tail": {"queue_packets": 0},
        "shared-memory": {"cell_size": "0 B", "cell_metadata": "0 B"},
        "software": {"packet_cost": "0 s", "batch_cost": "0 s"},
    }
    table = {"model": model} | alone.get(model, {}) | keys
    return {f"network.switch.{level}.{key}": value for key, value in table.items()}


CELLS = {"cell_size": "256 B", "cell_metadata": "64 B"}


# The port of the youngest event holds h = 5.078 MB = 3348 frames while the others hold 47.65 MB:
# an exact peak of 52.73 MB (tests/analyse/test_analyse.py). The first value of each is below what
# the events need, the second above.
@pytest.mark.parametrize(
    ("model", "key", "below", "above", "fixed"),
    [
        *((model, "port_limit", "5 MB", "5.1 MB", {}) for model in ("drop-tail", "voq")),
        *((model, "buffer", "52 MB", "53 MB", {}) for model in ("drop-tail", "voq")),
        ("drop-tail", "queue_packets", 3330, 3370, {}),
        # A port that holds h needs h/alpha of the pool free: 64 MB - 52.73 MB = 5.078 MB/0.4506.
        ("shared-memory", "alpha", 0.44, 0.46, {"buffer": "64 MB"}),
        # Frames of 1518 B take 6 cells of 256 B and one for the metadata, 1.18 times as much:
        # (52.73 + 5.078) MB·1.18 = 68.3 MB with alpha 1.
        ("shared-memory", "buffer", "67 MB", "69 MB", CELLS),
        # A ring empties into 512 descriptors, a paced one does not.
        ("software", "queue_packets", 2800, 2870, {}),
        ("software", "queue_packets", 3300, 3400, {"pace": "24 Gb/s"}),
        # 65.1 million frames a second, and half as many acknowledgements of 20 builders' 2 million.
        ("software", "packet_cost", "14 ns", "10 ns", {"queue_packets": 5000}),
        # All sources send 4.8 Tb/s into 800 Gb/s: 5/6 of an event waits in the core, 4.368 MB.
        ("drop-tail", "port_limit", "4 MB", "4.4 MB", {"level": "core"}),
    ],
)
def test_a_peak_that_the_switches_cannot_hold_is_not_called_exact(model, key, below, above, fixed):
    for value, is_exact in ((below, False), (above, True)):
        scenario = atlas(**held_in(model, **{key: value}, **fixed))
        formula = methods.analyse(scenario)
        assert formula.analysis["exact"]["valid"] is is_exact
        assert any("drops" in warning for warning in formula.warnings) is not is_exact
        assert (methods.simulate(scenario).metrics["packets_dropped"] == 0) is is_exact


@pytest.mark.parametrize(
    "system",
    [
        {"event.arrivals": "poisson"} | held_in("drop-tail", buffer="53 MB"),
        {"event.size_distribution": "gamma"} | held_in("drop-tail", port_limit="5.2 MB"),
        {"building.assignment": "random"} | held_in("drop-tail", port_limit="5.2 MB"),
        {"network.links.uplink.count": 4, "network.links.uplink.rate": "200 Gb/s"}
        | held_in("voq", port_limit="1.5 MB"),
    ],
    ids=str,
)
def test_switches_that_hold_regular_events_alone_may_drop(system: dict[str, Any]) -> None:
    scenario = atlas(**({"run.duration": "20 ms"} | system))
    assert any("drops are possible" in warning for warning in methods.analyse(scenario).warnings)
    assert methods.simulate(scenario).metric("packets_dropped")
