"""Figure of the course of a run with faults."""

from pathlib import Path
from typing import Any

import pytest

from daqloom.deployment.scenarios import load
from daqloom.report.figure import Band, Line, Text
from daqloom.report.system import course_figure, result_figure
from daqloom.results.result import Result
from support.figures import marks

SERIES: dict[str, dict[str, list[Any]]] = {
    "throughput": {
        "begin_s": [0.0, 1.0, 2.0, 3.0],
        "end_s": [1.0, 2.0, 3.0, 4.0],
        "throughput_bps": [8e9, 0.0, 6e9, 8e9],
    },
    "members": {"time_s": [0.0, 1.25, 2.0, 2.75, 3.0], "members": [4, 0, 3, 0, 4]},
    "faults": {
        "time_s": [1.0, 1.25, 3.25, 3.75],
        "name": ["killed", "killed", "hanging", "hanging"],
        "what": ["unit"] * 4,
        "which": ["2", "2", "1", "1"],
        "how": ["down", "down", "stopped", "stopped"],
        "change": ["begins", "detected", "begins", "ends"],
    },
}


@pytest.fixture
def result() -> Result:
    return Result(scenario="laptop", scenario_hash="0", method="measure", metrics={}, series=SERIES)


def test_faults_are_named_and_regroupings_shaded(result: Result, tmp_path: Path) -> None:
    above, below = course_figure.figure(result).panels
    [names] = marks(above, Text)
    assert (names.text, names.x) == (("killed", "hanging"), (1.0, 3.25))
    assert marks(above, Line)[0].y == [8, 0, 6, 8, 8]
    assert marks(below, Line)[0].y == [4, 0, 3, 0, 4, 4]
    spans = [(band.low, band.high) for band in marks(below, Band)]
    assert spans == [(1.25, 2.0), (2.75, 3.0), (3.25, 3.75)]  # the stop, not the kill
    scenario = load("laptop", ["faults.injected.killed.what=unit"])
    result_figure.write(tmp_path / "course.svg", scenario, result)
    text = (tmp_path / "course.svg").read_text()
    assert "hanging" in text


@pytest.mark.parametrize(
    "throughput", [SERIES["throughput"], {key: [] for key in SERIES["throughput"]}]
)
def test_a_measurement_without_phases_has_the_figure_of_its_course(throughput, tmp_path) -> None:
    shown = {"throughput": throughput, "members": {"time_s": [0.0], "members": [4]}}
    result = Result(scenario="r", scenario_hash="0", method="measure", metrics={}, series=shown)
    result_figure.write(tmp_path / "course.svg", load("lab-rack"), result)
    assert "members" in (tmp_path / "course.svg").read_text()


def test_the_page_of_a_rack_has_the_course_as_well(result: Result, tmp_path: Path) -> None:
    result_figure.write(tmp_path / "course.html", load("lab-rack"), result)
    text = (tmp_path / "course.html").read_text()
    assert "Course of the run" in text
    assert text.count('class="figure"') == 2
