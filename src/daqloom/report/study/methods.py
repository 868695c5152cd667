"""How two methods of a study compare: sentences, figure and table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.study import view
from daqloom.report.study.finding import NOTHING, Finding, counted
from daqloom.study import StudyError
from daqloom.study.agreement import LOW_LOAD, SATURATION, Agreement, Load, agreements
from daqloom.study.points import axes_of, is_numeric, shown_variable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from xarray import Dataset

MOST_LINES = 8
"""Steps of an axis that are joined by lines and all named in the legend."""


def finding(dataset: Dataset, variable: str | None = None) -> Finding | None:
    """The section of a report, of the first two methods; None where no two share their points."""
    try:
        found = agreements(dataset, variable)[0]
    except StudyError:
        return None
    return Finding(
        "methods",
        "Comparison of methods",
        tuple(sentences(found)),
        figure(dataset, found),
        head(dataset, found, variable),
        rows(dataset, found, variable),
    )


def sentences(found: Agreement) -> list[str]:
    """The factor, how far it holds, and where not."""
    one, other = (f"the {view.LOOKS[method].label}" for method in found.methods)
    low, high = found.scale.interval()
    told = [
        f"{other.capitalize()} gives {found.scale.k:.3g} times the value of {one} "
        f"({low:.3g} to {high:.3g}, 95 %), fitted to {len(found.at)} points."
    ]
    known = [verdict for verdict in found.verdicts if verdict]
    if known:
        told.append(_how_far(found))
    if found.left_out:
        told.append(f"Left out: {counted(found.left_out)}.")
    return told


def _how_far(found: Agreement) -> str:
    known = [verdict for verdict in found.verdicts if verdict]
    within = f"within {100 * found.tolerance:g} % of that"
    if not found.parting:
        return f"All points are {within}: one factor describes them."
    where = {
        load: [verdict.ratio for verdict in known if verdict.parts and verdict.load is load]
        for load in Load
    }
    parted = ", ".join(
        f"{len(ratios)} at {load.value}".replace("at near", "near") + f" (ratio {_range(ratios)})"
        for load, ratios in where.items()
        if ratios
    )
    share = f"{found.parting} of {len(known)} points are not {within}: {parted}."
    return share + (
        " One factor does not describe them; `daqloom compare` explains a single point."
        if 2 * found.parting > len(known)
        else ""
    )


def _range(ratios: Sequence[float]) -> str:
    low, high = f"{min(ratios):.3g}", f"{max(ratios):.3g}"
    return low if low == high else f"{low} to {high}"


def head(dataset: Dataset, found: Agreement, variable: str | None = None) -> list[str]:
    """Names of the columns, with units."""
    unit = view.variable_quantity(dataset, shown_variable(dataset, variable)).unit
    told = f" ({unit})" if unit else ""
    return [
        *(view.key_name(axis) for axis in axes_of(dataset)),
        "load",
        *(f"{view.LOOKS[method].label}{told}" for method in found.methods),
        "ratio",
        f"off the factor{told}",
        "verdict",
    ]


def rows(dataset: Dataset, found: Agreement, variable: str | None = None) -> list[list[str]]:
    """One for each point that both methods give."""
    quantity = view.variable_quantity(dataset, shown_variable(dataset, variable))
    told = []
    for index, at in enumerate(found.at):
        verdict = found.verdicts[index]
        load = found.load[index]
        told.append(
            [
                *(view.step_text(dataset, axis, value) for axis, value in at.items()),
                f"{100 * load:.0f} %" if np.isfinite(load) else NOTHING,
                quantity.number(float(found.first[index])),
                quantity.number(float(found.second[index])),
                f"{found.ratio[index]:#.3g}",
                quantity.number(float(found.scale.residuals[index])),
                NOTHING if verdict is None else verdict.sentence.partition(": ")[2].rstrip("."),
            ]
        )
    return told


@style.in_style
def figure(dataset: Dataset, found: Agreement) -> Figure:
    """The ratio of the two methods against the load, with the factor and the bands of load. Against
    the first axis where the load is not known."""
    one, other = (view.LOOKS[method].label for method in found.methods)
    drawn, (axes,) = view.panels_for(1)
    by_load = bool(np.isfinite(found.load).any())
    x, label = 100 * found.load, "load (% of link capacity)"
    if by_load:
        _bands(axes, x)
    else:
        x, label = _along(dataset, found, axes)
    k = found.scale.k
    low, high = found.scale.interval()
    axes.axhspan(low, high, color=style.ORANGE, alpha=0.2, lw=0)
    axes.axhline(k, color=style.ORANGE, lw=1.3, label=f"one factor, {k:.3g}")
    axes.axhline(1, color=style.GREY, lw=0.9, ls=(0, (2, 3)))
    _points(axes, dataset, found, x)
    if view.wants_log(found.ratio, 10):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(ylabel=f"{other} ÷ {one}", xlabel=label)
    drawn.legend(loc="outside right upper", frameon=False)
    style.quiet_grid(axes)
    return drawn


def _along(dataset: Dataset, found: Agreement, drawn: Axes) -> tuple[Any, str]:
    """The first axis of numbers, whose ticks `drawn` gets, else the points in their order."""
    for axis in axes_of(dataset):
        if is_numeric(dataset, axis) and dataset.sizes[axis] > 1:
            quantity = view.axis_quantity(dataset, axis)
            drawn.xaxis.set_major_formatter(quantity.place_text)
            return np.array([at[axis] for at in found.at]) / quantity.divisor, quantity.label
    return np.arange(len(found.at)), "point"


def _bands(axes: Axes, x: Any) -> None:
    highest = max(100.0, float(np.nanmax(x)) * 1.02)
    axes.axvspan(0, 100 * LOW_LOAD, color="#f4f4f4", zorder=0)
    axes.axvspan(100 * SATURATION, highest, color="#f4f4f4", zorder=0)
    axes.set_xlim(0, highest)
    for text, place, side in (("low load", 0.0, "left"), ("near saturation", highest, "right")):
        axes.annotate(
            text,
            (place, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(4 if side == "left" else -4, 2),
            textcoords="offset points",
            ha=side,
            va="bottom",
            fontsize=8,
            color=style.GREY,
        )


def _points(axes: Axes, dataset: Dataset, found: Agreement, x: Any) -> None:
    """Coloured by the last axis, whose steps the ratio tells apart best or not at all."""
    from matplotlib import colormaps

    names = axes_of(dataset)
    if not names:
        axes.plot(x, found.ratio, "s", ms=4.5, color=style.BLUE)
        return
    axis = next((a for a in reversed(names) if dataset.sizes[a] > 1), names[-1])
    values = np.array([at[axis] for at in found.at])
    steps = [step for step in dataset[axis].values.tolist() if step in values]
    for place, step in reversed(list(enumerate(steps))):
        chosen = values == step
        colour = colormaps["viridis"](0.84 * place / max(1, len(steps) - 1))
        shown = len(steps) <= MOST_LINES or place in (0, len(steps) // 2, len(steps) - 1)
        label = f"{view.key_name(axis)} {view.step_text(dataset, axis, step)}" if shown else None
        joined = is_numeric(dataset, axis) and len(names) == 2 and len(steps) <= MOST_LINES
        axes.plot(
            x[chosen],
            found.ratio[chosen],
            "s",
            ls="-" if joined else "",
            lw=0.8,
            ms=4,
            color=colour,
            label=label,
        )
