"""Time span of a long run in its figure of phases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daqloom.report.system.phase_figure import PHASES, Phases, window


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


def test_of_a_few_phases_all_are_drawn_and_no_long_one_at_the_end() -> None:
    lengths_s = [1e-3] * 40 + [5.0]
    begin_s, end_s, title = window(phases_of(lengths_s), 0.0)
    assert end_s - begin_s == pytest.approx(PHASES * 1e-3)
    assert end_s <= 40e-3 + 1e-9
    assert title.endswith("of 40, a stretch of median length")
    begin_s, end_s, title = window(phases_of([1.0, 2.0]), 0.0)
    assert (begin_s, end_s, title) == (0.0, 3.0, "all phases")


@given(st.lists(st.integers(1, 1000), min_size=PHASES + 2, max_size=60), st.integers(0, 20))
def test_the_stretch_is_one_of_median_length_after_the_warm_up(lengths_ms, warmup_ms) -> None:
    starts = [sum(lengths_ms[:step]) for step in range(len(lengths_ms))]
    warm = [begin for begin in starts if begin >= warmup_ms]
    begin, end, _ = window(phases_of([float(length) for length in lengths_ms]), float(warmup_ms))
    assert begin >= warmup_ms
    if len(warm) > PHASES:
        stretches = sorted(warm[i + PHASES] - warm[i] for i in range(len(warm) - PHASES))
        assert end - begin == stretches[len(stretches) // 2]
