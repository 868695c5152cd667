"""How two methods of a study compare: sentences, figure and table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import Axis, Band, Figure, Legend, Line, Mark, Panel, Rule, Text, dots
from daqloom.report.study import view
from daqloom.report.study.finding import NOTHING, Finding, counted
from daqloom.study import StudyError
from daqloom.study.conclusions.agreement import LOW_LOAD, SATURATION, Agreement, Load, agreements
from daqloom.study.file.points import axes_of, is_numeric, shown_variable

if TYPE_CHECKING:
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


def figure(dataset: Dataset, found: Agreement) -> Figure:
    """The ratio of the two methods against the load, with the factor and the bands of load. Against
    the first axis where the load is not known."""
    one, other = (view.LOOKS[method].label for method in found.methods)
    if np.isfinite(found.load).any():
        x = 100 * found.load
        highest = max(100.0, float(np.nanmax(x)) * 1.02)
        bands, across = _bands(highest), Axis("load (% of link capacity)", (0, highest))
    else:
        bands = []
        x, across = _along(dataset, found)
    low, high = found.scale.interval()
    marks = [
        *bands,
        Band(low, high, style.ORANGE, 0.2, upright=False),
        Rule(1),
        Rule(k := found.scale.k, "", style.ORANGE, 1.3, "solid", f"one factor, {k:.3g}"),
        *_points(dataset, found, x),
    ]
    y = Axis(f"{other} ÷ {one}", log=view.wants_log(found.ratio, 10))
    return view.panels_for([Panel(marks, across, y)], legend=Legend("outside right upper"))


def _along(dataset: Dataset, found: Agreement) -> tuple[Any, Axis]:
    """The first axis of numbers, else the points in their order."""
    for axis in axes_of(dataset):
        if is_numeric(dataset, axis) and dataset.sizes[axis] > 1:
            quantity = view.axis_quantity(dataset, axis)
            at = np.array([at[axis] for at in found.at]) / quantity.divisor
            return at, Axis(quantity.label, text=quantity.place_text)
    return np.arange(len(found.at)), Axis("point")


def _bands(highest: float) -> list[Mark]:
    look: dict[str, Any] = {"colour": style.GREY, "down": "bottom", "shares": "y"}
    return [
        Band(0, 100 * LOW_LOAD, style.PALE, 1.0),
        Band(100 * SATURATION, highest, style.PALE, 1.0),
        Text(0.0, 1.0, ["low load"], across="left", offset=(4, 2), **look),
        Text(highest, 1.0, ["near saturation"], across="right", offset=(-4, 2), **look),
    ]


def _points(dataset: Dataset, found: Agreement, x: Any) -> Iterator[Mark]:
    """Points coloured by the last axis, as the ratio depends on its steps most or not at all."""
    names = axes_of(dataset)
    if not names:
        yield dots(x, found.ratio, marker="s")
        return
    axis = next((a for a in reversed(names) if dataset.sizes[a] > 1), names[-1])
    values = np.array([at[axis] for at in found.at])
    steps = [step for step in dataset[axis].values.tolist() if step in values]
    joined = is_numeric(dataset, axis) and len(names) == 2 and len(steps) <= MOST_LINES
    for place, (step, colour) in reversed(
        list(enumerate(zip(steps, style.sequence(len(steps)), strict=True)))
    ):
        chosen = values == step
        shown = len(steps) <= MOST_LINES or place in (0, len(steps) // 2, len(steps) - 1)
        name = f"{view.key_name(axis)} {view.step_text(dataset, axis, step)}" if shown else ""
        width = 0.8 if joined else 0.0
        yield Line(x[chosen], found.ratio[chosen], name, colour, width, marker="s", size=4)
