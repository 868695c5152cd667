"""Lines of a study: means with error bars, along an axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study import view
from daqloom.study import StudyError, points, unbounded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset


MOST_COLOURS = 5
MOST_PANELS = 6
WIDTH, MARK = 1.3, 4.5
FAR = 1.6
"""Times the highest solid point: hollow ones above that are left out."""
BOUND_LOOK: dict[str, Any] = {"color": style.GREY, "lw": 1.1, "ls": (0, (1, 1))}


def lines(dataset: Dataset, variable: str | None = None) -> Figure:
    """Means over seeds with standard deviations: a line for each method and step of a second axis.
    A third axis becomes small multiples. Saturated points are hollow and not joined. Raises
    StudyError."""
    return Lines(dataset, points.shown_variable(dataset, variable)).draw()


def _is_range(dataset: Dataset) -> bool:
    """Return whether bars go from the lowest seed to the highest."""
    return bool(dataset.attrs.get("bars") == "range")


def lines_caption(dataset: Dataset, variable: str) -> str:
    """What a reader of `lines` has to know."""
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
    if bool(points.saturated(dataset).any()):
        sentences.append(
            "Hollow points are saturated: they demand more events than the links carry, so that "
            "their values depend on the length of the run; no line joins them, and the axis may "
            "end below them."
        )
    return " ".join([*sentences, *view.held_caption(dataset, used.held)])


class Lines:
    """One variable along an axis, drawn panel by panel."""

    def __init__(self, dataset: Dataset, variable: str) -> None:
        self.roles = view.roles(dataset)
        self.point = points.operating_point(dataset)
        self.dataset = dataset
        held = self.roles.held
        self.values = points.spread(dataset[variable].isel(held))
        self.is_range = _is_range(dataset)
        self.hollow = points.saturated(dataset).isel(held)
        self.methods = points.methods_of(dataset, variable)
        self.y = view.variable_quantity(dataset, variable)
        self.x = view.axis_quantity(dataset, self.roles.x)
        self.numeric = points.is_numeric(dataset, self.roles.x)
        self.places, self.order = view.along(dataset, self.roles.x)
        self.bound: DataArray | None = None
        self.alike = {
            m for m in self.methods if view.same_along(self.values.mean, m, self.roles.colour)
        }
        self.sought = dataset[variable].attrs.get("key", "") if variable == "boundary" else ""
        if self.sought == points.RATE and points.BOUND in dataset:
            self.bound = dataset[points.BOUND].isel(held).max(["by", "seed"])

    @style.in_style
    def draw(self) -> Figure:
        """All panels, one for each step of their axis."""
        panel = self.roles.panel
        steps = view.steps_of(self.dataset, panel, MOST_PANELS)
        figure, places = view.panels_for(len(steps))
        for place, (at, text) in zip(places, steps, strict=True):
            self.panel(place, at)
            if panel:
                place.set_title(f"{view.key_name(panel)} {text}")
        self.heights(places[0])
        self.legend(figure, places[0], self.without_value())
        figure.supylabel(self.y.label, fontsize=9)
        figure.supxlabel(self.x.label, fontsize=9)
        return figure

    def panel(self, axes: Axes, at: dict[str, int]) -> None:
        """The lines at one step of the panels' axis."""
        colours = self._colours()
        for (colour, step, _), width in zip(colours, self._widths(len(colours)), strict=True):
            for method in self.methods:
                if method not in self.alike:
                    self._line(axes, at | step, method, colour or view.LOOKS[method].colour, width)
            self._bound(axes, at | step)
        for method in self.alike:
            where = at | ({self.roles.colour: 0} if self.roles.colour else {})
            self._line(axes, where, method, view.LOOKS[method].colour)
        self._operating(axes)
        if not self.numeric:
            axes.set_xticks(range(len(self.x.values)), [str(v) for v in self.x.values])
            axes.margins(x=0.15)
        else:
            view.step_ticks(axes.xaxis, self.x, self.places)
        style.quiet_grid(axes)

    def heights(self, axes: Axes) -> None:
        """Room for all panels; hollow points that would press all others down are left out."""
        above = self.values.mean + self.values.deviation
        reach = (self.values.highest if self.is_range else above) / self.y.divisor
        solid, hollow = (reach.where(where).values for where in (~self.hollow, self.hollow))
        view.height_from(axes, self.values.mean.values / self.y.divisor, solid)
        known = solid[np.isfinite(solid)], hollow[np.isfinite(hollow)]
        if axes.get_yscale() == "linear" and all(part.size for part in known):
            axes.set_ylim(top=1.05 * min(known[1].max(), FAR * known[0].max()))
            axes.set_ylim(top=max(axes.get_ylim()[1], 1.05 * known[0].max()))

    def _bound(self, axes: Axes, where: dict[str, Any]) -> None:
        """The rate that the links carry, beside a searched rate."""
        if self.bound is not None and self.numeric:
            values = self.bound.isel(where).values / self.y.divisor
            axes.plot(self.places, self._placed(values), **BOUND_LOOK)

    def _placed(self, values: Any) -> Any:
        """Values by the steps of x, shape (…, n), in the order of `places`; NaN at the gap."""
        return np.where(np.array(self.order) < 0, np.nan, values[..., self.order])

    def _widths(self, count: int) -> list[float]:
        """Lines of names often lie on one another: each is thinner than those below it."""
        if self.roles.colour is None or points.is_numeric(self.dataset, self.roles.colour):
            return [WIDTH] * count
        return [WIDTH * (1 + 1.5 * above / count) for above in reversed(range(count))]

    def _error(self, method: str, where: dict[str, Any]) -> Any:
        """Lengths of the bars below and above the means, shape (2, n)."""
        found = self.values
        mean, deviation = found.mean, found.deviation
        ends = (mean - found.lowest, found.highest - mean) if self.is_range else (deviation,) * 2
        lengths = [end.sel({"by": method}).isel(where).values for end in ends]
        return np.maximum(np.array(lengths), 0) / self.y.divisor

    def _line(
        self, axes: Axes, where: dict[str, Any], method: str, colour: Any, width: float = WIDTH
    ) -> None:
        mean = self._placed(self.values.mean.sel({"by": method}).isel(where).values)
        mean = mean / self.y.divisor
        error = self._placed(self._error(method, where))
        hollow = self.hollow.isel(where).values[self.order]
        x = self.places
        solid = np.where(hollow, np.nan, mean)
        formula, look = method == "analyse", view.LOOKS[method]
        axes.errorbar(
            x,
            solid,
            yerr=np.where(error.max(axis=0) > 0, error, np.nan) if np.nansum(error) else None,
            color=colour,
            ls=look.dash if self.numeric else "",
            lw=width,
            marker="_" if formula and not self.numeric else "" if formula else look.marker,
            ms=14 if formula else MARK * (width / WIDTH) ** 0.5,
            capsize=2.5,
            elinewidth=1.1,
        )
        if formula and self.numeric and np.isfinite(solid).sum() == 1:
            axes.plot(x, solid, "_", color=colour, ms=14, mew=1.6)
        axes.plot(
            x,
            np.where(hollow, mean, np.nan),
            ls="",
            marker=look.marker,
            ms=4.5,
            mfc="white",
            mec=colour,
            mew=1.1,
        )

    def _operating(self, axes: Axes) -> None:
        look: dict[str, Any] = {"color": style.GREY, "lw": 0.9, "ls": (0, (2, 3)), "zorder": 1.5}
        at = view.on_axis(self.dataset, self.roles.x)
        if at is not None:
            axes.axvline(at / self.x.divisor, **look)
        if at is not None and self.sought in self.point:  # the paper's fig. 3: two lines that cross
            axes.axhline(self.point[self.sought] / self.y.divisor, **look)

    def _colours(self) -> list[tuple[str | None, dict[str, int], str]]:
        """Colour, how its step is selected, and the name of that step."""
        axis = self.roles.colour
        if axis is None:
            return [(None, {}, "")]
        named = not points.is_numeric(self.dataset, axis)
        steps = view.steps_of(
            self.dataset, axis, len(view.NAMED_COLOURS) if named else MOST_COLOURS
        )
        colours = view.NAMED_COLOURS if named else _sequence(len(steps))
        return [(colour, *step) for colour, step in zip(colours, steps, strict=False)]

    def without_value(self) -> list[str]:
        """Names of the colours without a line: steps at which the variable has no value."""
        known, by = self.values.mean.notnull(), {"by": self.methods}
        colours = self._colours() if self.roles.colour else []
        return [text for _, step, text in colours if not bool(known.sel(by).isel(step).any())]

    def legend(self, figure: Figure, axes: Axes, without_value: Sequence[str] = ()) -> None:
        """Beside the panels, where nothing can lie under it. Names of colours `without_value` are
        marked."""
        from matplotlib.lines import Line2D

        entries: list[Any] = []
        blank = Line2D([], [], ls="")
        if self.roles.colour:
            entries.append((blank, view.key_name(self.roles.colour)))
            colours = self._colours()
            if points.is_numeric(self.dataset, self.roles.colour):
                colours.reverse()  # the highest number above, as its line mostly is
            for colour, _, text in colours:
                shown = f"{text} (no value)" if text in without_value else text
                entries.append((Line2D([], [], color=colour, lw=3), shown))
            entries.append((blank, ""))
        for method in self.methods:
            coloured = self.roles.colour is None or method in self.alike
            formula, look = method == "analyse", view.LOOKS[method]
            line = Line2D(
                [],
                [],
                color=look.colour if coloured else style.GREY,
                lw=1.3,
                ls=look.dash if self.numeric else "",
                marker=("" if self.numeric else "_") if formula else look.marker,
                ms=10 if formula else 4.5,
            )
            entries.append((line, look.label))
        if self.bound is not None and self.numeric:
            entries.append((Line2D([], [], **BOUND_LOOK), "bound of the links"))
        if bool(self.hollow.any()):
            hollow = Line2D([], [], ls="", marker="o", mfc="white", mec=style.GREY, ms=4.5)
            entries.append((hollow, "links saturated"))
        if view.on_axis(self.dataset, self.roles.x) is not None:
            line = Line2D([], [], color=style.GREY, lw=0.9, ls=(0, (2, 3)))
            entries.append((line, "operating point\n" + view.point_text(self.dataset)))
        handles, labels = zip(*entries, strict=True)
        figure.legend(handles, labels, loc="outside right upper", frameon=False)


