"""Results of a simulation: known answers, and the same numbers from the same seed."""

import json
import subprocess
import sys
from typing import Any

import pytest

from daqloom.deployment.scenarios import load, override
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.simulate.slices import SLICE_METRICS, SLICES
from daqloom.study.methods import methods

pytest.importorskip("daqloom._engine")

NEEDED = "buffer_needed_bytes.tor"

#: Events that never overlap, and nothing random.
PERIODIC = {"event.arrivals": "deterministic", "event.rate": "500 Hz"}
SHORT = {"run.duration": "60 ms", "run.warmup": "10 ms"}


def small_rack(**overrides: Any) -> Scenario:
    return override(load("small-rack"), SHORT | overrides)


def command(*arguments: str) -> list[str]:
    overrides = [f"{key}={value}" for key, value in SHORT.items()]
    options = [part for override in overrides for part in ("--set", override)]
    return [sys.executable, "-m", "daqloom", "simulate", "small-rack", *options, *arguments]


def in_another_process(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(command("--json", *arguments), capture_output=True, text=True, check=True)
    metrics: dict[str, Any] = json.loads(done.stdout)["metrics"]
    return metrics


@pytest.fixture(scope="module")
def periodic() -> Result:
    return methods.simulate(small_rack(**PERIODIC))


def test_a_system_with_room_builds_every_event_with_its_framing(periodic: Result) -> None:
    # One event each 2 ms: at 12, 14, … 60 ms, the last of which does not end in time.
    assert periodic.metric("events_built") == 25
    assert periodic.metric("event_rate_hz") == pytest.approx(500)
    assert periodic.metric("throughput_bps") == pytest.approx(500 * 400e3 * 8)
    for name in ("packets_dropped", "retransmission_timeouts", "packets_marked"):
        assert periodic.metric(name) == 0
    # A fragment of 100 kB is 69 full segments and one of 88 B, 90 B of headers and gap each. The
    # four access links share the events; a few more frames are acknowledgements.
    wire_bytes = 4 * (100_000 + 70 * 90)
    expected = 500 * wire_bytes * 8 / 10e9 / 4
    assert periodic.metrics["link_utilisation"]["access.down"] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize(("duration", "in_flight"), [("59.9 ms", 0), ("60.1 ms", 1)])
def test_an_event_that_is_not_built_at_the_end_is_in_flight(duration: str, in_flight: int) -> None:
    # One event each 2 ms; its builder's link takes 400 kB / 10 Gb/s = 320 us for it.
    result = methods.simulate(small_rack(**PERIODIC, **{"run.duration": duration}))
    assert result.metric("events_in_flight") == in_flight
    assert "events_incomplete" not in result.metrics  # all that are built are whole


def test_a_random_system_keeps_its_mean_rate_and_few_events_have_a_warning() -> None:
    result = methods.simulate(override(load("small-rack"), {"run.duration": "600 ms"}))
    # Poisson: 2 kHz · 0.5 s ± 5 √1000.
    assert result.metric("events_built") == pytest.approx(1000, abs=160)
    # One event each 2 ms after 10 ms of warm-up: 10 events in 20 ms, 100 in 200 ms.
    short = methods.simulate(small_rack(**PERIODIC, **{"run.duration": "30 ms"}))
    (warning,) = short.warnings
    assert "only 10 events were built in the 20 ms counted" in warning
    assert 'run.duration = "210 ms" counts about 100' in warning
    longer = methods.simulate(small_rack(**PERIODIC, **{"run.duration": "210 ms"}))
    assert longer.warnings == []
    assert longer.metric("events_built") == 100


OF_A_RACK = {name for name in SLICE_METRICS if not name.endswith(".leaf")}


def test_a_single_switch_has_a_course_of_its_buffer() -> None:
    result = methods.simulate(override(load("small-rack"), SHORT | {"network.shape": "one-switch"}))
    peak = "buffer_peak_bytes.leaf"
    assert max(result.series["course"][peak]) == pytest.approx(result.metric(peak), rel=1 / 256)
    assert not {name for name in result.series["course"] if name.endswith(".tor")}


def test_the_course_of_a_metric_adds_up_to_the_metric() -> None:
    result = methods.simulate(small_rack(**{"event.rate": "10 kHz", "event.size": "100 kB"}))
    course = result.series["course"]
    assert set(course) == {"time_s", *OF_A_RACK} - {NEEDED}
    assert {len(column) for column in course.values()} == {SLICES}
    run = result.engine["virtual_s"] - course["time_s"][0]
    assert course["time_s"][1] - course["time_s"][0] == pytest.approx(run / SLICES)
    assert max(course["buffer_peak_bytes.tor"]) == max(result.series["tor_occupancy"]["max_bytes"])
    rates = course["event_rate_hz"]
    assert sum(rates) / SLICES == pytest.approx(result.metric("event_rate_hz"))
    latencies = course["collection_latency_s.mean"]
    weighted = sum(rate * latency for rate, latency in zip(rates, latencies, strict=True))
    assert weighted / sum(rates) == pytest.approx(result.metric("collection_latency_s.mean"))


def test_courses_and_needed_buffers_leave_out_absent_metrics() -> None:
    result = methods.simulate(small_rack())
    assert 0 in result.series["course"]["event_rate_hz"]
    absent = {NEEDED, "collection_latency_s.mean"}
    assert set(result.series["course"]) == {"time_s", *OF_A_RACK} - absent
    assert "buffer_needed_bytes" not in methods.simulate(small_rack()).metrics
    most, peak = max(result.series["tor_occupancy"]["max_bytes"]), "buffer_peak_bytes.tor"
    assert most == pytest.approx(result.metric(peak), rel=1 / 256)
    assert most <= result.metric(peak)
    latency = result.series["collection_latency"]
    assert sum(latency["count"]) == result.metric("events_built")


SHARED_MEMORY = {
    "event.rate": "3 kHz",
    "network.switch.tor.model": "shared-memory",
    "network.switch.tor.dedicated": "20 kB",
    "run.warmup": "1 ms",
}


@pytest.mark.parametrize("alpha", [0.5, 1, 8])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_buffer_that_a_run_needed_is_the_smallest_that_drops_nothing(alpha, seed) -> None:
    """A large buffer and one that is just large enough drop nothing: the runs are the same. One
    cell less, and packets are dropped."""

    def run(buffer_bytes: int) -> Result:
        tor = {"alpha": alpha, "buffer": f"{buffer_bytes} B"}
        changes = {f"network.switch.tor.{key}": value for key, value in tor.items()}
        return methods.simulate(small_rack(**SHARED_MEMORY, **changes), seed=seed)

    large = run(1_000_000_000)
    needed = large.metric(NEEDED)
    assert needed > large.metric("buffer_peak_bytes.tor")
    just = run(int(needed))
    assert just.metric("packets_dropped") == 0
    assert just.metrics == large.metrics
    assert max(large.series["course"][NEEDED]) == pytest.approx(needed, rel=1 / 256)
    short = run(int(needed) - 256)
    assert short.metric("packets_dropped") > 0
    assert "buffer_needed_bytes" not in short.metrics


def test_a_full_ring_drops_packets_and_causes_timeouts() -> None:
    tor = {"network.switch.tor.model": "drop-tail", "network.switch.tor.queue_packets": 8}
    keys = {"transport.tail_loss_probe": False, "transport.rack": False, "run.duration": "1 s"}
    result = methods.simulate(small_rack(**tor, **keys))
    assert result.metric("packets_dropped") > 100
    assert result.metric("retransmission_timeouts") > 10
    assert result.metric("collection_latency_s.max") > 0.2
    assert all(name.startswith("access.") for name in result.metrics["drops_by_port"])


@pytest.mark.process
def test_the_same_seed_gives_the_same_numbers_in_another_process() -> None:
    here = json.loads(methods.simulate(small_rack(), seed=7).to_json())["metrics"]
    assert in_another_process("--seed", "7") == here
    assert in_another_process("--seed", "8") != here
