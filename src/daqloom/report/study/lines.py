"""Lines of a study: means with error bars, along an axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study.frame import (
    NAMED_COLOURS,
    Mark,
    height_from,
    marker_of,
    panels_for,
    point_text,
    roles,
    same_along,
    step_ticks,
)
from daqloom.report.study.view import (
    METHOD_COLOURS,
    METHOD_DASHES,
    METHOD_LABELS,
    axis_quantity,
    bounds_text,
    chosen,
    has_error,
    held_text,
    key_name,
    on_axis,
    step_text,
    variable_quantity,
)
from daqloom.study import StudyError, unbounded
from daqloom.study.points import (
    BOUND,
    RATE,
    is_numeric,
    methods_of,
    operating_point,
    saturated,
    shown_variable,
    spread,
)

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


def lines(dataset: Dataset, variable: str | None = None, mark: Mark = None) -> Figure:
    """Means over seeds with standard deviations: a line for each method and step of a second axis.
    A third axis becomes small multiples. Saturated points are hollow and not joined. `mark` is the
    operating point, `{"event.rate": 12e3, "event.size": 5e6}`. Raises StudyError."""
    variable = shown_variable(dataset, variable)
    point = operating_point(dataset, mark)
    return Lines(dataset, variable, point).draw()


def lines_caption(dataset: Dataset, variable: str, mark: Mark = None) -> str:
    """What a reader of `lines` has to know."""
    point = operating_point(dataset, mark)
    chosen_roles = roles(dataset, point)
    sentences = []
    if has_error(dataset, variable):
        sentences.append(
            f"Means of {dataset.sizes['seed']} seeds; bars are one standard deviation."
        )
    for axis, most in ((chosen_roles.colour, MOST_COLOURS), (chosen_roles.panel, MOST_PANELS)):
        if axis and is_numeric(dataset, axis) and dataset.sizes[axis] > most:
            sentences.append(
                f"{most} of {dataset.sizes[axis]} steps of {key_name(axis)} are drawn."
            )
    return " ".join([*sentences, *_shared_caption(dataset, point, chosen_roles.held)])


def _shared_caption(
    dataset: Dataset, point: Mapping[str, float], held: Mapping[str, int]
) -> Iterator[str]:
    if bool(saturated(dataset).any()):
        yield (
            "Hollow points are saturated: they demand more events than the links carry, so that "
            "their values depend on the length of the run; no line joins them, and the axis may "
            "end below them."
        )
    if held:
        yield f"Drawn for {held_text(dataset, held)}."


class Lines:
    """One variable along an axis, drawn panel by panel."""

    def __init__(self, dataset: Dataset, variable: str, point: Mapping[str, float]) -> None:
        self.roles = roles(dataset, point)
        self.point = point
        self.dataset = dataset
        held = self.roles.held
        self.values = spread(dataset[variable].isel(held))
        self.hollow = saturated(dataset).isel(held)
        self.methods = methods_of(dataset, variable)
        self.y = variable_quantity(dataset, variable)
        self.x = axis_quantity(dataset, self.roles.x)
        self.numeric = is_numeric(dataset, self.roles.x)
        self.bound: DataArray | None = None
        self.alike = {m for m in self.methods if same_along(self.values.mean, m, self.roles.colour)}
        self.sought = dataset[variable].attrs.get("key", "") if variable == "boundary" else ""
        if self.sought == RATE and BOUND in dataset:
            self.bound = dataset[BOUND].isel(held).max(["by", "seed"])

    def draw(self) -> Figure:
        """All panels, one for each step of their axis."""
        import matplotlib as mpl

        panel = self.roles.panel
        steps = chosen(self.dataset.sizes[panel], MOST_PANELS) if panel else [None]
        with mpl.rc_context(style.RC):
            figure, places = panels_for(len(steps))
            for place, step in zip(places, steps, strict=True):
                at = {} if step is None or panel is None else {panel: step}
                self.panel(place, at)
                if at and panel:
                    text = step_text(self.dataset, panel, self.dataset[panel].values[step])
                    place.set_title(f"{key_name(panel)} {text}")
            self.heights(places[0])
            self.legend(figure, places[0])
            figure.supylabel(self.y.label, fontsize=9)
            figure.supxlabel(self.x.label, fontsize=9)
        return figure

    def panel(self, axes: Axes, at: dict[str, int]) -> None:
        """The lines at one step of the panels' axis."""
        colours = self._colours()
        for (colour, step, _), width in zip(colours, self._widths(len(colours)), strict=True):
            where = at | ({self.roles.colour: step} if self.roles.colour else {})
            for method in self.methods:
                if method not in self.alike:
                    self._line(axes, where, method, colour or METHOD_COLOURS.get(method), width)
            self._bound(axes, where)
        for method in self.alike:
            where = at | ({self.roles.colour: 0} if self.roles.colour else {})
            self._line(axes, where, method, METHOD_COLOURS.get(method))
        self._operating(axes)
        if not self.numeric:
            axes.set_xticks(range(len(self.x.values)), [str(v) for v in self.x.values])
            axes.margins(x=0.15)
        else:
            step_ticks(axes.xaxis, self.x)
        style.quiet_grid(axes)

    def heights(self, axes: Axes) -> None:
        """Room for all panels; hollow points that would press all others down are left out."""
        reach = (self.values.mean + self.values.deviation) / self.y.divisor
        solid, hollow = (reach.where(where).values for where in (~self.hollow, self.hollow))
        height_from(axes, self.values.mean.values / self.y.divisor, solid)
        known = solid[np.isfinite(solid)], hollow[np.isfinite(hollow)]
        if axes.get_yscale() == "linear" and all(part.size for part in known):
            axes.set_ylim(top=1.05 * min(known[1].max(), FAR * known[0].max()))
            axes.set_ylim(top=max(axes.get_ylim()[1], 1.05 * known[0].max()))

    def _bound(self, axes: Axes, where: dict[str, Any]) -> None:
        """The rate that the links carry, beside a searched rate."""
        if self.bound is not None and self.numeric:
            values = self.bound.isel(where).values / self.y.divisor
            axes.plot(self.x.values / self.x.divisor, values, **BOUND_LOOK)

    def _widths(self, count: int) -> list[float]:
        """Lines of names often lie on one another: each is thinner than those below it."""
        if self.roles.colour is None or is_numeric(self.dataset, self.roles.colour):
            return [WIDTH] * count
        return [WIDTH * (1 + 1.5 * above / count) for above in reversed(range(count))]

    def _line(
        self, axes: Axes, where: dict[str, Any], method: str, colour: Any, width: float = WIDTH
    ) -> None:
        mean = self.values.mean.sel({"by": method}).isel(where).values / self.y.divisor
        error = self.values.deviation.sel({"by": method}).isel(where).values / self.y.divisor
        hollow = self.hollow.isel(where).values
        x = self.x.values / self.x.divisor if self.numeric else np.arange(len(mean))
        solid = np.where(hollow, np.nan, mean)
        formula = method == "analyse"
        axes.errorbar(
            x,
            solid,
            yerr=np.where(error > 0, error, np.nan) if error.any() else None,
            color=colour,
            ls=METHOD_DASHES.get(method, "-.") if self.numeric else "",
            lw=width,
            marker="_" if formula and not self.numeric else "" if formula else marker_of(method),
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
            marker=marker_of(method),
            ms=4.5,
            mfc="white",
            mec=colour,
            mew=1.1,
        )

    def _operating(self, axes: Axes) -> None:
        look: dict[str, Any] = {"color": style.GREY, "lw": 0.9, "ls": (0, (2, 3)), "zorder": 1.5}
        at = on_axis(self.dataset, self.roles.x, self.point)
        if at is not None:
            axes.axvline(at / self.x.divisor, **look)
        if at is not None and self.sought in self.point:  # the paper's fig. 3: two lines that cross
            axes.axhline(self.point[self.sought] / self.y.divisor, **look)

    def _colours(self) -> list[tuple[str | None, int, str]]:
        axis = self.roles.colour
        if axis is None:
            return [(None, 0, "")]
        named = not is_numeric(self.dataset, axis)
        most = len(NAMED_COLOURS) if named else MOST_COLOURS
        steps = chosen(self.dataset.sizes[axis], most)
        colours = NAMED_COLOURS if named else _sequence(len(steps))
        values = self.dataset[axis].values
        return [
            (colour, step, step_text(self.dataset, axis, values[step]))
            for colour, step in zip(colours, steps, strict=False)
        ]

    def legend(self, figure: Figure, axes: Axes) -> None:
        """Beside the panels, where nothing can lie under it."""
        from matplotlib.lines import Line2D

        entries: list[Any] = []
        blank = Line2D([], [], ls="")
        if self.roles.colour:
            entries.append((blank, key_name(self.roles.colour)))
            colours = self._colours()
            if is_numeric(self.dataset, self.roles.colour):
                colours.reverse()  # the highest number above, as its line mostly is
            for colour, _, text in colours:
                entries.append((Line2D([], [], color=colour, lw=3), text))
            entries.append((blank, ""))
        for method in self.methods:
            coloured = self.roles.colour is None or method in self.alike
            colour = METHOD_COLOURS.get(method, style.BLUE) if coloured else style.GREY
            formula = method == "analyse"
            dash = METHOD_DASHES.get(method, "-.")
            line = Line2D(
                [],
                [],
                color=colour,
                lw=1.3,
                ls=dash if self.numeric else "",
                marker=("" if self.numeric else "_") if formula else marker_of(method),
                ms=10 if formula else 4.5,
            )
            entries.append((line, METHOD_LABELS.get(method, method)))
        if self.bound is not None and self.numeric:
            entries.append((Line2D([], [], **BOUND_LOOK), "bound of the links"))
        if bool(self.hollow.any()):
            hollow = Line2D([], [], ls="", marker="o", mfc="white", mec=style.GREY, ms=4.5)
            entries.append((hollow, "links saturated"))
        if on_axis(self.dataset, self.roles.x, self.point) is not None:
            line = Line2D([], [], color=style.GREY, lw=0.9, ls=(0, (2, 3)))
            entries.append((line, "operating point\n" + point_text(self.point)))
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
    told = unbounded.sentence(counts, about["find"], *bounds_text(dataset))
    return f"{searched} {told}".rstrip()


def lines_beside(dataset: Dataset, variables: Sequence[str], mark: Mark = None) -> Figure:
    """`lines` of each variable, a panel each, with one legend. Raises StudyError where the study's
    axes need the panels for themselves."""
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
