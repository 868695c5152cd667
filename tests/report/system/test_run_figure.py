"""Figure of a run over time."""

import numpy as np
import pytest

from daqloom.report.figure import Band, Line, Rule, Text
from daqloom.report.system.run_figure import figure
from support.figures import marks


def series(count=6, width_s=1.0, **more):
    return {
        "time_s": width_s * np.arange(count),
        "width_s": np.full(count, width_s),
        "events": np.full(count, 2e6 * width_s),
        "bytes": np.full(count, 1e9 * width_s),
        "members": np.full(count, 4.0),
        "phase": np.array(["running"] * count, dtype=object),
    } | more


LOSS = {"time_s": 2.5, "text": "unit 1 is lost", "lost": 1, "trouble": True}


def test_rate_throughput_and_members_are_drawn_in_units_that_fit():
    rate, throughput, members = figure("laptop", series(), []).panels
    assert rate.y.label == "event rate (MHz)"
    [line] = marks(rate, Line)
    assert line.x.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert line.y.tolist() == [2.0] * 7
    [line] = marks(throughput, Line)
    assert line.y.tolist() == [8.0] * 7
    assert marks(members, Line)[0].y.tolist() == [4.0] * 7
    assert not marks(rate, Band)


def test_losses_regroupings_and_gaps_are_marked():
    phase = np.array(["running", "halting", *["running"] * 4], dtype=object)
    time_s = np.array([0.0, 1, 2, 3, 10, 11])
    rate = figure("laptop", series(phase=phase, time_s=time_s), [LOSS, {"time_s": 1.0}]).panels[0]
    assert [(band.low, band.high) for band in marks(rate, Band)] == [(1, 2), (4, 10)]
    assert [rule.at for rule in marks(rate, Rule)] == [2.5]
    assert marks(rate, Text)[0].text == ["unit 1"]


@pytest.mark.parametrize(("width_s", "unit"), [(10, "s"), (300, "min"), (3600, "h"), (86_400, "d")])
def test_long_runs_have_longer_units_of_time(width_s, unit):
    panel = figure("laptop", series(width_s=float(width_s)), []).panels[-1]
    assert panel.x.label == f"time since the start ({unit})"


def test_a_run_without_bins_is_an_empty_figure():
    assert figure("laptop", series(0), []).panels
