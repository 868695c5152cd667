"""Ctrl-C ends a run early and loses nothing of what it has found by then."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daqloom.control.run_log import RunEvent
from daqloom.deployment.scenarios import load
from daqloom.machine.launch import Local
from daqloom.measure.run import Progress, measure
from daqloom.report.system.result_figure import write
from daqloom.results.result import Result, StoppedError
from daqloom.study.methods import methods
from support.children import children
from support.measure.controlled_runs import FAKE, HUNG_S
from support.measure.fake_node import FOLDER
from support.measure.small_runs import small

INTERRUPTED = 130
LINK = "access.0.down"
LONG = "1000 s"


def ctrl_c_beyond(share: float) -> Callable[[float], None]:
    def progress(done: float) -> None:
        if done > share:
            signal.raise_signal(signal.SIGINT)

    return progress


def interrupted(scenario: str, beyond: float, changes: dict[str, Any], **more: Any) -> Result:
    with pytest.raises(StoppedError) as ended:
        methods.simulate(load(scenario, changes), progress=ctrl_c_beyond(beyond), **more)
    assert ended.value.result is not None
    return ended.value.result


@pytest.mark.parametrize(
    ("scenario", "duration", "beyond", "more"),
    [
        ("small-rack", LONG, 1e-3, {}),
        ("lhcb-10-percent", "1 s", 5e-3, {"timeline": True}),
        ("daqpipe-laptop", "1 s", 5e-3, {"timeline": True}),
    ],
)
def test_an_interrupted_run_equals_a_run_of_its_length(
    scenario: str, duration: str, beyond: float, more: dict[str, Any]
) -> None:
    changes = {"run.duration": duration, "run.warmup": "1 ms"}
    early = interrupted(scenario, beyond, changes, **more)
    reached_s = early.engine["virtual_s"]
    assert reached_s < load(scenario, changes).run.duration
    whole = methods.simulate(load(scenario, changes | {"run.duration": f"{reached_s} s"}), **more)
    assert early.metrics == whole.metrics
    binned = dict.fromkeys(("tor_occupancy", "course"))  # by the length that the run should have
    assert {**early.series, **binned} == {**whole.series, **binned}
    assert (early.interrupted, whole.interrupted) == (True, False)
    assert early.warnings[0].startswith("interrupted after ")


def test_a_run_interrupted_after_the_warm_up_is_marked_in_the_record() -> None:
    early = interrupted("small-rack", 0.0, {"run.duration": LONG, "run.warmup": "0 s"})
    assert json.loads(early.to_json())["interrupted"] is True
    assert Result.from_json(early.to_json()).interrupted
    assert "interrupted" not in replace(early, interrupted=False).to_dict()
    for scenario in ("small-rack", "lhcb-10-percent"):
        cold = load(scenario, {"run.duration": LONG, "run.warmup": "100 s"})
        with pytest.raises(StoppedError, match="before the end of the warm-up") as ended:
            methods.simulate(cold, progress=ctrl_c_beyond(0.0))
        assert ended.value.result is None


@pytest.mark.parametrize(
    ("scenario", "figure"),
    [("small-rack", "png"), ("small-rack", "html"), ("lhcb-10-percent", "png")],
)
def test_an_interrupted_run_has_a_figure(tmp_path: Path, scenario: str, figure: str) -> None:
    changes = {"run.duration": "10 s", "run.warmup": "0 s"}
    more = {"timeline": True} if scenario.startswith("lhcb") else {}
    early = interrupted(scenario, 0.0, changes, **more)
    write(tmp_path / f"figure.{figure}", load(scenario, changes), early)
    assert (tmp_path / f"figure.{figure}").stat().st_size > 1000


def ended_by_ctrl_c(*arguments: str, after: str) -> tuple[str, list[str]]:
    """Output and log of a command that gets Ctrl-C after the line `after`."""
    command = [sys.executable, "-m", "daqloom", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stderr is not None
        lines = [process.stderr.readline()]
        while after not in lines[-1]:
            assert lines[-1], lines
            lines.append(process.stderr.readline())
        process.send_signal(signal.SIGINT)
        output, log = process.communicate(timeout=HUNG_S)
    assert process.returncode == INTERRUPTED
    return output, log.splitlines()


@pytest.mark.process
def test_ctrl_c_of_simulate_prints_and_saves_the_partial_result(tmp_path: Path) -> None:
    output, log = ended_by_ctrl_c(
        *("simulate", "small-rack", "--json", "--set", f"run.duration={LONG}"),
        *("--figure", f"{tmp_path}/figure.png", "--trace", f"{tmp_path}/trace.json"),
        *("--pcap", f"{LINK}={tmp_path}/frames.pcapng"),
        after="simulating small-rack: ",
    )
    record = json.loads(output)
    assert record["interrupted"] is True
    assert 0 < record["engine"]["virtual_s"] < 1000
    assert log[-1] == "daqloom: interrupted; the result covers the time until then"
    written = ["figure.png", "frames.pcapng", "trace.json"]
    assert sorted(os.listdir(tmp_path)) == written
    built = [
        event
        for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        if event["ph"] == "X"
    ]
    window_s = record["engine"]["virtual_s"] - load("small-rack").run.warmup
    assert record["metrics"]["events_built"] == pytest.approx(
        window_s * record["metrics"]["event_rate_hz"]
    )
    assert len(built) >= record["metrics"]["events_built"]


@pytest.mark.process
def test_ctrl_c_keeps_the_result_of_a_measurement(tmp_path: Path) -> None:
    def ctrl_c(how: Progress) -> None:
        if how.share > 0.1 / 100 and how.events_hz:  # warmup / duration
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(StoppedError) as ended:
        measure(
            small(duration="100 s", warmup="100 ms"),
            launcher=Local(FAKE),
            progress=ctrl_c,
            trace=tmp_path / "trace.json",
        )
    result = ended.value.result
    assert result is not None
    assert result.interrupted
    assert result.metrics["events_built"] > 0
    assert "interrupted: " in result.warnings[0]
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


@pytest.mark.process
def test_ctrl_c_of_measure_prints_the_partial_result() -> None:
    output, log = ended_by_ctrl_c(
        *("measure", "laptop", "--json", "--duration", LONG, "--set", "measure.warmup=0 s"),
        after="units running",
    )
    record = json.loads(output)
    assert record["interrupted"] is True
    assert 0 < record["engine"]["measured_s"] < 1000
    assert record["metrics"]["events_wrong"] == 0
    assert log[-1] == "daqloom: interrupted; the result covers the time until then"


@pytest.mark.process
def test_the_second_ctrl_c_ends_a_measurement_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its units never halt, and would be waited for longer than any test runs."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    others = children()  # of other tests in this process
    units: list[int] = []

    def ctrl_c(event: RunEvent) -> None:
        if event.text.startswith("running"):
            for unit in range(3):
                (tmp_path / f"fault-{unit}").write_text("never-halts")
            units.extend(child for child in children() if child not in others)
            signal.raise_signal(signal.SIGINT)
        if event.text.startswith("halting"):
            signal.raise_signal(signal.SIGINT)

    scenario = small(duration="100 s", fault_timeout="600 s")
    with pytest.raises(KeyboardInterrupt) as ended:
        measure(scenario, launcher=Local(FAKE), on_event=ctrl_c)
    assert not isinstance(ended.value, StoppedError)
    assert len(units) == 3
    assert not any(Path("/proc", str(unit)).exists() for unit in units)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
