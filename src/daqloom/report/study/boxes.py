"""Box plots of a study, which show the spread of a metric over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import (
    Axis,
    Bars,
    Figure,
    Legend,
    Line,
    Mark,
    Panel,
    dots,
    evenly,
    segments,
)
from daqloom.report.study import view
from daqloom.study import StudyError
from daqloom.study.file import points

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

MOST_BOXES = 12


def box_plots(dataset: Dataset, variable: str | None = None) -> Figure:
    """Return median, quartiles and all seeds at each step of the first axis; a line for a method
    without random numbers. Further axes are as in `lines`. Raises StudyError for a single seed."""
    variable = points.shown_variable(dataset, variable)
    if dataset.sizes["seed"] < 2:
        raise StudyError("box plots require at least two seeds; set repeat.seeds in the study")
    return _Boxes(dataset, variable).figure()


def box_plots_caption(dataset: Dataset) -> str:
    """Return the caption of `box_plots`."""
    used = view.roles(dataset)
    seeds = (
        f"Each dot is one of {dataset.sizes['seed']} seeds; boxes show quartiles and median, "
        "whiskers the range of all seeds."
    )
    return " ".join([seeds, *view.held_caption(dataset, used.held | _box_held(dataset, used))])


def _box_held(dataset: Dataset, used: view.Roles) -> dict[str, int]:
    """Return the fixed steps of axes other than x, except one axis of names, shown as colours."""
    axes = [a for a in (used.colour, used.panel) if a]
    named = [a for a in axes if not points.is_numeric(dataset, a)][:1]
    return view.hold(dataset, [a for a in axes if a not in named])


class _Boxes:
    def __init__(self, dataset: Dataset, variable: str) -> None:
        used = view.roles(dataset)
        held = used.held | _box_held(dataset, used)
        self.x = view.axis_quantity(dataset, used.x)
        order = view.ordered_steps(dataset, used.x)
        self.steps = [order[place] for place in evenly(len(order), MOST_BOXES)]
        steps = dataset[used.x].values[self.steps]
        numeric = points.is_numeric(dataset, used.x)
        self.texts = [str(each) for each in steps]
        if numeric:
            self.texts = [*map(self.x.place_text, self.x.places[self.steps])]
        self.y = view.variable_quantity(dataset, variable)
        values = dataset[variable].isel(held).isel({used.x: self.steps}) / self.y.divisor
        self.groups = list(self._groups(dataset, values, used.x, _name(used, held), variable))

    def _groups(
        self, dataset: Dataset, values: DataArray, x: str, named: str | None, variable: str
    ) -> Iterator[tuple[str, str, bool, Any]]:
        """Yield for each group: label, colour, whether all seeds agree, and values (step, seed)."""
        methods = points.methods_of(dataset, variable)
        for method in methods:
            of_method = values.sel({"by": method})
            label = view.LOOKS[method].label
            if named is None or view.same_along(of_method, None, named):
                of_method = of_method if named is None else of_method.isel({named: 0})
                table = of_method.transpose(x, "seed").values
                yield label, view.LOOKS[method].colour, method == "analyse", table
                continue
            for colour, name in zip(view.NAMED_COLOURS, dataset[named].values, strict=False):
                table = of_method.sel({named: name}).transpose(x, "seed").values
                text = f"{name}" if len(methods) == 1 else f"{name}, {label}"
                yield text, colour, method == "analyse", table

    def figure(self) -> Figure:
        """Return the figure with a box for each step and group."""
        boxes = [group for group in self.groups if not group[2]]
        width = 0.72 / max(1, len(boxes))
        marks: list[Mark] = []
        for place, group in enumerate(boxes):
            offset = (place - (len(boxes) - 1) / 2) * width
            marks += _boxes(group[3], offset, width * 0.8, group[1])
        keys: list[Mark] = []
        for name, colour, alike, table in self.groups:
            key = Line([], [], name, colour, 1.4 if alike else 5, "dash" if alike else "solid")
            keys.append(key)
            if alike:
                middle = np.nanmax(np.where(np.isfinite(table), table, -np.inf), axis=1)
                middle = np.where(np.isfinite(middle), middle, np.nan)
                at = np.arange(len(middle))
                ends = (at - 0.42, at + 0.42), (middle, middle)
                marks.append(segments(*ends, replace(key, name="")))
        every = np.concatenate([group[3].ravel() for group in self.groups])
        turned = 30 if max(map(len, self.texts)) * len(self.texts) > 75 else 0
        steps, names = range(len(self.steps)), self.texts
        x = Axis(self.x.label, (-0.6, len(steps) - 0.4), ticks=steps, names=names, turned=turned)
        panel = Panel(marks, x, view.height_axis(self.y.label, every))
        return view.panels_for([panel], legend=Legend("outside right upper"), keys=keys)


def _name(used: view.Roles, held: Mapping[str, int]) -> str | None:
    return next((axis for axis in (used.colour, used.panel) if axis and axis not in held), None)


def _boxes(table: Any, offset: float, width: float, colour: str) -> Iterator[Mark]:
    """Yield the marks of boxes: whiskers, boxes between quartiles, medians and seeds."""
    found = [(step + offset, row[np.isfinite(row)]) for step, row in enumerate(table)]
    found = [(place, row) for place, row in found if row.size]
    if not found:
        return
    at = np.array([place for place, _ in found])
    quartiles = np.array([np.percentile(row, (0, 25, 50, 75, 100)) for _, row in found]).T
    low, lower, middle, upper, high = quartiles
    yield dots(at, middle, marker="", colour=colour, error=[middle - low, high - middle])
    look: dict[str, Any] = {"colour": style.pale(colour), "upright": True, "edge": colour}
    yield Bars(at, upper - lower, lower, width, **look)
    ends = (at - width / 2, at + width / 2), (middle, middle)
    yield segments(*ends, Line([], [], "", colour))
    for place, row in found:
        # Shifted by a fixed amount, so that dots of equal values do not overlap.
        shift = (np.arange(row.size) - (row.size - 1) / 2) * min(0.12, width * 0.7 / row.size)
        yield dots(place + shift, row, marker=".", colour=colour, size=4, opacity=0.75)
