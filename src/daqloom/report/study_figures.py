"""Figures of a study for print: each a function from a dataset to a figure.

In a notebook:

    dataset = daqloom.open_study("studies/atlas-min-buffer.toml")
    study_figures.lines(dataset)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study_view import (
    BOUND,
    METHOD_COLOURS,
    METHOD_DASHES,
    METHOD_LABELS,
    METHOD_MARKERS,
    RATE,
    Quantity,
    axes_of,
    axis_quantity,
    chosen,
    has_error,
    held_text,
    hold,
    is_log_spaced,
    is_numeric,
    key_name,
    methods_of,
    on_axis,
    operating_point,
    saturated,
    shown_variable,
    spread,
    step_text,
    variable_quantity,
    wants_log,
)
from daqloom.study.errors import StudyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

MOST_COLOURS = 5
MOST_PANELS = 6
MOST_BOXES = 12
FAR = 1.6
"""Times the highest solid point: hollow ones above that are left out."""
NAMED_COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.BLACK, style.GREY)
ONE_PANEL = (7.2, 4.2)
BOUND_LOOK: dict[str, Any] = {"color": style.GREY, "lw": 1.1, "ls": (0, (1, 1))}
Mark = Mapping[str, float] | None


@dataclass(frozen=True)
class Roles:
    """Which axis is drawn how. `held` are steps of the axes that find no room."""

    x: str
    colour: str | None
    panel: str | None
    held: dict[str, int]


def roles(dataset: Dataset, point: Mapping[str, float]) -> Roles:
    """Numbers go along x; names go into colours before numbers do; then panels, at most."""
    axes = axes_of(dataset)
    if not axes:
        raise StudyError("the study has no axis: there is nothing to draw along")
    x = next((a for a in axes if is_numeric(dataset, a) and dataset.sizes[a] > 1), axes[0])
    rest = sorted((a for a in axes if a != x), key=lambda a: is_numeric(dataset, a))
    single = [a for a in rest if dataset.sizes[a] == 1]
    rest = [a for a in rest if dataset.sizes[a] > 1]
    colour, panel = [*rest, None, None][:2]
    held = hold(dataset, [*rest[2:], *single], point)
    return Roles(x, colour, panel, held)


def lines(dataset: Dataset, variable: str | None = None, mark: Mark = None) -> Figure:
    """Means over seeds with standard errors: a line for each method and step of a second axis.

    A third axis becomes small multiples. Saturated points are hollow and not joined. `mark` is the
    operating point, `{"event.rate": 12e3, "event.size": 5e6}`. Raises StudyError.
    """
    variable = shown_variable(dataset, variable)
    point = operating_point(dataset, mark)
    return _Lines(dataset, variable, point).draw()


def lines_caption(dataset: Dataset, variable: str, mark: Mark = None) -> str:
    """What a reader of `lines` has to know."""
    point = operating_point(dataset, mark)
    chosen_roles = roles(dataset, point)
    sentences = []
    if has_error(dataset, variable):
        sentences.append(
            f"Means of {dataset.sizes['seed']} seeds; bars are one standard error of the mean."
        )
    for axis, most in ((chosen_roles.colour, MOST_COLOURS), (chosen_roles.panel, MOST_PANELS)):
        if axis and is_numeric(dataset, axis) and dataset.sizes[axis] > most:
            sentences.append(
                f"{most} of {dataset.sizes[axis]} steps of {key_name(axis)} are drawn."
            )
    return " ".join([*sentences, *_shared_caption(dataset, point, chosen_roles.held)])


def search_caption(dataset: Dataset) -> str:
    """What was searched, and how often its answer lies at the end of what was tried."""
    if "boundary" not in dataset:
        return ""
    about = dataset["boundary"].attrs
    searched = f"Searched: the {about['find']} {about['key']} with {about['where']}."
    status = dataset["boundary_status"].values
    ended, all_ = int((~np.isin(status, ["found", ""])).sum()), int((status != "").sum())
    if ended:
        searched += f" {ended} of {all_} searches found no boundary inside their bounds."
    return searched


class _Lines:
    def __init__(self, dataset: Dataset, variable: str, point: Mapping[str, float]) -> None:
        self.roles = roles(dataset, point)
        self.point = point
        self.dataset = dataset
        held = self.roles.held
        self.values = spread(dataset[variable].isel(held))
        self.hollow = saturated(dataset, point).isel(held)
        self.methods = methods_of(dataset, variable)
        self.y = variable_quantity(dataset, variable)
        self.x = axis_quantity(dataset, self.roles.x)
        self.numeric = is_numeric(dataset, self.roles.x)
        self.bound: DataArray | None = None
        self.alike = {m for m in self.methods if _alike(self.values.mean, m, self.roles.colour)}
        of_rate = variable == "boundary" and dataset[variable].attrs.get("key") == RATE
        if of_rate and BOUND in dataset:
            self.bound = dataset[BOUND].isel(held).max(["method", "seed"])

    def draw(self) -> Figure:
        import matplotlib as mpl

        panel = self.roles.panel
        steps = chosen(self.dataset.sizes[panel], MOST_PANELS) if panel else [None]
        with mpl.rc_context(style.RC):
            figure, places = _panels(len(steps))
            for place, step in zip(places, steps, strict=True):
                at = {} if step is None or panel is None else {panel: step}
                self._panel(place, at)
                if at and panel:
                    text = step_text(self.dataset, panel, self.dataset[panel].values[step])
                    place.set_title(f"{key_name(panel)} {text}")
            self._heights(places[0])
            self._legend(figure, places[0])
            figure.supylabel(self.y.label, fontsize=9)
            figure.supxlabel(self.x.label, fontsize=9)
        return figure

    def _panel(self, axes: Axes, at: dict[str, int]) -> None:
        for colour, step, _ in self._colours():
            where = at | ({self.roles.colour: step} if self.roles.colour else {})
            for method in self.methods:
                if method not in self.alike:
                    self._line(axes, where, method, colour or METHOD_COLOURS.get(method))
            self._bound(axes, where)
        for method in self.alike:
            where = at | ({self.roles.colour: 0} if self.roles.colour else {})
            self._line(axes, where, method, METHOD_COLOURS.get(method))
        self._operating(axes)
        if not self.numeric:
            axes.set_xticks(range(len(self.x.values)), [str(v) for v in self.x.values])
            axes.margins(x=0.15)
        elif is_log_spaced(self.x.values):
            _log_scale(axes.xaxis, self.x.values / self.x.divisor)
        style.quiet_grid(axes)

    def _heights(self, axes: Axes) -> None:
        """Room for all panels; hollow points that would press all others down are left out."""
        reach = (self.values.mean + self.values.error) / self.y.divisor
        solid, hollow = (reach.where(where).values for where in (~self.hollow, self.hollow))
        _y_from(axes, self.values.mean.values / self.y.divisor, solid)
        known = solid[np.isfinite(solid)], hollow[np.isfinite(hollow)]
        if axes.get_yscale() == "linear" and all(part.size for part in known):
            axes.set_ylim(top=1.05 * min(known[1].max(), FAR * known[0].max()))
            axes.set_ylim(top=max(axes.get_ylim()[1], 1.05 * known[0].max()))

    def _bound(self, axes: Axes, where: dict[str, Any]) -> None:
        """The rate that the links carry, beside a searched rate."""
        if self.bound is not None and self.numeric:
            values = self.bound.isel(where).values / self.y.divisor
            axes.plot(self.x.values / self.x.divisor, values, **BOUND_LOOK)

    def _line(self, axes: Axes, where: dict[str, Any], method: str, colour: Any) -> None:
        mean = self.values.mean.sel({"method": method}).isel(where).values / self.y.divisor
        error = self.values.error.sel({"method": method}).isel(where).values / self.y.divisor
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
            lw=1.3,
            marker="_" if formula and not self.numeric else "" if formula else _marker(method),
            ms=14 if formula else 4.5,
            capsize=2.5,
            elinewidth=1.1,
        )
        if formula and self.numeric and np.isfinite(solid).sum() == 1:
            axes.plot(x, solid, "_", color=colour, ms=14, mew=1.6)
        axes.plot(
            x,
            np.where(hollow, mean, np.nan),
            ls="",
            marker=_marker(method),
            ms=4.5,
            mfc="white",
            mec=colour,
            mew=1.1,
        )

    def _operating(self, axes: Axes) -> None:
        at = on_axis(self.dataset, self.roles.x, self.point)
        if at is not None:
            axes.axvline(at / self.x.divisor, color=style.GREY, lw=0.9, ls=(0, (2, 3)), zorder=1.5)

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

    def _legend(self, figure: Figure, axes: Axes) -> None:
        """Beside the panels, where nothing can lie under it."""
        from matplotlib.lines import Line2D

        entries: list[Any] = []
        blank = Line2D([], [], ls="")
        if self.roles.colour:
            entries.append((blank, key_name(self.roles.colour)))
            for colour, _, text in reversed(self._colours()):
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
                marker=("" if self.numeric else "_") if formula else _marker(method),
                ms=10 if formula else 4.5,
            )
            entries.append((line, METHOD_LABELS.get(method, method)))
        if self.bound is not None and self.numeric:
            entries.append((Line2D([], [], **BOUND_LOOK), "bound of the links"))
        if bool(self.hollow.any()):
            hollow = Line2D([], [], ls="", marker="o", mfc="white", mec=style.GREY, ms=4.5)
            entries.append((hollow, "links are full"))
        if on_axis(self.dataset, self.roles.x, self.point) is not None:
            line = Line2D([], [], color=style.GREY, lw=0.9, ls=(0, (2, 3)))
            entries.append((line, "operating point\n" + _point_text(self.dataset, self.point)))
        handles, labels = zip(*entries, strict=True)
        figure.legend(handles, labels, loc="outside right upper", frameon=False)


def heat_map(dataset: Dataset, variable: str | None = None, mark: Mark = None) -> Figure:
    """Means over the first two numeric axes: a panel for each method, and simulation by formula.

    Saturated points are hatched. Raises StudyError where there are no two numeric axes of two
    steps or more.
    """
    import matplotlib as mpl

    variable = shown_variable(dataset, variable)
    point = operating_point(dataset, mark)
    plane = plane_of(dataset)
    if plane is None:
        raise StudyError("a heat map needs two axes of numbers with two steps or more")
    held = hold(dataset, [a for a in axes_of(dataset) if a not in plane], point)
    quantity = variable_quantity(dataset, variable)
    methods = methods_of(dataset, variable)
    mean = spread(dataset[variable].isel(held)).mean / quantity.divisor
    full = saturated(dataset, point).isel(held).transpose(plane[1], plane[0]).values
    tables = {m: mean.sel({"method": m}).transpose(plane[1], plane[0]).values for m in methods}
    ratio = {"analyse", "simulate"} <= tables.keys()
    with mpl.rc_context(style.RC):
        figure, places = _panels(len(methods) + ratio, most_columns=3, wide=3.6, high=3.9)
        norm = _norm(np.stack([np.where(full, np.nan, t) for t in tables.values()]))
        drawn: Any = None
        for axes, (method, table) in zip(places, tables.items(), strict=False):
            drawn = _map(axes, dataset, plane, table, full, {"norm": norm, "cmap": "viridis"})
            axes.set_title(METHOD_LABELS.get(method, method).capitalize())
        figure.colorbar(
            drawn,
            ax=places[: len(methods)],
            label=quantity.label,
            location="bottom",
            shrink=0.8,
            aspect=20 * 0.8 * len(methods),
            format=lambda value, _: f"{value:,.6g}",
        )
        if ratio:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = tables["simulate"] / tables["analyse"]
            drawn = _ratio(places[-1], dataset, plane, share, full)
            figure.colorbar(drawn, ax=places[-1], location="bottom", label="ratio (1: equal)")
        for axes in places:
            _cross(axes, dataset, plane, point)
        places[0].set_ylabel(axis_quantity(dataset, plane[1]).label)
    return figure


def heat_map_caption(dataset: Dataset, mark: Mark = None) -> str:
    """What a reader of `heat_map` has to know."""
    point = operating_point(dataset, mark)
    plane = plane_of(dataset) or ("", "")
    held = hold(dataset, [a for a in axes_of(dataset) if a not in plane], point)
    cross = all(on_axis(dataset, axis, point) is not None for axis in plane)
    sentences = [f"The cross is the operating point, {_point_text(dataset, point)}."] * cross
    if bool(saturated(dataset, point).isel(held).any()):
        sentences.append("Hatched: the links cannot carry this event rate, whatever the buffer.")
    if held:
        sentences.append(f"Drawn for {held_text(dataset, held)}.")
    return " ".join(sentences)


def plane_of(dataset: Dataset) -> tuple[str, str] | None:
    """The first two axes of numbers with two steps or more."""
    axes = [a for a in axes_of(dataset) if is_numeric(dataset, a) and dataset.sizes[a] > 1]
    return (axes[0], axes[1]) if len(axes) > 1 else None


def box_plots(dataset: Dataset, variable: str | None = None, mark: Mark = None) -> Figure:
    """The seeds of every step of the first axis: median, quartiles, and each seed as a dot.

    Methods without random numbers are a line. Further axes as in `lines`. Raises StudyError where
    the study has a single seed.
    """
    variable = shown_variable(dataset, variable)
    if dataset.sizes["seed"] < 2:
        raise StudyError("box plots need two seeds or more; set repeat.seeds in the study")
    return _Boxes(dataset, variable, operating_point(dataset, mark)).draw()


def box_plots_caption(dataset: Dataset, mark: Mark = None) -> str:
    """What a reader of `box_plots` has to know."""
    point = operating_point(dataset, mark)
    chosen_roles = roles(dataset, point)
    held = chosen_roles.held | _box_held(dataset, chosen_roles, point)
    sentences = [
        f"Each dot is one of {dataset.sizes['seed']} seeds; boxes span the quartiles with the "
        "median, whiskers all seeds."
    ]
    if held:
        sentences.append(f"Drawn for {held_text(dataset, held)}.")
    return " ".join(sentences)


def _box_held(dataset: Dataset, used: Roles, point: Mapping[str, float]) -> dict[str, int]:
    """Boxes have room for names as colours, not for a second axis of numbers."""
    axes = [a for a in (used.colour, used.panel) if a]
    named = [a for a in axes if not is_numeric(dataset, a)][:1]
    return hold(dataset, [a for a in axes if a not in named], point)


class _Boxes:
    def __init__(self, dataset: Dataset, variable: str, point: Mapping[str, float]) -> None:
        used = roles(dataset, point)
        held = used.held | _box_held(dataset, used, point)
        self.x = axis_quantity(dataset, used.x)
        self.steps = chosen(dataset.sizes[used.x], MOST_BOXES)
        steps = dataset[used.x].values[self.steps]
        numeric = is_numeric(dataset, used.x)
        self.texts = [f"{v / self.x.divisor:.4g}" if numeric else str(v) for v in steps]
        self.y = variable_quantity(dataset, variable)
        values = dataset[variable].isel(held).isel({used.x: self.steps}) / self.y.divisor
        self.groups = list(self._groups(dataset, values, used, held, methods_of(dataset, variable)))

    def _groups(
        self,
        dataset: Dataset,
        values: DataArray,
        used: Roles,
        held: Mapping[str, int],
        methods: list[str],
    ) -> Iterator[tuple[str, str, bool, Any]]:
        """Label, colour, whether all seeds agree, and values by step and seed."""
        named = next((a for a in (used.colour, used.panel) if a and a not in held), None)
        for method in methods:
            of_method = values.sel({"method": method})
            label = METHOD_LABELS.get(method, method)
            if named is None or _alike(of_method, None, named):
                of_method = of_method if named is None else of_method.isel({named: 0})
                table = of_method.transpose(used.x, "seed").values
                yield label, METHOD_COLOURS.get(method, style.BLUE), method == "analyse", table
                continue
            for colour, name in zip(NAMED_COLOURS, dataset[named].values, strict=False):
                table = of_method.sel({named: name}).transpose(used.x, "seed").values
                text = f"{name}" if len(methods) == 1 else f"{name}, {label}"
                yield text, colour, method == "analyse", table

    def draw(self) -> Figure:
        import matplotlib as mpl
        from matplotlib.lines import Line2D

        boxes = [group for group in self.groups if not group[2]]
        width = 0.72 / max(1, len(boxes))
        with mpl.rc_context(style.RC):
            figure, (axes,) = _panels(1)
            for place, group in enumerate(boxes):
                offset = (place - (len(boxes) - 1) / 2) * width
                _boxes(axes, group[3], offset, width * 0.8, group[1])
            for _, colour, alike, table in self.groups:
                if alike:
                    middle = np.nanmax(np.where(np.isfinite(table), table, -np.inf), axis=1)
                    middle = np.where(np.isfinite(middle), middle, np.nan)
                    at = np.arange(len(middle))
                    axes.hlines(middle, at - 0.42, at + 0.42, color=colour, lw=1.4, ls="--")
            axes.set_xticks(range(len(self.steps)), self.texts)
            if max(map(len, self.texts)) * len(self.texts) > 75:
                axes.tick_params("x", rotation=30)
            axes.set_xlim(-0.6, len(self.steps) - 0.4)
            axes.set(xlabel=self.x.label, ylabel=self.y.label)
            _y_from(axes, np.concatenate([g[3].ravel() for g in self.groups]))
            style.quiet_grid(axes)
            handles = [
                Line2D([], [], color=colour, lw=1.4 if alike else 5, ls="--" if alike else "-")
                for _, colour, alike, _ in self.groups
            ]
            labels = [group[0] for group in self.groups]
            figure.legend(handles, labels, loc="outside right upper", frameon=False)
        return figure


def _boxes(axes: Axes, table: Any, offset: float, width: float, colour: str) -> None:
    found = [(i, row[np.isfinite(row)]) for i, row in enumerate(table)]
    found = [(i, row) for i, row in found if row.size]
    if not found:
        return
    places = [i + offset for i, _ in found]
    axes.boxplot(
        [row for _, row in found],
        positions=places,
        widths=width,
        whis=(0, 100),
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": _pale(colour), "edgecolor": colour},
        medianprops={"color": colour, "linewidth": 1.8},
        whiskerprops={"color": colour},
        capprops={"color": colour},
    )
    for place, (_, row) in zip(places, found, strict=True):
        # Beside one another, so that equal values show; the same in every rendering.
        shift = (np.arange(row.size) - (row.size - 1) / 2) * min(0.12, width * 0.7 / row.size)
        axes.plot(place + shift, row, ".", color=colour, ms=4, alpha=0.75)


def _alike(values: DataArray, method: str | None, axis: str | None) -> bool:
    """Whether a formula does not depend on an axis: one line says it for all steps."""
    if method is not None:
        values = values.sel({"method": method})
    if str(values["method"].values) != "analyse" or axis is None:
        return False
    first = values.isel({axis: 0})
    return bool(((values == first) | (values.isnull() & first.isnull())).all())


def _marker(method: str) -> str:
    return METHOD_MARKERS.get(method, "^")


def _pale(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return tuple(0.82 + 0.18 * part for part in to_rgb(colour))


def _map(
    axes: Axes,
    dataset: Dataset,
    plane: tuple[str, str],
    table: Any,
    full: Any,
    look: dict[str, Any],
) -> Any:
    x, y = (axis_quantity(dataset, axis) for axis in plane)
    edges = _edges(x.values / x.divisor), _edges(y.values / y.divisor)
    drawn = axes.pcolormesh(*edges, np.ma.masked_invalid(table), rasterized=True, **look)
    for row, column in zip(*np.nonzero(full), strict=True):
        axes.fill_between(
            edges[0][column : column + 2],
            edges[1][row],
            edges[1][row + 1],
            facecolor="#f2f2f2",
            edgecolor="#a8a8a8",
            hatch="////",
            lw=0,
        )
    axes.set_xlabel(x.label)
    for quantity, axis in ((x, axes.xaxis), (y, axes.yaxis)):
        if is_log_spaced(quantity.values):
            _log_scale(axis, quantity.values / quantity.divisor)
    return drawn


def _ratio(axes: Axes, dataset: Dataset, plane: tuple[str, str], share: Any, full: Any) -> Any:
    from matplotlib.colors import TwoSlopeNorm

    known = share[np.isfinite(share) & ~full & (share > 0)]
    far = float(np.abs(np.log2(known)).max(initial=0.1)) if known.size else 0.1
    far = min(max(far, 0.1), 4.0)
    norm = TwoSlopeNorm(1.0, 2**-far, 2**far)
    drawn = _map(axes, dataset, plane, share, full, {"norm": norm, "cmap": "RdBu_r"})
    axes.set_title("Simulation ÷ formula")
    return drawn


def _cross(
    axes: Axes, dataset: Dataset, plane: tuple[str, str], point: Mapping[str, float]
) -> None:
    at = [on_axis(dataset, axis, point) for axis in plane]
    if at[0] is None or at[1] is None:
        return
    x, y = (
        value / axis_quantity(dataset, axis).divisor
        for value, axis in zip((at[0], at[1]), plane, strict=True)
    )
    axes.plot(x, y, "P", ms=10, mfc="white", mec=style.BLACK, mew=1.2, zorder=5)


def _norm(values: Any) -> Any:
    from matplotlib.colors import LogNorm, Normalize

    known = values[np.isfinite(values)]
    if not known.size:
        return Normalize(0, 1)
    low, high = float(known.min()), float(known.max())
    if low == high:
        return Normalize(min(0.0, low), max(high, 1e-9))
    return LogNorm(low, high) if wants_log(known) else Normalize(min(0.0, low), high)


def _edges(centres: Any) -> Any:
    """Half-way between neighbours: between ratios where the axis is logarithmic."""
    log = is_log_spaced(centres)
    values = np.log(centres) if log else np.asarray(centres, dtype=float)
    order = np.concatenate(
        [
            [values[0] - (values[1] - values[0]) / 2],
            (values[1:] + values[:-1]) / 2,
            [values[-1] + (values[-1] - values[-2]) / 2],
        ]
    )
    return np.exp(order) if log else order


def _log_scale(axis: Any, steps: Any) -> None:
    """A logarithmic axis, with the study's own steps as ticks."""
    from matplotlib.ticker import FixedLocator, NullLocator

    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    few = [float(steps[i]) for i in chosen(len(steps), 8)]
    axis.set_major_locator(FixedLocator(few))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,.4g}")


