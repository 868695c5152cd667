"""Several variables of a study along one axis, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daqloom.report import style
from daqloom.report.study.frame import Mark, panels_for
from daqloom.report.study.lines import Lines
from daqloom.study.errors import StudyError
from daqloom.study.points import (
    operating_point,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset


def lines_beside(dataset: Dataset, variables: Sequence[str], mark: Mark = None) -> Figure:
    """`lines` of each variable, a panel each, with one legend.

    Raises StudyError where the study's axes need the panels for themselves.
    """
    import matplotlib as mpl

    drawn = [Lines(dataset, name, operating_point(dataset, mark)) for name in variables]
    if drawn[0].roles.panel is not None:
        raise StudyError("variables stand side by side where the study has one or two axes")
    with mpl.rc_context(style.RC):
        figure, places = panels_for(len(drawn), wide=3.9, high=3.9, same_heights=False)
        for axes, one in zip(places, drawn, strict=True):
            one.panel(axes, {})
            one.heights(axes)
            axes.set(xlabel=one.x.label, ylabel=one.y.label)
        drawn[0].legend(figure, places[0])
    return figure
