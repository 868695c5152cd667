"""Figure of published numbers beside the computed ones: a panel for each record."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np

from daqloom.report.figure import Axis, Figure, Legend, Line, Mark, Panel, dots, in_grid
from daqloom.report.style import BLACK, BLUE
from daqloom.study.reproduction.record import Record, Values
from daqloom.study.reproduction.table import Comparison, comparisons, place

COLUMNS = 3
ASIDE = 0.1
"""Distance of the two markers of a step from its middle, as a share of the distance of steps."""
MARGIN = 0.06
"""Free space at both ends of the axis, as a share of its range."""
LIMITS = {"equal": "D", "at least": "^", "at most": "v"}
"""Marker of a published value or bound."""
WIDEST_TITLE = 44


def figure(found: Sequence[tuple[Record, Values | None]]) -> Figure:
    """Return a panel for each record: its published value or bound, and ours with its interval."""
    panels = in_grid((_panel(record, ours) for record, ours in found), COLUMNS)
    columns, lines = min(len(panels), COLUMNS), -(-len(panels) // COLUMNS)
    keys = [dots([], [], "published", colour=BLACK, marker="D"), dots([], [], "daqloom")]
    legend = Legend("outside lower center", columns=2)
    return Figure(panels, (4.2 * columns, 0.5 + 3.4 * lines), legend=legend, keys=keys)


def _panel(record: Record, ours: Values | None) -> Panel:
    found = comparisons(record, ours, all_steps=True)
    marker = LIMITS[record.relation]
    marks: list[Mark] = []
    published = [(x - ASIDE, each) for x, each in enumerate(found) if each.published is not None]
    if published:
        error = [[record.error or 0.0] * len(published)] * 2
        look = {"colour": BLACK, "marker": marker, "error": error}
        x, y = [x for x, _ in published], [each.published for _, each in published]
        marks.append(dots(x, y, "published", **look))
    if computed := [(x + ASIDE, each) for x, each in enumerate(found) if each.value is not None]:
        marks.append(_ours(computed))
    x_axis = Axis(
        "",
        (-0.6, len(found) - 0.4),
        ticks=range(len(found)),
        names=[each.step for each in found],
        grid=False,
        turned=45.0 if len(found) > 4 else 0.0,
    )
    values = [each.published or 0.0 for each in found]
    values += [end for each in found for end in (each.low, each.high, each.value) if end]
    low, high = min(0.0, *values), max(0.0, *values)
    y_axis = Axis(record.unit, (low - MARGIN * (high - low), high + MARGIN * (high - low)))
    title = f"{place(record)}\n{textwrap.fill(record.title, WIDEST_TITLE)}"
    return Panel(marks, x_axis, y_axis, title, title_size=9.0)


def _ours(found: Sequence[tuple[float, Comparison]]) -> Line:
    y, low, high = (
        np.array([getattr(each, name) for _, each in found], dtype=float)
        for name in ("value", "low", "high")
    )
    error = np.nan_to_num([y - low, high - y])
    return dots([x for x, _ in found], y, "daqloom", colour=BLUE, error=error)
