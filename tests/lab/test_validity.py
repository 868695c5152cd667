"""Judgement of a laboratory's metrics, by runs with known errors and by invented ones."""

from dataclasses import replace

import pytest

from daqloom._engine import Counters, latency_bucket
from daqloom.lab.laboratory import LabCount
from daqloom.lab.validity import Evidence, Halves, evidence_of, host_metrics, judge

FOUND: dict[str, object] = {
    "event_rate_hz": 45.0,
    "collection_latency_s": {"min": 0.05, "mean": 0.05, "p50": 0.05, "p99": 0.1, "max": 0.1},
    "buffer_peak_bytes": {"core": 6_000, "tor": 780_000},
    "packets_dropped": 0,
}
COUNT = LabCount({}, (0, 100_000), watched_s=2.0, late_s=0.1, punctual_peaks=(0, 95_000))


def kept(evidence: Evidence) -> set[str]:
    """Return the metrics of rate, mean, p99 and peak that are left."""
    judgement = judge(FOUND, evidence)
    if judgement.refusal:
        return set()
    latency = judgement.metrics.get("collection_latency_s", {})
    peak = {"peak"} if "buffer_peak_bytes" in judgement.metrics else set()
    return {"rate", *(latency.keys() & {"mean", "p99"})} | peak


ALL = {"rate", "mean", "p99", "peak"}
KNOWN = [
    # pressure, lateness, errors of mean, p99 and peak in percent
    (0.62, 0.073, 4.5, 38.6, 24.8),
    (0.51, 0.059, 0.9, -1.3, 2.3),
    (0.42, 0.065, 1.3, -1.3, 1.9),
    (0.23, 0.053, 4.5, 2.9, 15.5),
    (0.62, 0.040, 2.2, -1.3, 2.0),
    (0.41, 0.084, 6.3, 28.1, 31.8),
]
"""Runs of lab-rack, 13 s long, with up to one busy loop, against the simulation."""


@pytest.mark.parametrize(("pressure", "lateness", "mean", "p99", "peak"), KNOWN)
def test_the_metrics_left_of_runs_with_known_errors_are_right(pressure, lateness, mean, p99, peak):
    left = kept(Evidence(lateness, pressure))
    assert "rate" in left
    assert "mean" not in left or abs(mean) <= 5
    assert "p99" not in left or abs(p99) <= 10
    assert "peak" not in left or abs(peak) <= 10
    # Ports that sent below their rates held the excess of the peak.
    excess = max(0.0, 1 - 1 / (1 + peak / 100))
    expected = {"rate"} | ({"mean", "p99"} if p99 < 10 else set())
    expected |= {"peak"} if peak < 10 else set()
    assert kept(Evidence(lateness, pressure, excess)) == expected
    assert "mean" not in expected or abs(mean) <= 5
    assert "p99" not in expected or abs(p99) <= 10


def test_a_quiet_run_keeps_everything_and_a_late_one_its_rates() -> None:
    assert kept(Evidence(0.040, 0.62)) == ALL
    assert judge(FOUND, Evidence(0.040, 0.62)).warnings == ()
    assert kept(Evidence(0.25, 0.6, 0.0)) == {"rate"}
    assert kept(Evidence(0.073, 0.99, 0.02)) == {"rate", "mean"}
    assert kept(Evidence(0.07, 0.99, 0.03)) == ALL
    assert kept(Evidence(0.04, 0.75)) == {"rate", "mean"}
    assert kept(Evidence(0.04, 0.85)) == {"rate"}


@pytest.mark.parametrize("lateness", [0.12, 0.13, 0.14, 0.15])
def test_a_late_run_keeps_its_rates(lateness: float) -> None:
    assert kept(Evidence(lateness, 0.6)) == {"rate"}


def test_unsupported_metrics_are_named_with_reason_and_remedy() -> None:
    warning, *others = judge(FOUND, Evidence(0.06)).warnings
    assert others == []
    assert "percentiles and maxima of latencies and peaks of buffers are left out" in warning
    assert "timers were late for 6.0% of the time" in warning
    assert "cores: let nothing else run here" in warning
    assert "measure longer" in warning
    assert "timers were late for 50.0%" in judge(FOUND, Evidence(0.5)).refusal
    assert "made 50% of a switch's peak" in judge(FOUND, Evidence(0.3, 1.0, 0.5)).refusal


def test_halves_or_kinds_of_events_that_differ_exclude_their_own_metric() -> None:
    apart, close = Halves((50.0, 40.0), 0.1), Halves((50.0, 40.0), 2.0)
    assert kept(Evidence(0.0, means=apart)) == ALL - {"mean"}
    assert kept(Evidence(0.0, means=close, rates=close)) == ALL
    assert kept(Evidence(0.0, rates=apart)) == set()
    # One event in a hundred waited for another one.
    assert kept(Evidence(0.0, tail_s=(0.051, 0.102))) == ALL - {"p99"}
    assert kept(Evidence(0.0, tail_s=(0.1, 0.105))) == ALL
    assert kept(Evidence(0.0, tails_s=((0.1, 0.103), (0.2, 0.3)))) == {"rate"}
    assert kept(Evidence(0.0, tails_s=((0.051, 0.103), (0.1, 0.11)))) == ALL


def test_a_busy_machine_is_measured_but_not_the_ports_of_a_software_switch() -> None:
    assert host_metrics(COUNT, 1.0) == {"host_lateness": 0.05, "host_pressure": 0.5}
    assert host_metrics(COUNT, None) == {"host_lateness": 0.05}
    assert host_metrics(replace(COUNT, watched_s=0.0), 1.0) == {}
    unwatched = replace(COUNT, punctual_peaks=(0, None))
    assert evidence_of({"host_lateness": 0.06}, unwatched, []).excess is None


def test_evidence_is_computed_from_counters_and_readings() -> None:
    def reading(events: int, seconds: float) -> dict[int, Counters]:
        counts = {"meps_delivered": events, "building_bucket.400": events}
        return {0: Counters(counts | {"elapsed_s": seconds})}

    host = {"host_lateness": 0.05, "host_pressure": 0.5}
    found = evidence_of(host, COUNT, [])
    assert (found.lateness, found.pressure, found.rates, found.means) == (0.05, 0.5, None, None)
    assert found.excess == pytest.approx(0.05)
    found = evidence_of(host, COUNT, [reading(0, 0.0), reading(100, 1.0), reading(300, 2.0)])
    assert found.rates.values == (100.0, 200.0)
    assert found.rates.error == pytest.approx(300**0.5)
    assert found.means.values[0] == found.means.values[1]
    assert found.means.error == 0
    assert found.tail_s == (latency_bucket(400)[0],) * 2
