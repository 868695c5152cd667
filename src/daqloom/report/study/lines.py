"""Line figures of a study: means over seeds, with error bars, along an axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import Axis, Figure, Legend, Line, Mark, Panel, Rule, Text, dots
from daqloom.report.study import view
from daqloom.study import StudyError
from daqloom.study.file import points, search_bounds

if TYPE_CHECKING:
    from xarray import DataArray, Dataset


MOST_COLOURS = 5
MOST_PANELS = 6
WIDTH, MARK = 1.3, 4.5
FAR = 1.6
"""Limit on the height of saturated (hollow) points, as a multiple of the highest other point."""
BOUND = Line([], [], "bound of the links", style.GREY, 1.1, "dot")
LEGEND = Legend("outside right upper")


def lines(dataset: Dataset, variable: str | None = None) -> Figure:
    """Return means over seeds with error bars: a line for each method and step of a second axis; a
    third axis has panels. Saturated points are hollow and not joined. Raises StudyError."""
    return _Lines(dataset, points.shown_variable(dataset, variable)).figure()


def _is_range(dataset: Dataset) -> bool:
    """Whether error bars extend from the lowest seed to the highest."""
    return bool(dataset.attrs.get("bars") == "range")


def lines_caption(dataset: Dataset, variable: str) -> str:
    """Return the caption of `lines`."""
    used = view.roles(dataset)
    sentences = []
    if view.has_error(dataset, variable):
        is_range = _is_range(dataset)
        bars = "go from the lowest to the highest" if is_range else "are one standard deviation"
        sentences.append(f"Means of {dataset.sizes['seed']} seeds; bars {bars}.")
    for axis, most in ((used.colour, MOST_COLOURS), (used.panel, MOST_PANELS)):
        if axis and points.is_numeric(dataset, axis) and dataset.sizes[axis] > most:
            sentences.append(
                f"{most} of {dataset.sizes[axis]} steps of {view.key_name(axis)} are drawn."
            )
    if bool(points.saturation_flags(dataset).any()):
        sentences.append(
            "Hollow points are saturated: they demand more events than the links carry, so that "
            "their values depend on the length of the run; no line joins them, and the axis may "
            "end below them."
        )
    return " ".join([*sentences, *view.held_caption(dataset, used.held)])


class _Lines:
    """Lines of one variable along an axis."""

    def __init__(self, dataset: Dataset, variable: str) -> None:
        self.roles = view.roles(dataset)
        self.point = points.operating_point(dataset)
        self.dataset = dataset
        held = self.roles.held
        self.values = points.spread(dataset[variable].isel(held))
        self.is_range = _is_range(dataset)
        self.hollow = points.saturation_flags(dataset).isel(held)
        self.methods = points.methods_of(dataset, variable)
        self.y = view.variable_quantity(dataset, variable)
        self.is_count = view.is_count(dataset, variable)
        self.x = view.axis_quantity(dataset, self.roles.x)
        self.numeric = points.is_numeric(dataset, self.roles.x)
        self.places, self.order = view.along(dataset, self.roles.x)
        self.bound: DataArray | None = None
        self.alike = {
            m for m in self.methods if view.same_along(self.values.mean, m, self.roles.colour)
        }
        self.key = dataset[variable].attrs.get("key", "") if variable == "boundary" else ""
        if self.key == points.RATE and points.BOUND in dataset:
            self.bound = dataset[points.BOUND].isel(held).max(["by", "seed"])

    def figure(self) -> Figure:
        """Return the figure with one panel for each step of the panels' axis."""
        name = self.roles.panel
        panels = [
            self.panel(at, f"{view.key_name(name)} {text}" if name else "")
            for at, text in view.steps_of(self.dataset, name, MOST_PANELS)
        ]
        keys = self.keys(self.without_value())
        labels: dict[str, Any] = {"x_label": self.x.label, "y_label": self.y.label}
        return view.panels_for(panels, legend=LEGEND, keys=keys, **labels)

    def panel(self, at: dict[str, int], title: str, *, labelled: bool = False) -> Panel:
        """Return the lines at one step of the panels' axis."""
        marks: list[Mark] = []
        colours = self._colours()
        for (colour, step, _), width in zip(colours, self._widths(len(colours)), strict=True):
            for method in self.methods:
                if method not in self.alike:
                    shown = colour or view.LOOKS[method].colour
                    marks += self._line(at | step, method, shown, width)
            marks += self._bound(at | step)
        for method in self.alike:
            where = at | ({self.roles.colour: 0} if self.roles.colour else {})
            marks += self._line(where, method, view.LOOKS[method].colour)
        x = Axis(ticks=range(len(self.x.values)), names=[*map(str, self.x.values)], margin=0.15)
        x = view.step_axis(self.x, "") if self.numeric else x
        y = self._heights()
        if labelled:
            x, y = replace(x, label=self.x.label), replace(y, label=self.y.label)
        return Panel([*self._operating(), *marks], x, y, title)

    def _heights(self) -> Axis:
        """Return an axis for all panels, which may end below hollow points far above solid ones."""
        above = self.values.mean + self.values.deviation
        reach = (self.values.highest if self.is_range else above) / self.y.divisor
        solid, hollow = (reach.where(where).values for where in (~self.hollow, self.hollow))
        axis = view.height_axis("", self.values.mean.values / self.y.divisor, solid)
        axis = replace(axis, integer=self.is_count)
        known = solid[np.isfinite(solid)], hollow[np.isfinite(hollow)]
        if axis.log or not all(part.size for part in known):
            return axis
        top = max(min(known[1].max(), FAR * known[0].max()), known[0].max())
        return replace(axis, ends=(axis.ends[0], 1.05 * float(top)))

    def _bound(self, where: dict[str, Any]) -> list[Mark]:
        """Return the event rate that the links carry, if the searched key is a rate."""
        if self.bound is None or not self.numeric:
            return []
        values = self.bound.isel(where).values / self.y.divisor
        return [replace(BOUND, x=self.places, y=self._align(values), name="")]

    def _align(self, values: Any) -> Any:
        """Return values, shape (…, n), in the order of `places`, with NaN at the gap."""
        return np.where(np.array(self.order) < 0, np.nan, values[..., self.order])

    def _widths(self, count: int) -> list[float]:
        """Return widths; each named line is thinner than those below, since they often coincide."""
        if self.roles.colour is None or points.is_numeric(self.dataset, self.roles.colour):
            return [WIDTH] * count
        return [WIDTH * (1 + 1.5 * above / count) for above in reversed(range(count))]

    def _error(self, method: str, where: dict[str, Any]) -> Any:
        """Return the lengths of error bars below and above the means, shape (2, n)."""
        found = self.values
        mean, deviation = found.mean, found.deviation
        ends = (mean - found.lowest, found.highest - mean) if self.is_range else (deviation,) * 2
        lengths = [end.sel({"by": method}).isel(where).values for end in ends]
        return np.maximum(np.array(lengths), 0) / self.y.divisor

    def _line(
        self, where: dict[str, Any], method: str, colour: str, width: float = WIDTH
    ) -> list[Mark]:
        mean = self._align(self.values.mean.sel({"by": method}).isel(where).values)
        mean = mean / self.y.divisor
        hollow = self.hollow.isel(where).values[self.order]
        solid = np.where(hollow, np.nan, mean)
        formula, look = method == "analyse", view.LOOKS[method]
        is_point = self.numeric and np.isfinite(solid).sum() == 1
        line = Line(
            self.places,
            solid,
            colour=colour,
            width=width if self.numeric else 0,
            dash=look.dash,
            marker=look.marker if not formula else "_" if is_point or not self.numeric else "",
            size=14 if formula else MARK * (width / WIDTH) ** 0.5,
            error=self._align(self._error(method, where)),
        )
        unsettled = np.where(hollow, mean, np.nan)
        dim = dots(self.places, unsettled, colour=colour, marker=look.marker, hollow=True)
        return [line, *([dim] if hollow.any() else [])]

    def _operating(self) -> list[Mark]:
        at = view.on_axis(self.dataset, self.roles.x)
        if at is None:
            return []
        crossing = [Rule(self.point[self.key] / self.y.divisor)] if self.key in self.point else []
        return [Rule(at / self.x.divisor, upright=True), *crossing]  # as in fig. 3

    def _colours(self) -> list[tuple[str | None, dict[str, int], str]]:
        """Return colour, selection and name for each step of the axis that has colours."""
        axis = self.roles.colour
        if axis is None:
            return [(None, {}, "")]
        named = not points.is_numeric(self.dataset, axis)
        most = len(view.NAMED_COLOURS) if named else MOST_COLOURS
        steps = view.steps_of(self.dataset, axis, most)
        colours = view.NAMED_COLOURS if named else style.sequence(len(steps))
        return [(colour, *step) for colour, step in zip(colours, steps, strict=False)]

    def without_value(self) -> list[str]:
        """Return the names of steps on the colour axis for which the variable has no value."""
        known, by = self.values.mean.notnull(), {"by": self.methods}
        colours = self._colours() if self.roles.colour else []
        return [text for _, step, text in colours if not bool(known.sel(by).isel(step).any())]

    def keys(self, without_value: Sequence[str] = ()) -> list[Mark]:
        """Return the legend entries; colours in `without_value` are marked "no value"."""
        marks: list[Mark] = []
        if self.roles.colour:
            colours = self._colours()
            if points.is_numeric(self.dataset, self.roles.colour):
                colours.reverse()  # the highest number on top, as its line mostly is
            marks.append(dots([], [], view.key_name(self.roles.colour), marker=""))
            for colour, _, text in colours:
                shown = f"{text} (no value)" if text in without_value else text
                marks.append(Line([], [], shown, str(colour), width=3))
            marks.append(dots([], [], " ", marker=""))
        for method in self.methods:
            coloured = self.roles.colour is None or method in self.alike
            formula, look = method == "analyse", view.LOOKS[method]
            colour = look.colour if coloured else style.GREY
            marker = ("" if self.numeric else "_") if formula else look.marker
            more: dict[str, Any] = {"marker": marker, "size": 10 if formula else MARK}
            width = WIDTH if self.numeric else 0
            marks.append(Line([], [], look.label, colour, width, look.dash, **more))
        if self.bound is not None and self.numeric:
            marks.append(BOUND)
        if bool(self.hollow.any()):
            marks.append(dots([], [], "links saturated", colour=style.GREY, hollow=True))
        if view.on_axis(self.dataset, self.roles.x) is not None:
            text = "operating point\n" + view.point_text(self.dataset)
            marks.append(Line([], [], text, style.GREY, 0.9, "sparse"))
        return marks


