"""Arrivals of events at the event manager of a measurement, as a trace for the next one."""

import json
from itertools import islice
from pathlib import Path

import pytest

from daqloom.control.counters.arrivals import ArrivalLog, trace_text
from daqloom.control.protocol.messages import (
    ROWS_AT_ONCE,
    ArrivalRows,
    MalformedError,
    Trace,
    read_report,
)
from daqloom.deployment.scenarios import load
from daqloom.measure.run import measure
from daqloom.scenario import ScenarioError
from daqloom.scenario.inputs import trace
from support.measure.small_runs import daqloom
from support.measure.tiny_runs import MEASURED
from support.seeded_arrivals import generated, poisson_arrivals_ps

RATE_HZ = 2000.0
SMALL = {
    "event.rate": f"{RATE_HZ} Hz",
    "event.size": "2 kB",
    "readout.units": 2,
    "builders.units": 1,
    "run.seed": 7,
    **{f"measure.{key}": value for key, value in MEASURED.items()},
    "measure.events": 300,
}


def small(**changes: object):
    given = SMALL | {key.replace("__", "."): value for key, value in changes.items()}
    return load("laptop-pull", [f"{key}={value}" for key, value in given.items()])


def test_the_generator_of_planned_times_is_that_of_the_standard() -> None:
    # By libstdc++ 12: seed_seq s{1u, 2u, 3u}; mt19937_64 g(s); g.discard(9999); g().
    assert next(islice(generated([1, 2, 3]), 9999, None)) == 3897430608482846923


@pytest.mark.process
def test_all_arrivals_are_written_and_none_is_early(tmp_path: Path) -> None:
    file = tmp_path / "arrivals.txt"
    result = measure(small(), arrivals=file)
    times_s = trace(file)  # refuses decreasing times
    taken = result.metrics["events_accounted"]["begun"] + result.metric("events_waiting")
    assert len(times_s) == taken >= 300
    planned_ps = list(islice(poisson_arrivals_ps(7, RATE_HZ), len(times_s)))
    late_ps = [round(1e12 * at) - planned for at, planned in zip(times_s, planned_ps, strict=True)]
    assert min(late_ps) >= 0
    assert len(times_s) / times_s[-1] <= 1e12 * len(planned_ps) / planned_ps[-1]
    assert "arrivals" not in " ".join(result.warnings)
    assert file.read_text().startswith("# arrivals (s) of laptop-pull, seed 7, measured\n")


@pytest.mark.process
def test_written_arrivals_can_be_simulated_and_measured(tmp_path: Path) -> None:
    file = tmp_path / "arrivals.txt"
    sets = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]
    done = daqloom("measure", "laptop-pull", *sets, "--arrivals", str(file), "--json")
    assert done.returncode == 0, done.stderr
    accounted = json.loads(done.stdout)["metrics"]["events_accounted"]
    times_s = trace(file)
    assert len(times_s) >= accounted["begun"]
    traced = [*sets, "--set", "event.arrivals=trace", "--set", f"event.trace={file}"]
    whole = ["--set", f"run.duration={times_s[-1] + 1} s", "--set", "run.warmup=0 s"]
    done = daqloom("simulate", "laptop-pull", *traced, *whole, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["metrics"]["events_built"] == len(times_s)
    again = tmp_path / "again.txt"
    measure(small(event__arrivals="trace", event__trace=file, measure__events=100), arrivals=again)
    for later, before in zip(trace(again), times_s, strict=False):
        assert later >= before


def test_event_building_without_arrivals_has_no_file_of_them(tmp_path: Path) -> None:
    for protocol in ("shift", "daqpipe"):
        scenario = load("laptop", [f"building.protocol={protocol}"])
        with pytest.raises(ScenarioError, match=f'protocol = "{protocol}" has no event manager at'):
            measure(scenario, arrivals=tmp_path / "arrivals.txt")
    assert list(tmp_path.iterdir()) == []


def test_a_log_keeps_the_first_ones_and_counts_the_others() -> None:
    log = ArrivalLog(3)
    log.add(ArrivalRows(begin_ns=1_000, times_ns=(5, 9), beyond=0))
    log.add(ArrivalRows(begin_ns=2_000, times_ns=(1, 2, 3), beyond=4))
    assert list(log.times_ns) == [1_005, 1_009, 2_001]
    assert log.beyond == 2 + 4
    assert trace_text(log, "x") == "# arrivals (s) of x\n0.000000005\n0.000000009\n0.000001001\n"


def test_a_clock_set_back_between_epochs_makes_no_time_decrease() -> None:
    log = ArrivalLog(9)
    log.add(ArrivalRows(begin_ns=5_000, times_ns=(1, 7)))
    log.add(ArrivalRows(begin_ns=4_000, times_ns=(2, 1_003)))
    times = ("0.000000002", "0.000001001", "0.000001003", "0.000001007")
    assert tuple(trace_text(log, "x").splitlines()[1:]) == times


def test_a_log_without_room_keeps_none() -> None:
    log = ArrivalLog(0)
    log.add(ArrivalRows(begin_ns=1, times_ns=(1, 2)))
    assert (len(log.times_ns), log.beyond) == (0, 0)


def test_arrivals_come_in_messages_of_bounded_size() -> None:
    rows = ArrivalRows(begin_ns=(1 << 62) - 1, times_ns=tuple(range(ROWS_AT_ONCE)), beyond=3)
    report = read_report(Trace(arrivals=rows).encode())
    assert isinstance(report, Trace)
    assert report.arrivals == rows
    for begin_ns, times_ns in ((0, [1] * (ROWS_AT_ONCE + 1)), (0, [-1]), (1 << 62, []), (0, [0.5])):
        given = {"begin_ns": begin_ns, "times_ns": times_ns}
        with pytest.raises(MalformedError):
            read_report(json.dumps({"kind": "trace", "arrivals": given}).encode())
