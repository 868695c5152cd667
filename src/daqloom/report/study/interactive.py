"""Three-dimensional interactive figures of a study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import Axis, Figure, Line, Mark, Panel, Scale, Surface, dots
from daqloom.report.study import view
from daqloom.study import StudyError
from daqloom.study.file import points

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

MOST_SLICES = 6
COLOURS = {"simulate": style.ORANGE}
"""Colours of methods drawn as points, distinct from the blue and green of the surface."""


def surface(dataset: Dataset, variable: str | None = None) -> Figure:
    """Return a surface over the first two numeric axes, from the formula or else the first method;
    all other methods are points. The legend switches the steps of a third axis, whose first step is
    shown. Raises StudyError without two numeric axes of at least two steps."""
    dataset, plane = view.unlimited_last(dataset), points.plane_of(dataset)
    if plane is None:
        raise StudyError("a surface requires two numeric axes with at least two steps each")
    third, held = _held_steps(dataset)
    shown = _Surface(dataset.isel(held), points.shown_variable(dataset, variable), plane)
    marks: list[Mark] = []
    for place, (at, step) in enumerate(view.steps_of(dataset, third, MOST_SLICES)):
        marks += shown.methods(at, step, is_hidden=place > 0)
    panel = shown.panel([*marks, *shown.post()])
    return Figure([panel], (12, 6.5), legend_title=view.key_name(third) if third else "")


def _held_steps(dataset: Dataset) -> tuple[str | None, dict[str, int]]:
    """Return the axis that the legend of `surface` switches, and fixed steps of further axes."""
    rest = [a for a in points.axes_of(dataset) if a not in (points.plane_of(dataset) or ())]
    rest.sort(key=lambda a: (dataset.sizes[a] == 1, points.is_numeric(dataset, a)))
    third = rest.pop(0) if rest and dataset.sizes[rest[0]] > 1 else None
    return third, view.hold(dataset, rest)


class _Surface:
    def __init__(self, dataset: Dataset, variable: str, plane: tuple[str, str]) -> None:
        self.dataset, self.plane = dataset, plane
        self.values, self.full = points.spread(dataset[variable]), points.saturation_flags(dataset)
        self.x, self.y = (view.axis_quantity(dataset, axis) for axis in plane)
        self.z = view.variable_quantity(dataset, variable)
        self.order = sorted(points.methods_of(dataset, variable), key=lambda by: by != "analyse")
        solid = self.values.mean.where(~self.full) / self.z.divisor
        known = solid.values[np.isfinite(solid.values)]
        self.log = view.wants_log(known, 1000)
        self.floor = float(known.min()) if self.log else 0.0
        # The highest value below saturation; saturated points (hollow) may lie far above.
        self.height = float(known.max(initial=0.0)) * 1.08 or 1.0
        top = float(np.nanmax(solid.sel({"by": self.order[0]}).values, initial=self.floor)) or 1.0
        self.scale = Scale(style.sequence(64, top=1.0), self.floor, top, self.log)
        quantities = zip((self.x, self.y, self.z), "xyz", strict=True)
        lines = (f"{each.name} %{{{axis}:.4g}} {each.unit}" for each, axis in quantities)
        self.hover = "<br>".join(line.replace("<", "&lt;") for line in lines)

    def methods(self, at: dict[str, int], step: str, *, is_hidden: bool) -> Iterator[Mark]:
        """Yield the surface and the points of other methods; saturated points are hollow."""
        x, y = self.x.places, self.y.places
        across, down = np.meshgrid(x, y)
        hollow = self._table(self.full, at)
        for method in self.order:
            by = {"by": method}
            mean = self._table(self.values.mean.sel(by), at) / self.z.divisor
            error = self._table(self.values.deviation.sel(by), at) / self.z.divisor
            name = ", ".join(filter(None, (view.LOOKS[method].label, step)))
            if method == self.order[0]:
                solid = np.where(hollow, np.nan, mean)
                yield Surface(x, y, solid, self.scale, name, is_hidden, self.hover)
                continue
            colour = COLOURS.get(method, view.LOOKS[method].colour)
            look: dict[str, Any] = {"colour": colour, "size": 3, "hover": self.hover}
            for full, words in ((False, ""), (True, ", links are full")):
                kept = np.isfinite(mean) & (hollow == full)
                if kept.any():
                    look |= {"hollow": full, "is_hidden": is_hidden or full}
                    look |= {"z": mean[kept], "error": [error[kept]] * 2, "error_along": "z"}
                    yield dots(across[kept], down[kept], name + words, **look)

    def post(self) -> Iterator[Mark]:
        """Yield a vertical line at the operating point of the study."""
        x, y = (view.on_axis(self.dataset, axis) for axis in self.plane)
        if x is not None and y is not None:
            name = f"operating point, {self.x.text(x)} × {self.y.text(y)}"
            at = [x / self.x.divisor] * 2, [y / self.y.divisor] * 2
            yield Line(at[0], at[1], name, style.BLACK, 4.5, z=[self.floor, self.height])

    def panel(self, marks: list[Mark]) -> Panel:
        # A label at z = 0 would overlap with the last label of the y axis.
        ticks = [at for at in style.round_steps(self.floor, self.height, log=self.log) if at]
        z = Axis(self.z.label, (self.floor, self.height), log=self.log, ticks=ticks)
        return Panel(marks, view.step_axis(self.x), view.step_axis(self.y), z=z)

    def _table(self, values: DataArray, at: dict[str, int]) -> Any:
        return values.isel(at).transpose(self.plane[1], self.plane[0]).values
