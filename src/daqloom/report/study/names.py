"""Figures of studies with many named steps, such as variants: one row for each name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import Axis, Figure, Legend, Mark, Panel, Text, dots, in_grid, row_names
from daqloom.report.study import view
from daqloom.report.study.table import unbounded_words
from daqloom.study.file import points

if TYPE_CHECKING:
    from xarray import Dataset

MOST_PANELS = 6
ROW = 0.24
"""Height of a row (inches)."""


def axis_of_names(dataset: Dataset) -> str | None:
    """Return the axis of names that becomes rows: it has more steps than there are colours, or it
    is the only axis with several steps. None without such an axis."""
    several = [axis for axis in points.axes_of(dataset) if dataset.sizes[axis] > 1]
    named = [axis for axis in several if not points.is_numeric(dataset, axis)]
    longest = max(named, key=lambda axis: dataset.sizes[axis], default=None)
    if longest and (len(several) == 1 or dataset.sizes[longest] > len(view.NAMED_COLOURS)):
        return longest
    return None


def names(dataset: Dataset, variable: str | None = None) -> Figure:
    """Return means over seeds with error bars, and dots for single seeds, in a row for each name.
    Further axes become panels. Saturated points are hollow; a search without a boundary is a text.
    Raises StudyError."""
    return _Names(dataset, points.shown_variable(dataset, variable)).figure()


def names_caption(dataset: Dataset) -> str:
    """Return the caption of `names`."""
    axis = axis_of_names(dataset)
    assert axis is not None
    _, held = _panels(dataset, axis)
    sentences = []
    if dataset.sizes["seed"] > 1:
        sentences.append(
            f"Means of {dataset.sizes['seed']} seeds; bars are one standard deviation, "
            "small dots the seeds."
        )
    if bool(points.saturation_flags(dataset).any()):
        sentences.append(
            "Hollow points are saturated: they demand more events than the links carry."
        )
    return " ".join([*sentences, *view.held_caption(dataset, held)])


def _panels(dataset: Dataset, axis: str) -> tuple[list[dict[str, int]], dict[str, int]]:
    """Return the steps of other axes for each panel, and fixed steps of axes without panels."""
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

    def figure(self) -> Figure:
        columns = min(2, len(self.panels))
        rows = -(-len(self.panels) // columns)
        high = ROW * len(self.rows) + 0.6
        names = [str(name) for name in self.dataset[self.axis].values]
        y = row_names(names)
        x = self._width()
        panels = [
            Panel(list(self._marks(at | self.held)), x, y, view.steps_text(self.dataset, at))
            for at in self.panels
        ]
        size = 3.4 * columns + 2.6, high * rows + 0.7
        keys: list[Mark] = []
        for method in self.methods if len(self.methods) > 1 else ():
            look = view.LOOKS[method]
            marker = "|" if method == "analyse" else look.marker
            keys.append(dots([], [], look.label, marker=marker, colour=look.colour, size=6))
        legend = Legend("outside upper center", columns=4) if keys else None
        found = in_grid(panels, columns)
        return Figure(found, size, x_label=self.x.label, keys=keys, legend=legend, shared="xy")

    def _marks(self, where: dict[str, int]) -> Iterator[Mark]:
        hollow = points.saturation_flags(self.dataset).isel(where).values
        for method in self.methods:
            values = self.values.sel({"by": method}).isel(where).transpose(self.axis, "seed")
            look: dict[str, Any] = {"colour": view.LOOKS[method].colour}
            if method == "analyse":
                yield dots(values.values[:, 0], self.rows, marker="|", size=9, **look)
                continue
            found = points.spread(values)
            mean, error = found.mean.values, [found.deviation.values] * 2
            yield dots(mean, self.rows, marker="", error=error, error_along="x", **look)
            for is_hollow in (False, True):
                shown = np.where(hollow == is_hollow, mean, np.nan)
                marker = view.LOOKS[method].marker
                yield dots(shown, self.rows, marker=marker, size=5, hollow=is_hollow, **look)
            if values.sizes["seed"] > 1:
                below = np.repeat(self.rows + 0.28, values.sizes["seed"])
                yield dots(values.values.ravel(), below, marker=".", size=2.5, opacity=0.7, **look)
            yield from self._words(method, where)

    def _words(self, method: str, where: Mapping[str, int]) -> Iterator[Mark]:
        """Yield texts for searches without a boundary."""
        if self.variable != "boundary":
            return
        words = unbounded_words(self.dataset, method)
        order = points.axes_of(self.dataset)
        for row in map(int, self.rows):
            text = words[tuple(row if axis == self.axis else where[axis] for axis in order)]
            if text:
                yield Text(0.02, row, [text], style.GREY, 7, "left", shares="x")

    def _width(self) -> Axis:
        shown = [self.values.isel(at | self.held).values.ravel() for at in self.panels]
        return view.height_axis("", np.concatenate(shown))
