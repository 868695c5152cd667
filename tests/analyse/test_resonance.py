"""Time-outs in step with events."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from daqloom.analyse.resonance import resonance
from daqloom.deployment.scenarios import load
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.methods import methods
from support.command import output

BURST = {
    "event.arrivals": "deterministic",
    "builders.units": 1,
    "building.concurrent_events": 1000,
    "readout.units": 20,
    "network.links.source.rate": "1 Gb/s",
    "network.links.uplink.rate": "20 Gb/s",
    "event.size": "800 kB",
    "transport.congestion": "static",
    "transport.static_window": "1 MB",
    "run.warmup": "1 s",
    "run.duration": "11 s",
}
"""20 Gb/s into 10 Gb/s and a ring of 256 packets, 40 of 560 dropped; a time-out takes 200 ms."""
BUSY_S = 560 * (1448 + 52 + 38) * 8 / 10e9
"""Packets on the builder's link with each event: 28 from each source, the last one not full."""


def every(period_ms: float, **changes: object) -> Scenario:
    more = {key.replace("__", "."): value for key, value in changes.items()}
    rate = {"event.rate": f"{1e3 / period_ms:.9f} Hz"}
    return load("incast-rack", BURST | rate | more)


def mean_s(result: Result) -> float:
    return float(result.metric("collection_latency_s.mean") or 0)


def test_a_timeout_that_resonates_with_events_lasts_longer_and_gives_a_warning() -> None:
    # Ten periods are 201 ms: rto_min and about a round trip.
    resonant = methods.simulate(every(20.1), seed=1)
    apart = methods.simulate(every(20.5), seed=1)
    ticks = methods.simulate(every(20.1, transport__timer_tick="4 ms"), seed=1)
    # A lost packet is sent again once, a time-out later, and the event is whole.
    assert 0.2 < mean_s(apart) < 0.23
    assert 0.2 < mean_s(ticks) < 0.24
    assert mean_s(resonant) > 1.5 * mean_s(apart)
    (warning,) = [each for each in resonant.warnings if "resonate" in each]
    assert "20.1 ms apart" in warning
    assert "201 ms later" in warning
    for result in (apart, ticks):
        assert result.metric("retransmission_timeouts")
        assert not any("resonate" in each for each in result.warnings)


@pytest.mark.parametrize(
    ("offset_s", "resonates"),
    [(-1.1 * BUSY_S, False), (-0.9 * BUSY_S, True), (1.9 * BUSY_S, True), (2.1 * BUSY_S, False)],
)
@pytest.mark.parametrize("periods", [1, 10])
def test_the_period_decides(offset_s: float, resonates: bool, periods: int) -> None:
    period_ms = 1e3 * (0.2 + offset_s) / periods
    found = resonance(every(period_ms))
    assert (found is not None) == resonates
    if found:
        assert found.periods == periods
        assert found.period_s == pytest.approx(period_ms / 1e3)
    assert resonance(every(period_ms, event__arrivals="poisson")) is None
    assert resonance(every(period_ms, transport__timer_tick="4 ms")) is None


def test_of_two_builders_each_has_every_second_event_and_load_is_no_resonance() -> None:
    assert resonance(every(20)) is not None
    assert resonance(every(10, builders__units=2)) is not None
    assert resonance(every(9.5, builders__units=2)) is None  # 11 · 19 ms are 209 ms
    assert resonance(every(2.9e3 * BUSY_S)) is None


@settings(max_examples=50, deadline=None)
@given(period_ms=st.floats(3, 300))
def test_no_period_is_missed(period_ms: float) -> None:
    offsets_s = [n * period_ms / 1e3 - 0.2 for n in range(1, 1 + round(300 / 3))]
    # On an edge, rounding decides.
    edges_s = (-BUSY_S, 2 * BUSY_S)
    assume(all(abs(offset - edge) > 1e-12 for offset in offsets_s for edge in edges_s))
    within = any(-BUSY_S <= offset_s <= 2 * BUSY_S for offset_s in offsets_s)
    assert (resonance(every(period_ms)) is not None) == within


def test_compare_knows_it() -> None:
    arguments = [f"--set={key}={value}" for key, value in BURST.items()]
    rate = "--set=event.rate=49.7512438 Hz"
    told = output("compare", "incast-rack", *arguments, rate, "--duration", "1 s")
    assert "note: timeouts may resonate" in told
