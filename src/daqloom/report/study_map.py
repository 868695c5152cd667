"""Maps of a study: a variable over two axes, and one method by another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study_frame import (
    Mark,
    panels_for,
    point_text,
    step_ticks,
)
from daqloom.report.study_view import (
    METHOD_LABELS,
    axis_quantity,
    held_text,
    hold,
    is_log_spaced,
    on_axis,
    variable_quantity,
    wants_log,
)
from daqloom.study.errors import StudyError
from daqloom.study.points import (
    axes_of,
    methods_of,
    operating_point,
    plane_of,
    saturated,
    shown_variable,
    spread,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset


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
    full = saturated(dataset).isel(held).transpose(plane[1], plane[0]).values
    tables = {m: mean.sel({"by": m}).transpose(plane[1], plane[0]).values for m in methods}
    ratio = {"analyse", "simulate"} <= tables.keys()
    with mpl.rc_context(style.RC):
        figure, places = panels_for(len(methods) + ratio, most_columns=3, wide=3.6, high=3.9)
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
    sentences = [f"The cross is the operating point, {point_text(point)}."] * cross
    if bool(saturated(dataset).isel(held).any()):
        sentences.append("Hatched: the links cannot carry this event rate, whatever the buffer.")
    if held:
        sentences.append(f"Drawn for {held_text(dataset, held)}.")
    return " ".join(sentences)


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
        step_ticks(axis, quantity)
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
