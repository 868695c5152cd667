"""What figures of a study have in common: the roles of axes, panels, scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study.view import METHOD_MARKERS, Quantity, hold, is_log_spaced, wants_log
from daqloom.study import StudyError
from daqloom.study.points import axes_of, is_numeric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import DataArray, Dataset

NAMED_COLOURS = (
    style.BLUE,
    style.ORANGE,
    style.GREEN,
    style.PURPLE,
    style.BLACK,
    style.SKY,
    style.AMBER,
    style.GREY,
)
MOST_TICKS = 8
ONE_PANEL = (7.2, 4.2)
"""Size of a figure of one panel (inches)."""
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


def marker_of(method: str) -> str:
    """The sign of a method's points."""
    return METHOD_MARKERS.get(method, "^")


def same_along(values: DataArray, method: str | None, axis: str | None) -> bool:
    """Whether a formula does not depend on an axis: one line says it for all steps."""
    if method is not None:
        values = values.sel({"by": method})
    if str(values["by"].values) != "analyse" or axis is None:
        return False
    first = values.isel({axis: 0})
    return bool(((values == first) | (values.isnull() & first.isnull())).all())


def step_ticks(axis: Any, quantity: Quantity) -> None:
    """The study's own steps as ticks: those with room on the logarithmic axis of steps that are
    spread over ratios; else all, if all have room."""
    from matplotlib.ticker import FixedLocator, NullLocator

    log = is_log_spaced(quantity.values)
    steps = sorted(map(float, quantity.values / quantity.divisor))
    shown = _apart(steps, math.log if log else float)
    if log:
        (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    elif shown != steps:
        return
    axis.set_major_locator(FixedLocator(shown))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,.4g}")


def _apart(steps: list[float], scale: Callable[[float], float]) -> list[float]:
    """Steps with room for their numbers: the ends, and some between."""
    first, inner, last = steps[0], steps[1:-1], steps[-1]
    room = (scale(last) - scale(first)) / MOST_TICKS
    kept = [first]
    for step in inner:
        if min(scale(step) - scale(kept[-1]), scale(last) - scale(step)) >= room:
            kept.append(step)
    return [*kept, last] if last > first else kept


def height_from(axes: Axes, values: Any, reach: Any = None) -> None:
    """From zero, or logarithmic where the values span orders of magnitude. `reach` are ends of
    error bars, where there are any."""
    known = values[np.isfinite(values)]
    if not known.size:
        return
    if wants_log(known):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    elif known.min() >= 0:
        ends = known if reach is None or not np.isfinite(reach).any() else reach
        axes.set_ylim(0, 1.05 * float(np.nanmax(ends)) or 1)


def panels_for(
    count: int,
    most_columns: int = 3,
    wide: float = 3.1,
    high: float = 2.7,
    same_heights: bool = True,
) -> tuple[Figure, list[Axes]]:
    """Panels that share their axes, the vertical one only if they have the `same_heights`."""
    from matplotlib.figure import Figure

    columns = 2 if count == 4 else min(count, most_columns)
    rows = -(-count // columns)
    size = ONE_PANEL if count == 1 else (max(wide * columns + 1.6, 6.4), high * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    places = figure.subplots(rows, columns, sharex=True, sharey=same_heights, squeeze=False)
    grid = places.ravel()
    for spare in grid[count:]:
        spare.remove()
    for place in grid[max(0, count - columns) : count]:
        place.tick_params(labelbottom=True)
    return figure, list(grid[:count])


def point_text(point: Mapping[str, float]) -> str:
    """The operating point in words: `12 kHz × 5 MB`."""
    shown = []
    for key, value in point.items():
        unit = {"event.rate": "Hz", "event.size": "B"}[key]
        divisor, name = style.prefixed(unit, value)
        shown.append(Quantity("", name, divisor).text(value))
    return " × ".join(shown)
