"""Faults of a simulated run and of a measured one, under the same run control."""

from typing import Any

import pytest

from daqloom.deployment.scenarios import override
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.study.methods import methods
from support.measure.faulted_runs import broken, expect_accounted, laptop

pytestmark = pytest.mark.process

HEARTBEAT_S, TIMEOUT_S = 1.0, 3.0


def within_a_heartbeat_and_a_fifth(one: float, other: float) -> bool:
    """The run control has a report of a unit each heartbeat, and checks twice as often."""
    return abs(one - other) <= HEARTBEAT_S + 0.2 * max(one, other)


def regrouping_s(result: Result) -> list[float]:
    """Times of regroupings, from the loss of a unit to the next epoch (s)."""
    log: dict[str, Any] = result.series["run_events"]
    entries = list(zip(log["time_s"], log["text"], strict=True))
    halts = [at_s for at_s, text in entries if text.startswith("halting: unit")]
    starts = [at_s for at_s, text in entries if text.startswith("running: from MEP")]
    return [min(start for start in starts if start > halt) - halt for halt in halts]


def lost(result: Result) -> int:
    """Events lost by all faults together."""
    return int(sum(result.metrics["fault_events_lost"].values()))


def begun_without_a_unit(result: Result) -> int:
    """Events from the first one of the epoch without the first lost unit on."""
    log: dict[str, Any] = result.series["run_events"]
    starts = [text for text in log["text"] if text.startswith("running: from MEP")]
    first = int(starts[1].split()[-1]) * scenario().packing
    accounts = result.metrics["events_accounted"]
    return int(accounts["begun"] - accounts.get("in_flight", 0) - first)


def scenario() -> Scenario:
    given = laptop(
        heartbeat=f"{HEARTBEAT_S} s",
        fault_timeout=f"{TIMEOUT_S} s",
        duration="9 s",
        restart=False,
        stream_buffer="64 MB",  # data of sources until the next epoch begins
    )
    kill = {"what": "unit", "which": 1, "at": "1 s"}
    stop = {"what": "unit", "which": 2, "how": "stopped", "at": "3.3 s", "lasts": "10 s"}
    times = {"run.duration": "9 s", "run.warmup": "0 s"}
    return broken(override(given, times), kill=kill, stop=stop)


def test_a_kill_and_a_stop_have_the_same_consequences() -> None:
    given = scenario()
    simulated, measured = methods.simulate(given, seed=1), methods.measure(given)
    expect_accounted(measured)
    for result in (simulated, measured):
        assert list(result.series["members"]["members"])[:5] == [4, 0, 3, 0, 2]
        assert result.metric("units_lost") == result.metric("faults_detected") == 2
    for fault in ("kill", "stop"):
        detections = [r.metric(f"fault_detection_s.{fault}") for r in (simulated, measured)]
        assert within_a_heartbeat_and_a_fifth(*detections), (fault, detections)
    # A stop is known after a fault timeout without reports, a kill by the end of the process.
    assert simulated.metric("fault_detection_s.kill") == 0
    stop_s = simulated.metric("fault_detection_s.stop")
    assert TIMEOUT_S - HEARTBEAT_S < stop_s <= TIMEOUT_S + HEARTBEAT_S / 2
    # No unit comes back: all events lack fragments from then on, and those in flight before.
    for result in (simulated, measured):
        in_flight = 2 * 4 * scenario().packing
        assert 0 <= lost(result) - begun_without_a_unit(result) <= in_flight
    assert lost(measured) == pytest.approx(lost(simulated), rel=0.2)
    for pair in zip(regrouping_s(simulated), regrouping_s(measured), strict=True):
        assert within_a_heartbeat_and_a_fifth(*pair), pair
