"""Comparison of two methods of a study, in sentences, a figure and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import Axis, Band, Figure, Legend, Line, Mark, Panel, Rule, Text, dots
from daqloom.report.page import Section
from daqloom.report.study import view
from daqloom.study import StudyError
from daqloom.study.conclusions.agreement import LOW_LOAD, SATURATION, Agreement, Load, agreements
from daqloom.study.file.points import axes_of, is_numeric, shown_variable

if TYPE_CHECKING:
    from xarray import Dataset

MOST_LINES = 8
"""Limit on the steps of an axis for which lines are joined and the legend is complete."""


def section(dataset: Dataset, variable: str | None = None) -> Section | None:
    """Return the report's section on the first two methods; None if no two share any points."""
    try:
        found = agreements(dataset, variable)[0]
    except StudyError:
        return None
    head, rows = table(dataset, found, variable)
    more: dict[str, Any] = {"head": head, "rows": rows, "name": "methods"}
    picture = figure(dataset, found)
    return Section("Comparison of methods", sentences(found), True, picture, **more)


def sentences(agreement: Agreement) -> list[str]:
    """Return the factor between the methods, its range of validity, and omitted points."""
    one, other = (f"the {view.LOOKS[method].label}" for method in agreement.methods)
    low, high = agreement.scale.interval()
    text = [
        f"{other.capitalize()} gives {agreement.scale.k:.3g} times the value of {one} "
        f"({low:.3g} to {high:.3g}, 95 %), fitted to {len(agreement.at)} points."
    ]
    if any(agreement.verdicts):
        text.append(_validity(agreement))
    if agreement.left_out:
        text.append(f"Left out: {view.counts_text(agreement.left_out)}.")
    return text


def _validity(found: Agreement) -> str:
    known = [verdict for verdict in found.verdicts if verdict]
    within = f"within {100 * found.tolerance:g} % of that"
    if not found.parting:
        return f"All points are {within}: one factor describes them."
    parts = []
    for load in Load:
        ratios = [each.ratio for each in known if each.parts and each.load is load]
        if ratios:
            place = load.value if load is Load.SATURATED else f"at {load.value}"
            parts.append(f"{len(ratios)} {place} (ratio {_range(ratios)})")
    share = f"{found.parting} of {len(known)} points are not {within}: {', '.join(parts)}."
    if 2 * found.parting <= len(known):
        return share
    return f"{share} One factor does not describe them; `daqloom compare` explains a single point."


def _range(ratios: Sequence[float]) -> str:
    low, high = f"{min(ratios):.3g}", f"{max(ratios):.3g}"
    return low if low == high else f"{low} to {high}"


def table(
    dataset: Dataset, pair: Agreement, variable: str | None = None
) -> tuple[list[str], list[list[str]]]:
    """Return the column names, with units, and a row for each point of the study."""
    quantity = view.variable_quantity(dataset, shown_variable(dataset, variable))
    unit = f" ({quantity.unit})" if quantity.unit else ""
    labels = [f"{view.LOOKS[method].label}{unit}" for method in pair.methods]
    head = [*map(view.key_name, axes_of(dataset)), "load", *labels]
    rows = []
    for i, (at, load, verdict) in enumerate(zip(pair.at, pair.load, pair.verdicts, strict=True)):
        rows.append(
            [
                *(view.step_text(dataset, axis, value) for axis, value in at.items()),
                f"{100 * load:.0f} %" if np.isfinite(load) else style.NOTHING,
                quantity.number(float(pair.first[i])),
                quantity.number(float(pair.second[i])),
                f"{pair.ratio[i]:#.3g}",
                quantity.number(float(pair.scale.residuals[i])),
                verdict.sentence.partition(": ")[2].rstrip(".") if verdict else style.NOTHING,
            ]
        )
    return [*head, "ratio", f"off the factor{unit}", "verdict"], rows


def figure(dataset: Dataset, agreement: Agreement) -> Figure:
    """Return the ratio of the two methods, with the fitted factor, against the load; if the load is
    unknown, against the first axis."""
    one, other = (view.LOOKS[method].label for method in agreement.methods)
    if np.isfinite(agreement.load).any():
        x = 100 * agreement.load
        highest = max(100.0, float(np.nanmax(x)) * 1.02)
        bands, across = _bands(highest), Axis("load (% of link capacity)", (0, highest))
    else:
        bands = []
        x, across = _along(dataset, agreement)
    low, high = agreement.scale.interval()
    marks = [
        *bands,
        Band(low, high, style.ORANGE, 0.2, upright=False),
        Rule(1),
        Rule(k := agreement.scale.k, "", style.ORANGE, 1.3, "solid", f"one factor, {k:.3g}"),
        *_points(dataset, agreement, x),
    ]
    y = Axis(f"{other} ÷ {one}", log=view.wants_log(agreement.ratio, 10))
    return view.panels_for([Panel(marks, across, y)], legend=Legend("outside right upper"))


def _along(dataset: Dataset, found: Agreement) -> tuple[Any, Axis]:
    """Return positions on the first numeric axis; without one, the index of each point."""
    for axis in axes_of(dataset):
        if is_numeric(dataset, axis) and dataset.sizes[axis] > 1:
            quantity = view.axis_quantity(dataset, axis)
            place_of = dict(zip(dataset[axis].values.tolist(), quantity.places, strict=True))
            at = np.array([place_of[at[axis]] for at in found.at])
            return at, view.step_axis(quantity)
    return np.arange(len(found.at)), Axis("point")


def _bands(highest: float) -> list[Mark]:
    look: dict[str, Any] = {"colour": style.GREY, "down": "bottom", "shares": "y"}
    return [
        Band(0, 100 * LOW_LOAD, style.PALE, 1.0),
        Band(100 * SATURATION, highest, style.PALE, 1.0),
        Text(0.0, 1.0, ["low load"], across="left", offset=(4, 2), **look),
        Text(highest, 1.0, ["near saturation"], across="right", offset=(-4, 2), **look),
    ]


def _points(dataset: Dataset, agreement: Agreement, x: Any) -> Iterator[Mark]:
    """Yield points coloured by the last axis, because the ratio often depends on its steps."""
    names = axes_of(dataset)
    if not names:
        yield dots(x, agreement.ratio, marker="s")
        return
    axis = next((a for a in reversed(names) if dataset.sizes[a] > 1), names[-1])
    values = np.array([at[axis] for at in agreement.at])
    steps = [step for step in dataset[axis].values.tolist() if step in values]
    joined = is_numeric(dataset, axis) and len(names) == 2 and len(steps) <= MOST_LINES
    joined &= not any(view.has_unlimited(dataset, name) for name in names)
    for place, (step, colour) in reversed(
        list(enumerate(zip(steps, style.sequence(len(steps)), strict=True)))
    ):
        chosen = values == step
        shown = len(steps) <= MOST_LINES or place in (0, len(steps) // 2, len(steps) - 1)
        name = f"{view.key_name(axis)} {view.step_text(dataset, axis, step)}" if shown else ""
        width = 0.8 if joined else 0.0
        yield Line(x[chosen], agreement.ratio[chosen], name, colour, width, marker="s", size=4)