def _y_from(axes: Axes, values: Any, reach: Any = None) -> None:
    """From zero, or logarithmic where the values span orders of magnitude.

    `reach` are ends of error bars, where there are any.
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return
    if wants_log(known):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    elif known.min() >= 0:
        ends = known if reach is None or not np.isfinite(reach).any() else reach
        axes.set_ylim(0, 1.05 * float(np.nanmax(ends)) or 1)


def _sequence(count: int) -> list[str]:
    """From dark to light, told apart in grey as well."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    places = np.linspace(0.0, 0.84, count) if count > 1 else [0.4]
    return [to_hex(colormaps["viridis"](place)) for place in places]


def _panels(
    count: int, most_columns: int = 3, wide: float = 3.1, high: float = 2.7
) -> tuple[Figure, list[Axes]]:
    """Panels that share their axes."""
    from matplotlib.figure import Figure

    columns = 2 if count == 4 else min(count, most_columns)
    rows = -(-count // columns)
    size = ONE_PANEL if count == 1 else (max(wide * columns + 1.6, 6.4), high * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for spare in grid[count:]:
        spare.remove()
    for place in grid[max(0, count - columns) : count]:
        place.tick_params(labelbottom=True)
    return figure, list(grid[:count])


def _point_text(dataset: Dataset, point: Mapping[str, float]) -> str:
    shown = []
    for key, value in point.items():
        unit = {"event.rate": "Hz", "event.size": "B"}[key]
        divisor, name = style.prefixed(unit, value)
        shown.append(Quantity("", name, divisor).text(value))
    return " × ".join(shown)


def _shared_caption(
    dataset: Dataset, point: Mapping[str, float], held: Mapping[str, int]
) -> Iterator[str]:
    if bool(saturated(dataset, point).any()):
        yield (
            "Hollow points ask for more events than the links carry: what they show depends on "
            "how long they ran; no line joins them, and the axis may end below them."
        )
    if held:
        yield f"Drawn for {held_text(dataset, held)}."
