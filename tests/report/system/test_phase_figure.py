"""What timelines and their figures show of a long run, and that they say so."""

from __future__ import annotations

import signal
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.measure import run
from daqloom.measure.launch import Local
from daqloom.measure.run import Progress, measure
from daqloom.measure.states import Phase
from daqloom.measure.status import Request, Status, steer
from daqloom.report.system.phase_figure import PHASES, Phases, window
from daqloom.result import StoppedError
from support.controlled_runs import FAKE
from support.small_runs import small


def phases_of(lengths_s: list[float], nodes: int = 2) -> Phases:
    """Nodes that send in lockstep, phase after phase."""
    starts = np.concatenate([[0.0], np.cumsum(lengths_s)])
    rows = [(node, step) for step in range(len(lengths_s)) for node in range(nodes)]
    return {
        "node": [f"n{node}" for node, _ in rows],
        "step": [step for _, step in rows],
        "what": ["sending"] * len(rows),
        "to": ["x"] * len(rows),
        "begin_s": [float(starts[step]) for _, step in rows],
        "end_s": [float(starts[step + 1]) for _, step in rows],
    }


def test_a_long_phase_at_the_end_does_not_fill_the_picture() -> None:
    lengths_s = [1e-3] * 40 + [5.0]
    begin_s, end_s, title = window(phases_of(lengths_s), 0.0)
    assert end_s - begin_s == pytest.approx(PHASES * 1e-3)
    assert end_s <= 40e-3 + 1e-9
    assert title.endswith("of 40, a stretch of median length")


@given(st.lists(st.integers(1, 1000), min_size=PHASES + 2, max_size=60), st.integers(0, 20))
def test_the_stretch_is_one_of_median_length_after_the_warm_up(
    lengths_ms: list[int], warmup_ms: int
) -> None:
    starts = [sum(lengths_ms[:step]) for step in range(len(lengths_ms))]
    warm = [begin for begin in starts if begin >= warmup_ms]
    begin, end, _ = window(phases_of([float(length) for length in lengths_ms]), float(warmup_ms))
    assert begin >= warmup_ms
    if len(warm) > PHASES:
        stretches = sorted(warm[i + PHASES] - warm[i] for i in range(len(warm) - PHASES))
        assert end - begin == stretches[len(stretches) // 2]


def test_of_a_few_phases_all_are_drawn() -> None:
    begin_s, end_s, title = window(phases_of([1.0, 2.0]), 0.0)
    assert (begin_s, end_s, title) == (0.0, 3.0, "all phases")


@pytest.mark.parametrize("kept", [100, 10**6])
def test_a_timeline_that_lacks_the_beginning_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(run, "TRACE_STAGES", kept)  # the fake nodes tell 4500 and more
    result = measure(small(), launcher=Local(FAKE), trace=tmp_path / "trace.json")
    told = [warning for warning in result.warnings if warning.startswith("the timeline shows ")]
    assert len(told) == (kept == 100)
    assert all("the last 100 stages" in warning for warning in told)


def test_a_measurement_under_way_is_found_by_an_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    answers: list[Future[Status]] = []

    def ask(how: Progress) -> None:
        if how.phase is Phase.RUNNING and not answers:
            answers.append(operator.submit(steer, Request(command="status"), None))
        if answers and answers[0].done():
            signal.raise_signal(signal.SIGINT)

    with ThreadPoolExecutor(1) as operator, pytest.raises(StoppedError):
        measure(small(duration="100 s"), launcher=Local(FAKE), progress=ask)
    status = answers[0].result()
    assert (status.scenario, status.phase, len(status.units)) == ("small", Phase.RUNNING, 3)
    assert list((tmp_path / "daqloom").iterdir()) == []  # and not afterwards


def test_a_measurement_needs_no_folder_to_be_found_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nowhere"))
    assert measure(small(), launcher=Local(FAKE)).metrics["events_built"] > 0
