"""Heat maps of a study: a variable over two axes, and the ratio between two methods."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import Bars, Cells, ColourBar, Figure, Mark, Panel, Scale, Text, dots
from daqloom.report.study import view
from daqloom.study import StudyError
from daqloom.study.file import points

if TYPE_CHECKING:
    from xarray import Dataset

MOST_PANELS = 6
ROOM_ACROSS, ROOM_DOWN = 1 / 9, 1 / 20
"""Least size of a cell that shows its value, as a share of its panel."""
LONGEST_LINE = 38
"""Length of a line of a title (characters)."""


@dataclass(frozen=True)
class _Table:
    """Values of a heat map and flags of saturated points, both in rows of y and columns of x."""

    title: str
    values: Any
    full: Any


def heat_map(dataset: Dataset, variable: str | None = None) -> Figure:
    """Return means over the first two numeric axes, with a panel for each method or for each step
    of an axis of names; two panels get a third with their ratio. Saturated points are hatched.
    Raises StudyError without two numeric axes of at least two steps."""
    dataset, variable = view.unlimited_last(dataset), points.shown_variable(dataset, variable)
    plane = points.plane_of(dataset)
    if plane is None:
        raise StudyError("a heat map requires two numeric axes with at least two steps each")
    quantity = view.variable_quantity(dataset, variable)
    tables = _tables(dataset, variable, plane)
    scale = _scale(np.stack([np.where(each.full, np.nan, each.values) for each in tables]))
    maps = [_panel(dataset, plane, each, scale) for each in tables]
    shown = range(len(maps))
    aspect = 20 * 0.8 * min(3, len(maps))
    bar = ColourBar(scale, quantity.label, shown, "bottom", shrink=0.8, aspect=aspect)
    if view.is_count(dataset, variable):
        bar = replace(bar, ticks=[step for step in bar.steps() if step.is_integer()])
    bars = [bar]
    if len(tables) == 2:
        ratio, ratio_scale = _ratio(*tables)
        maps.append(_panel(dataset, plane, ratio, ratio_scale))
        bars.append(ColourBar(ratio_scale, "ratio (1: equal)", [2], "bottom"))
    label = view.axis_quantity(dataset, plane[1]).label
    maps[0] = replace(maps[0], y=replace(maps[0].y, label=label))
    return view.panels_for(maps, wide=3.6, high=3.9, bars=bars)


def heat_map_caption(dataset: Dataset, variable: str | None = None) -> str:
    """Return the caption of `heat_map`."""
    plane = points.plane_of(dataset) or ("", "")
    methods = points.methods_of(dataset, points.shown_variable(dataset, variable))
    held = _held_steps(dataset, plane, _names(dataset, methods))
    cross = all(view.on_axis(dataset, axis) is not None for axis in plane)
    sentences = [f"The cross is the operating point, {view.point_text(dataset)}."] * cross
    if bool(points.saturation_flags(dataset).isel(held).any()):
        sentences.append("Hatched: the links cannot carry this event rate with any buffer.")
    return " ".join([*sentences, *view.held_caption(dataset, held)])


def _names(dataset: Dataset, methods: Sequence[str]) -> str | None:
    """Return the axis of names whose steps become panels; None if methods become panels."""
    named = [
        axis
        for axis in points.axes_of(dataset)
        if dataset.sizes[axis] > 1 and not points.is_numeric(dataset, axis)
    ]
    return named[0] if named and len(methods) <= 1 else None


def _held_steps(dataset: Dataset, plane: tuple[str, str], names: str | None) -> dict[str, int]:
    return view.hold(dataset, [a for a in points.axes_of(dataset) if a not in (*plane, names)])


def _tables(dataset: Dataset, variable: str, plane: tuple[str, str]) -> list[_Table]:
    methods = sorted(points.methods_of(dataset, variable), key=lambda method: method != "analyse")
    names = _names(dataset, methods)
    held = _held_steps(dataset, plane, names)
    down = [plane[1], plane[0]]
    divisor = view.variable_quantity(dataset, variable).divisor
    mean = points.spread(dataset[variable].isel(held)).mean / divisor
    full = points.saturation_flags(dataset).isel(held)
    if names is None:
        tables = [mean.sel({"by": method}).transpose(*down).values for method in methods]
        titles = [view.LOOKS[method].label for method in methods]
        hatched = full.transpose(*down).values
        return [_Table(*each, hatched) for each in zip(titles, tables, strict=True)]
    of_method = mean.sel({"by": methods[0]})
    return [
        _Table(text, *(part.isel(at).transpose(*down).values for part in (of_method, full)))
        for at, text in view.steps_of(dataset, names, MOST_PANELS)
    ]


def _panel(dataset: Dataset, plane: tuple[str, str], table: _Table, scale: Scale) -> Panel:
    """Return a panel with a table as colours, values in large cells, and the operating point."""
    x, y = (view.axis_quantity(dataset, axis) for axis in plane)
    centres = x.places, y.places
    across, down = (_edges(each) for each in centres)
    at = [view.on_axis(dataset, axis) for axis in plane]
    marks: list[Mark] = []
    texts = None
    if _has_room(across, centres[0], ROOM_ACROSS) and _has_room(down, centres[1], ROOM_DOWN):
        texts = np.where(np.isfinite(table.values) & ~table.full, _words(table.values), "")
    if at[0] is not None and at[1] is not None:
        cross = at[0] / x.divisor, at[1] / y.divisor
        look: dict[str, Any] = {"marker": "P", "size": 10, "colour": style.BLACK, "hollow": True}
        marks.append(dots([cross[0]], [cross[1]], **look))
        here = (centres[1] == cross[1])[:, None] & (centres[0] == cross[0])
        if texts is not None and here.any():
            above = Text(*cross, list(texts[here]), size=7, offset=(0, 11), ground=0.75)
            marks.append(above)
            texts = np.where(here, "", texts)
    rows, columns = np.nonzero(table.full)
    hatched = Bars(
        (down[rows] + down[rows + 1]) / 2,
        across[columns + 1] - across[columns],
        across[columns],
        down[rows + 1] - down[rows],
        colour="#f2f2f2",
        edge="#a8a8a8",
        hatched=True,
    )
    title = textwrap.fill(table.title[:1].upper() + table.title[1:], LONGEST_LINE)
    ends = ((float(edges[0]), float(edges[-1])) for edges in (across, down))
    axes = view.step_axis(x), view.step_axis(y, label="")
    x_axis, y_axis = (replace(axis, ends=each) for axis, each in zip(axes, ends, strict=True))
    cells = Cells(across, down, table.values, scale, texts)
    return Panel([cells, hatched, *marks], x_axis, y_axis, title)


def _words(values: Any) -> Any:
    """Return the texts of numbers with three digits."""
    rows = values.tolist()
    return np.array(
        [[f"{each:,.0f}" if abs(each) >= 100 else f"{each:.3g}" for each in row] for row in rows]
    )


def _has_room(edges: Any, centres: Any, share: float) -> bool:
    """Return whether the smallest cell covers at least `share` of its axis."""
    at = np.log(edges) if view.is_log_spaced(centres) else edges
    return float(np.diff(at).min() / (at[-1] - at[0])) >= share


def _ratio(first: _Table, second: _Table) -> tuple[_Table, Scale]:
    """Return the ratio of the second table to the first, and a colour scale symmetric about 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = second.values / first.values
    full = first.full | second.full
    known = share[np.isfinite(share) & ~full & (share > 0)]
    far = float(np.abs(np.log2(known)).max(initial=0.1)) if known.size else 0.1
    far = min(max(far, 0.1), 4.0)
    scale = Scale(style.sequence(64, "RdBu_r", 1.0), 2**-far, 2**far, log=True)
    return _Table(f"{second.title} ÷ {first.title}", share, full), scale


def _scale(values: Any) -> Scale:
    """Return a scale from zero, or a logarithmic scale for values over orders of magnitude."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    log = view.wants_log(known) and low < high
    colours = style.sequence(64, top=1.0)
    return Scale(colours, low if log else min(0.0, low), max(high, 1e-9), log)


def _edges(centres: Any) -> Any:
    """Return the edges of cells: midpoints of centres (geometric if log-spaced), and both ends."""
    log = view.is_log_spaced(centres)
    values = np.log(centres) if log else np.asarray(centres, dtype=float)
    first, last = 1.5 * values[0] - 0.5 * values[1], 1.5 * values[-1] - 0.5 * values[-2]
    edges = np.array([first, *(values[1:] + values[:-1]) / 2, last])
    return np.exp(edges) if log else edges