def search_caption(dataset: Dataset) -> str:
    """Return sentences on the search and on the number of searches without a boundary."""
    if "boundary" not in dataset:
        return ""
    about = dataset["boundary"].attrs
    searched = f"Search for the {about['find']} {about['key']} with {about['where']}."
    counts = Counter(status for status in dataset["boundary_status"].values.ravel() if status)
    ended = search_bounds.sentence(counts, about["find"], *view.bounds_text(dataset))
    return f"{searched} {ended}".rstrip()


def lines_in_panels(dataset: Dataset, variables: Sequence[str]) -> Figure:
    """Return `lines` of each variable, one panel each, with a common legend. Raises StudyError if
    an axis of the study is already shown as panels."""
    drawn = [_Lines(dataset, name) for name in variables]
    if drawn[0].roles.panel is not None:
        raise StudyError("variables stand side by side where the study has one or two axes")
    panels = []
    for one in drawn:
        panel = one.panel({}, "", labelled=True)
        if without := one.without_value():
            note = Text(0, 1, [f"no value: {', '.join(without)}"], style.GREY, 9, shares="xy")
            note = replace(note, across="left", down="bottom", offset=(0, 6))
            panel = replace(panel, marks=[*panel.marks, note])
        panels.append(panel)
    sizes: dict[str, Any] = {"wide": 3.9, "high": 3.9, "shared": "x"}
    return view.panels_for(panels, legend=LEGEND, keys=drawn[0].keys(), **sizes)
