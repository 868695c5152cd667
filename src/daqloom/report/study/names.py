"""A study of many named steps, such as variants: one below the other, a panel for each point."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study import view
from daqloom.report.study.table import unbounded_words
from daqloom.study import points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

MOST_PANELS = 6
ROW = 0.24
"""Inches for a name."""


def axis_of_names(dataset: Dataset) -> str | None:
    """The axis that is drawn downwards: the one of names that all others have no room for. It has
    more steps than there are colours, or is the only axis with several steps."""
    several = [axis for axis in points.axes_of(dataset) if dataset.sizes[axis] > 1]
    named = [axis for axis in several if not points.is_numeric(dataset, axis)]
    longest = max(named, key=lambda axis: dataset.sizes[axis], default=None)
    if longest is None:
        return None
    return (
        longest if len(several) == 1 or dataset.sizes[longest] > len(view.NAMED_COLOURS) else None
    )


def names(dataset: Dataset, variable: str | None = None) -> Figure:
    """Means over seeds with standard deviations along x, small dots for the seeds; a name a row.
    Further axes become panels. Saturated points are hollow; a search that found no boundary says so
    in words. Raises StudyError."""
    return _Names(dataset, points.shown_variable(dataset, variable)).draw()


def names_caption(dataset: Dataset) -> str:
    """What a reader of `names` has to know."""
    axis = axis_of_names(dataset)
    assert axis is not None
    _, held = _panels(dataset, axis)
    sentences = []
    if dataset.sizes["seed"] > 1:
        sentences.append(
            f"Means of {dataset.sizes['seed']} seeds; bars are one standard deviation, "
            "small dots the seeds."
        )
    if bool(points.saturated(dataset).any()):
        sentences.append(
            "Hollow points are saturated: they demand more events than the links carry."
        )
    return " ".join([*sentences, *view.held_caption(dataset, held)])


def _panels(dataset: Dataset, axis: str) -> tuple[list[dict[str, int]], dict[str, int]]:
    """Steps of the other axes for each panel, and of those for which there is no room."""
    others = [each for each in points.axes_of(dataset) if each != axis]
    several = [each for each in others if dataset.sizes[each] > 1]
    while several and np.prod([dataset.sizes[each] for each in several]) > MOST_PANELS:
        several.pop()
    held = view.hold(dataset, [each for each in others if each not in several])
    steps = itertools.product(*(range(dataset.sizes[each]) for each in several))
    return [dict(zip(several, step, strict=True)) for step in steps], held


class _Names:
    def __init__(self, dataset: Dataset, variable: str) -> None:
        axis = axis_of_names(dataset)
        assert axis is not None
        self.dataset, self.variable, self.axis = dataset, variable, axis
        self.panels, self.held = _panels(dataset, axis)
        self.methods = points.methods_of(dataset, variable)
        self.x = view.variable_quantity(dataset, variable)
        self.values = dataset[variable] / self.x.divisor
        self.rows = np.arange(dataset.sizes[axis])

    @style.in_style
    def draw(self) -> Figure:
        from matplotlib.figure import Figure

        columns = min(2, len(self.panels))
        rows = -(-len(self.panels) // columns)
        high = ROW * len(self.rows) + 0.6
        figure = Figure(figsize=(3.4 * columns + 2.6, high * rows + 0.7), layout="constrained")
        places = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for spare in places.ravel()[len(self.panels) :]:
            spare.remove()
        for place, at in zip(places.ravel(), self.panels, strict=False):
            self._panel(place, at)
        first = places[0, 0]
        first.set_yticks(self.rows, [str(name) for name in self.dataset[self.axis].values])
        first.set_ylim(len(self.rows) - 0.5, -0.5)
        self._width(first)
        self._legend(figure)
        figure.supxlabel(self.x.label, fontsize=9)
        return figure

    def _panel(self, axes: Axes, at: dict[str, int]) -> None:
        axes.set_title(view.steps_text(self.dataset, at))
        where = at | self.held
        hollow = points.saturated(self.dataset).isel(where).values
        for method in self.methods:
            values = self.values.sel({"by": method}).isel(where).transpose(self.axis, "seed")
            colour = view.LOOKS[method].colour
            if method == "analyse":
                axes.plot(values.values[:, 0], self.rows, "|", color=colour, ms=9, mew=1.6)
                continue
            found = points.spread(values)
            error = np.where(found.deviation.values > 0, found.deviation.values, np.nan)
            look: dict[str, Any] = {"color": colour, "ls": "", "capsize": 2.5, "elinewidth": 1.1}
            axes.errorbar(found.mean.values, self.rows, xerr=error, **look)
            for full, face in ((False, colour), (True, "white")):
                mean = np.where(hollow == full, found.mean.values, np.nan)
                marker = view.LOOKS[method].marker
                axes.plot(mean, self.rows, marker, ms=5, mfc=face, mec=colour, mew=1.1)
            if values.sizes["seed"] > 1:
                below = np.repeat(self.rows + 0.28, values.sizes["seed"])
                axes.plot(values.values.ravel(), below, ".", color=colour, ms=2.5, alpha=0.7)
            self._words(axes, method, where)
        style.quiet_grid(axes)

    def _words(self, axes: Axes, method: str, where: Mapping[str, int]) -> None:
        """For searches that found no boundary."""
        if self.variable != "boundary":
            return
        words = unbounded_words(self.dataset, method)
        order = points.axes_of(self.dataset)
        for row in self.rows:
            place = tuple(int(row) if axis == self.axis else where[axis] for axis in order)
            if words[place]:
                at = (0.02, int(row))
                grey: dict[str, Any] = {"color": style.GREY, "fontsize": 7, "va": "center"}
                axes.annotate(words[place], at, xycoords=("axes fraction", "data"), **grey)

    def _width(self, axes: Axes) -> None:
        shown = [self.values.isel(at | self.held).values.ravel() for at in self.panels]
        known = np.concatenate(shown)
        known = known[np.isfinite(known)]
        if view.wants_log(known):
            axes.set_xscale("log")
        elif known.size and known.min() >= 0:
            axes.set_xlim(0, 1.05 * float(known.max()) or 1)

    def _legend(self, figure: Figure) -> None:
        from matplotlib.lines import Line2D

        if len(self.methods) < 2:
            return
        handles: list[Any] = []
        for method in self.methods:
            look = view.LOOKS[method]
            marker = "|" if method == "analyse" else look.marker
            handles.append(Line2D([], [], ls="", marker=marker, color=look.colour, ms=6, mew=1.4))
        labels = [view.LOOKS[method].label for method in self.methods]
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
