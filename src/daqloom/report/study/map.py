"""Maps of a study: a variable over two axes, and one method by another."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study import view
from daqloom.study import StudyError, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

MOST_PANELS = 6
ROOM_ACROSS, ROOM_DOWN = 1 / 9, 1 / 20
"""Shares of a panel that a cell with its value in it takes at least."""
LONGEST_LINE = 38
"""Characters of a title that have room above a panel."""


@dataclass(frozen=True)
class _Panel:
    """One map: its values, and where points are saturated, by the steps of y and x."""

    title: str
    table: Any
    full: Any


@style.in_style
def heat_map(dataset: Dataset, variable: str | None = None) -> Figure:
    """Means over the first two numeric axes: a panel for each method, or, of a single one, for each
    step of an axis of names; of two panels also the second divided by the first. Saturated points
    are hatched. Raises StudyError where there are no two numeric axes of two steps or more."""
    variable = points.shown_variable(dataset, variable)
    plane = points.plane_of(dataset)
    if plane is None:
        raise StudyError("a heat map requires two numeric axes with at least two steps each")
    quantity = view.variable_quantity(dataset, variable)
    panels = _panels(dataset, variable, plane)
    ratio = len(panels) == 2
    figure, places = view.panels_for(len(panels) + ratio, most_columns=3, wide=3.6, high=3.9)
    norm = _norm(np.stack([np.where(each.full, np.nan, each.table) for each in panels]))
    drawn: Any = None
    for axes, each in zip(places, panels, strict=False):
        drawn = _map(axes, dataset, plane, each, {"norm": norm, "cmap": "viridis"})
    figure.colorbar(
        drawn,
        ax=places[: len(panels)],
        label=quantity.label,
        location="bottom",
        shrink=0.8,
        aspect=20 * 0.8 * min(3, len(panels)),
        format=lambda value, _: f"{value:,.6g}",
    )
    if ratio:
        drawn = _ratio(places[-1], dataset, plane, *panels)
        figure.colorbar(drawn, ax=places[-1], location="bottom", label="ratio (1: equal)")
    for axes in places:
        _cross(axes, dataset, plane)
    places[0].set_ylabel(view.axis_quantity(dataset, plane[1]).label)
    return figure


def heat_map_caption(dataset: Dataset, variable: str | None = None) -> str:
    """What a reader of `heat_map` has to know."""
    plane = points.plane_of(dataset) or ("", "")
    methods = points.methods_of(dataset, points.shown_variable(dataset, variable))
    held = _held(dataset, plane, _names(dataset, methods))
    cross = all(view.on_axis(dataset, axis) is not None for axis in plane)
    sentences = [f"The cross is the operating point, {view.point_text(dataset)}."] * cross
    if bool(points.saturated(dataset).isel(held).any()):
        sentences.append("Hatched: the links cannot carry this event rate with any buffer.")
    return " ".join([*sentences, *view.held_caption(dataset, held)])


def _names(dataset: Dataset, methods: Sequence[str]) -> str | None:
    """The axis whose steps are panels: one of names, where methods do not take the room."""
    named = (
        a
        for a in points.axes_of(dataset)
        if dataset.sizes[a] > 1 and not points.is_numeric(dataset, a)
    )
    return None if len(methods) > 1 else next(named, None)


def _held(dataset: Dataset, plane: tuple[str, str], names: str | None) -> dict[str, int]:
    return view.hold(dataset, [a for a in points.axes_of(dataset) if a not in (*plane, names)])


def _panels(dataset: Dataset, variable: str, plane: tuple[str, str]) -> list[_Panel]:
    methods = sorted(points.methods_of(dataset, variable), key=lambda method: method != "analyse")
    names = _names(dataset, methods)
    held = _held(dataset, plane, names)
    down = [plane[1], plane[0]]
    mean = (
        points.spread(dataset[variable].isel(held)).mean
        / view.variable_quantity(dataset, variable).divisor
    )
    full = points.saturated(dataset).isel(held)
    if names is None:
        tables = [mean.sel({"by": method}).transpose(*down).values for method in methods]
        titles = [view.LOOKS[method].label for method in methods]
        hatched = full.transpose(*down).values
        return [_Panel(*each, hatched) for each in zip(titles, tables, strict=True)]
    of_method = mean.sel({"by": methods[0]})
    return [
        _Panel(text, *(part.isel(at).transpose(*down).values for part in (of_method, full)))
        for at, text in view.steps_of(dataset, names, MOST_PANELS)
    ]


def _map(
    axes: Axes, dataset: Dataset, plane: tuple[str, str], panel: _Panel, look: dict[str, Any]
) -> Any:
    x, y = (view.axis_quantity(dataset, axis) for axis in plane)
    centres = x.values / x.divisor, y.values / y.divisor
    edges = _edges(centres[0]), _edges(centres[1])
    drawn = axes.pcolormesh(*edges, np.ma.masked_invalid(panel.table), rasterized=True, **look)
    for row, column in zip(*np.nonzero(panel.full), strict=True):
        axes.fill_between(
            edges[0][column : column + 2],
            edges[1][row],
            edges[1][row + 1],
            facecolor="#f2f2f2",
            edgecolor="#a8a8a8",
            hatch="////",
            lw=0,
        )
    _write(axes, drawn, centres, edges, panel)
    axes.set_title(textwrap.fill(panel.title[:1].upper() + panel.title[1:], LONGEST_LINE))
    axes.set_xlabel(x.label)
    for quantity, axis in ((x, axes.xaxis), (y, axes.yaxis)):
        view.step_ticks(axis, quantity)
    return drawn


def _write(
    axes: Axes, drawn: Any, centres: tuple[Any, Any], edges: tuple[Any, Any], panel: _Panel
) -> None:
    """The values in their cells, where the smallest of these has room."""
    across, down = (_least_share(*each) for each in zip(edges, centres, strict=True))
    if across < ROOM_ACROSS or down < ROOM_DOWN:
        return
    for row, column in zip(*np.nonzero(np.isfinite(panel.table) & ~panel.full), strict=True):
        value = float(panel.table[row, column])
        red, green, blue, _ = drawn.cmap(drawn.norm(value))
        dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.55  # luma of ITU-R BT.601
        axes.annotate(
            f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}",
            (centres[0][column], centres[1][row]),
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if dark else style.BLACK,
        )


def _least_share(edges: Any, centres: Any) -> float:
    """Of an axis, that the smallest cell takes."""
    at = np.log(edges) if view.is_log_spaced(centres) else edges
    return float(np.diff(at).min() / (at[-1] - at[0]))


def _ratio(
    axes: Axes, dataset: Dataset, plane: tuple[str, str], first: _Panel, second: _Panel
) -> Any:
    """The second panel divided by the first."""
    from matplotlib.colors import TwoSlopeNorm

    with np.errstate(divide="ignore", invalid="ignore"):
        share = second.table / first.table
    full = first.full | second.full
    known = share[np.isfinite(share) & ~full & (share > 0)]
    far = float(np.abs(np.log2(known)).max(initial=0.1)) if known.size else 0.1
    far = min(max(far, 0.1), 4.0)
    norm = TwoSlopeNorm(1.0, 2**-far, 2**far)
    panel = _Panel(f"{second.title} ÷ {first.title}", share, full)
    return _map(axes, dataset, plane, panel, {"norm": norm, "cmap": "RdBu_r"})


def _cross(axes: Axes, dataset: Dataset, plane: tuple[str, str]) -> None:
    from matplotlib.text import Annotation

    at = [view.on_axis(dataset, axis) for axis in plane]
    if at[0] is None or at[1] is None:
        return
    x, y = (
        value / view.axis_quantity(dataset, axis).divisor
        for value, axis in zip((at[0], at[1]), plane, strict=True)
    )
    for written in axes.texts:
        if isinstance(written, Annotation) and written.xy == (x, y):
            written.set_position((0, 10))  # above the cross
    axes.plot(x, y, "P", ms=10, mfc="white", mec=style.BLACK, mew=1.2, zorder=5)


def _norm(values: Any) -> Any:
    from matplotlib.colors import LogNorm, Normalize

    known = values[np.isfinite(values)]
    if not known.size:
        return Normalize(0, 1)
    low, high = float(known.min()), float(known.max())
    if low == high:
        return Normalize(min(0.0, low), max(high, 1e-9))
    return LogNorm(low, high) if view.wants_log(known) else Normalize(min(0.0, low), high)


def _edges(centres: Any) -> Any:
    """Half-way between neighbours: between ratios where the axis is logarithmic."""
    log = view.is_log_spaced(centres)
    values = np.log(centres) if log else np.asarray(centres, dtype=float)
    order = np.concatenate(
        [
            [values[0] - (values[1] - values[0]) / 2],
            (values[1:] + values[:-1]) / 2,
            [values[-1] + (values[-1] - values[-2]) / 2],
        ]
    )
    return np.exp(order) if log else order
