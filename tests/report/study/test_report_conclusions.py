"""Conclusions of a report: their figures, sentences and number of fits."""

import re
from typing import Any

import numpy as np
import pytest

from daqloom.report.figure import Line
from daqloom.report.matplotlib_renderer import canvas
from daqloom.report.study import levels as study_levels
from daqloom.report.study import surface as study_surface
from daqloom.report.study.report import findings
from daqloom.study.conclusions.fits import fits
from daqloom.study.conclusions.levels import levels
from daqloom.study.statistics import return_levels
from daqloom.study.statistics.gev import Gev, maximum_likelihood
from support.figures import marks
from support.peak_studies import COURSE, NEEDED, PEAK, gumbel, study, with_course

LATENCY = "collection_latency_s.mean"


def test_every_conclusion_is_drawn() -> None:
    found = findings(with_course(study(), gumbel()))
    assert [each.name for each in found] == ["levels", "surface", "methods"]
    for each in found:
        canvas(each.figure).draw_without_rendering()
        assert all(len(row) == len(each.head) for row in each.rows)


def test_levels_do_not_depend_on_the_shown_variable() -> None:
    dataset = with_course(study([12e3], [5e6]), gumbel())
    dataset[LATENCY] = (dataset[PEAK] * 1e-10).assign_attrs(units="s")
    shares: list[float] = []
    for shown in ((LATENCY, PEAK), (NEEDED,), ()):
        found = findings(dataset.assign_attrs(show=shown), progress=shares.append)
        assert found[0].name == "levels"
    assert findings(dataset, LATENCY)[0].name == "levels"
    assert shares == [1.0] * 3


def test_the_steps_of_an_axis_without_an_operating_point_are_listed_side_by_side() -> None:
    axis = "building.outstanding_fragments"
    dataset = with_course(study([12e3], [0.0, 4.0, 8.0]), gumbel())
    dataset = dataset.rename({"event.size": axis})
    dataset[axis].attrs.pop("units", None)
    dataset = dataset.assign_attrs(operating_point={"event.rate": 12e3})
    levels_section = findings(dataset)[0]
    assert levels_section.is_answer
    answer, along = levels_section.sentences[0].split(" By ")
    assert answer.startswith("At 12 kHz × fragments requested in parallel without a limit an ideal")
    level = r"[\d.]+ \([\d.]+ to [\d.]+\)"
    assert re.fullmatch(
        r"fragments requested in parallel, exceeded less than once a day \(MB, 95 %\): "
        rf"{level} with no limit, {level} with 8, {level} with 4\.",
        along,
    )


def test_a_level_without_a_known_error_is_no_number_of_a_sentence() -> None:
    axis = "building.outstanding_fragments"
    dataset = with_course(study([12e3], [0.0, 4.0]), gumbel())
    dataset = dataset.rename({"event.size": axis})
    dataset[axis].attrs.pop("units", None)
    dataset = dataset.assign_attrs(operating_point={"event.rate": 12e3})
    random = np.random.default_rng(1)
    floor = 2e6 * np.maximum(1.0, random.pareto(0.8, (3, 80)))  # a third of them equal
    dataset[COURSE][1].loc[{axis: 4.0}] = floor
    along = findings(dataset)[0].sentences[0].split(" By ")[1]
    most = f"{floor.max() / 1e9:#.3g}".rstrip(".")
    assert along.endswith(f"with no limit, not known (at most {most} seen) with 4.")


def test_a_report_of_thirty_points_fits_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []

    def counted(*arguments: Any) -> Gev:
        fitted.append(arguments)
        return maximum_likelihood(*arguments)

    monkeypatch.setattr(return_levels, "maximum_likelihood", counted)
    rates, sizes = np.linspace(1e3, 14e3, 10), np.array([1e6, 2e6, 4e6])
    dataset = with_course(study(rates, sizes, seeds=3), gumbel())
    assert len(levels(dataset).points) == 30
    assert len(fitted) == 30


def test_figures_have_maxima_at_their_positions_and_dashes_where_extrapolated() -> None:
    dataset = with_course(study([12e3], [5e6]), gumbel())
    found = levels(dataset, replicas=0)
    [panel] = study_levels.figure(dataset, found, found.points[0]).panels
    [maxima] = marks(panel, Line, marker="o")
    assert maxima.x[-1] == pytest.approx(0.1 * 241)  # the highest of 240
    assert maxima.y[-1] == pytest.approx(found.points[0].fit.maxima.max() / 1e6)
    dataset = study()
    figure = study_surface.figure(dataset, fits(dataset), {"event.rate": 24e3, "event.size": 5e6})
    dashed = marks(figure.panels[0], Line, dash="dash", name="")
    assert any(np.isfinite(line.y).any() for line in dashed)