def _sequence(count: int) -> list[str]:
    """From dark to light, told apart in grey as well."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    places = np.linspace(0.0, 0.84, count) if count > 1 else [0.4]
    return [to_hex(colormaps["viridis"](place)) for place in places]


def search_caption(dataset: Dataset) -> str:
    """What was searched, and how often its answer lies at the end of what was tried."""
    if "boundary" not in dataset:
        return ""
    about = dataset["boundary"].attrs
    searched = f"Search for the {about['find']} {about['key']} with {about['where']}."
    counts = Counter(status for status in dataset["boundary_status"].values.ravel() if status)
    told = unbounded.sentence(counts, about["find"], *view.bounds_text(dataset))
    return f"{searched} {told}".rstrip()


@style.in_style
def lines_beside(dataset: Dataset, variables: Sequence[str]) -> Figure:
    """`lines` of each variable, a panel each, with one legend. Raises StudyError where the study's
    axes need the panels for themselves."""
    drawn = [Lines(dataset, name) for name in variables]
    if drawn[0].roles.panel is not None:
        raise StudyError("variables stand side by side where the study has one or two axes")
    figure, places = view.panels_for(len(drawn), wide=3.9, high=3.9, same_heights=False)
    for axes, one in zip(places, drawn, strict=True):
        one.panel(axes, {})
        one.heights(axes)
        axes.set(xlabel=one.x.label, ylabel=one.y.label)
        if without := one.without_value():
            axes.set_title(f"no value: {', '.join(without)}", color=style.GREY, weight="normal")
    drawn[0].legend(figure, places[0])
    return figure
