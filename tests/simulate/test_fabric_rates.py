"""Event rates: events built in the time that is counted, by every protocol."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daqloom.deployment.scenarios import load, override
from daqloom.scenario import Scenario
from daqloom.study.methods import methods
from support.small_fabrics import INFINIBAND, SMALL, analysed, daqpipe, metrics, simulated, small

DAQPIPE = {"building__credits": 2, "building__parallel_sends": 2}


@st.composite
def fabrics(draw: st.DrawFn) -> Scenario:
    """Some nodes, with windows of a fraction of a round to some rounds."""
    packing = draw(st.integers(1, 6000))
    common = {
        "network__hosts_per_leaf": draw(st.integers(1, 3)),
        "network__switch__radix": 8,
        "event__packing": packing,
        "event__fragment_sizes": draw(st.sampled_from(["fixed", "poisson"])),
        "builders__folded": draw(st.booleans()),
        "readout__streams": draw(st.integers(1, 3)),
        "hosts__message_cost": "200 ns",
        "run__warmup": f"{draw(st.integers(0, 300))} us",
        "run__duration": f"{draw(st.integers(301, 900))} us",
    }
    protocol = draw(st.sampled_from(["shift", "windows", "daqpipe"]))
    if protocol == "daqpipe":
        return daqpipe(**common, **DAQPIPE, building__mode=draw(st.sampled_from(["pull", "push"])))
    if protocol == "windows":
        return small(**common, building__change="window", building__window="50 us")
    return small(**common)


@settings(max_examples=30, deadline=None)
@given(fabrics())
def test_the_event_rate_is_events_built_over_the_time_counted(scenario: Scenario) -> None:
    found = simulated(scenario)
    window_s = scenario.run.duration - scenario.run.warmup
    assert found["event_rate_hz"] * window_s == pytest.approx(found["events_built"], rel=1e-9)
    assert found["events_built"] % scenario.event.packing == 0
    if scenario.event.fragment_sizes == "fixed":  # then payload is events times fragments
        nodes = scenario.network.hosts_per_leaf * scenario.network.leaves
        size = found["events_built"] * 100 * scenario.readouts(nodes) * scenario.readout.streams
        assert found["throughput_bps"] * window_s / 8 == pytest.approx(size, rel=1e-9)


@settings(max_examples=5, deadline=None)
@given(rate=st.integers(100, 4000), builders=st.integers(1, 4))
def test_the_event_rate_of_a_rack_is_events_built_over_the_time(rate: int, builders: int) -> None:
    event = {"event.size": "100 kB", "event.rate": f"{rate} Hz", "builders.units": builders}
    times = {"run.duration": "20 ms", "run.warmup": "3 ms"}
    found = simulated(override(Scenario(), event | times))
    assert found["event_rate_hz"] * 17e-3 == pytest.approx(found["events_built"], rel=1e-9)


def test_written_fragments_have_the_rate_before_events_are_built() -> None:
    # Four nodes: a round is a phase of copies within nodes, which takes next to no time, and three
    # in which all write to each other. At its end all four build.
    long = simulated(small(run__warmup="200 us", run__duration="2 ms"))
    round_s = 4 * long["phase_s"]
    # In the second round, between the copies and the last writes: two writes of each node.
    within = {"run__warmup": 1.2 * round_s, "run__duration": 1.8 * round_s}
    short = small(**{key: f"{1e9 * time_s:.0f} ns" for key, time_s in within.items()})
    found = simulated(short)
    assert found["events_built"] == found["event_rate_hz"] == found["throughput_bps"] == 0
    written = found["written_event_rate_hz"] * 0.6 * round_s
    assert written == pytest.approx(2 * 4096, rel=1e-3)
    sent_bytes = found["written_throughput_bps"] / 8 * 0.6 * round_s
    assert sent_bytes == pytest.approx(2 * 4 * 409_600, rel=1e-3)
    assert found["node_throughput_bps"] == pytest.approx(found["written_throughput_bps"] / 4)
    # After ten rounds both rates are known.
    assert long["event_rate_hz"] == pytest.approx(long["written_event_rate_hz"], rel=0.1)


STAR = {
    "network__leaves": 1,
    "network__spines": 1,
    "network__hosts_per_leaf": 8,
    "network__links__rate": "100 Gb/s",
    "event__fragment_size": "1 kB",
    "event__packing": 30_000,
    "readout__streams": 3,
}
"""Eight hosts on a switch that write 90 MB to each other in a phase."""
STAR_ROUND_S = 7 * 8 * 90e6 / 100e9
"""Least time of a round: seven of eight phases are writes of 7.2 ms over a link."""


def star(**changes: object) -> Scenario:
    of_network = ("network.", "transport.")
    fixed = {key: value for key, value in SMALL.items() if not key.startswith(of_network)}
    changed = {key.replace("__", "."): value for key, value in (STAR | changes).items()}
    return override(INFINIBAND, fixed | changed)


def test_a_run_of_a_phase_has_a_warning_with_a_longer_duration() -> None:
    short = star(run__duration="10 ms", run__warmup="2 ms")
    result = methods.simulate(short, seed=1)
    found = metrics(result)
    bound_hz = analysed(short)["event_rate_bound_hz"]
    # Eight MEPs of 30 000 events in a round.
    assert 0.98 * 8 * 30_000 / STAR_ROUND_S < bound_hz < 8 * 30_000 / STAR_ROUND_S
    # The 8 ms end within the round: nothing is built. A write that began in the warm-up counts as a
    # whole: two writes of 30 MB end in the time of one.
    assert found["events_built"] == found["event_rate_hz"] == 0
    assert found["written_event_rate_hz"] > 1.05 * bound_hz
    too_short, beyond = result.warnings
    assert "no rate of so short a run" in too_short
    assert "written_event_rate_hz" in beyond
    needed = re.search(r'run.duration = "(.+)" with run.warmup = "(.+)"', too_short)
    assert needed
    long = star(run__duration=needed[1], run__warmup=needed[2])
    counted_s = long.run.duration - long.run.warmup
    assert counted_s == pytest.approx(10 * STAR_ROUND_S, rel=0.3)  # of one phase it is an estimate


def test_a_run_shorter_than_a_round_has_a_warning_with_a_rate() -> None:
    # 20 of the 40 phases of a round, and none of its events.
    short = load("lhcb-10-percent", {"run.duration": "12 ms", "run.warmup": "1 ms"})
    (warning,) = methods.simulate(short, seed=1).warnings
    assert "use written_event_rate_hz, which is already meaningful" in warning
    few = small(run__warmup="70 us", run__duration="740 us")
    for scenario in (few, daqpipe(**DAQPIPE, run__warmup="200 us")):
        assert methods.simulate(scenario, seed=1).warnings == []
