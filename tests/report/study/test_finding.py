"""Findings of a report: each has a figure, and shows what was fitted."""

from __future__ import annotations

import numpy as np
import pytest

from daqloom.report.study import levels as study_levels
from daqloom.report.study import surface as study_surface
from daqloom.report.study.report import findings
from daqloom.study.fits import fits
from daqloom.study.levels import levels
from support.peak_studies import (
    gumbel,
    study,
    with_course,
)


def test_every_finding_is_drawn() -> None:
    found = findings(with_course(study(), gumbel()))
    assert [each.name for each in found] == ["levels", "surface", "methods"]
    for each in found:
        each.figure.draw_without_rendering()
        assert all(len(row) == len(each.head) for row in each.rows)


def test_the_figure_of_levels_has_the_maxima_at_their_plotting_positions() -> None:
    dataset = with_course(study([12e3], [5e6]), gumbel())
    found = levels(dataset, replicas=0)
    [axes] = study_levels.figure(dataset, found, found.points[0]).axes
    dots = next(line for line in axes.lines if line.get_marker() == "o")
    times, values = dots.get_data()
    assert times[-1] == pytest.approx(0.1 * 241)  # the highest of 240
    assert values[-1] == pytest.approx(found.points[0].fit.maxima.max() / 1e6)


def test_the_surface_shows_where_it_is_extrapolated() -> None:
    dataset = study()
    figure = study_surface.figure(dataset, fits(dataset), {"event.rate": 24e3, "event.size": 5e6})
    dashed = [line for line in figure.axes[0].lines if line.get_linestyle() == "--"]
    assert any(np.isfinite(line.get_ydata().astype(float)).any() for line in dashed)
