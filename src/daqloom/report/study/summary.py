"""Results of a study in a sentence for each variable, for the top of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report.study import view
from daqloom.study.file import points

if TYPE_CHECKING:
    from xarray import DataArray, Dataset

PREFERENCE = ("simulate", "measure", "analyse")
"""Methods, the one that a sentence is about first."""
MOST_VARIABLES = 2
MOST_NAMES = 3
"""Limit on the changes that a comparison with the baseline lists."""


def sentences(dataset: Dataset, variables: Sequence[str]) -> list[str]:
    """Return a sentence for each of the first variables: the largest changes from the baseline; or
    the values at the operating point; or the highest and the lowest value. Saturated points and
    boundaries that a search did not find do not count."""
    found = (_sentence(dataset, name) for name in variables[:MOST_VARIABLES])
    return [text for text in found if text]


def _sentence(dataset: Dataset, variable: str) -> str:
    found = points.means_by_method(dataset, variable)
    means = {each.method: each.values for each in found if each.variable == variable}
    known = [each for each in PREFERENCE if each in means and bool(means[each].notnull().any())]
    of_method = {method: means[method] for method in known}
    if not of_method:
        return ""
    for write in (_from_baseline, _at_operating_point, _extremes):
        if text := write(dataset, variable, of_method):
            return text
    return ""


def _value(dataset: Dataset, variable: str, value: float) -> str:
    return view.rounded_amount(value, str(dataset[variable].attrs.get("units", "")))


def _subject(dataset: Dataset, variable: str, method: str) -> str:
    name = view.variable_name(dataset, variable)
    return f"{name} ({view.LOOKS[method].label})"


def _from_baseline(dataset: Dataset, variable: str, means: dict[str, DataArray]) -> str:
    """Return a sentence on the names of an axis that change the variable most; "" without such an
    axis."""
    axis = next(
        (a for a in points.axes_of(dataset) if str(dataset[a].values[0]) == view.BASELINE), None
    )
    if axis is None or dataset.sizes[axis] < 2:
        return ""
    method = next(iter(means))
    held = view.hold(dataset, [a for a in points.axes_of(dataset) if a != axis])
    values = means[method].isel(held).values
    base = float(values[0])
    changes = [
        (float(value) / base, str(name))
        for name, value in zip(dataset[axis].values[1:], values[1:], strict=True)
        if base > 0 and value > 0
    ]
    if not changes:
        return ""
    changes.sort(key=lambda change: -abs(math.log(change[0])))
    listed = ", ".join(f"{ratio_text(ratio)} by “{name}”" for ratio, name in changes[:MOST_NAMES])
    where = f"With {view.steps_text(dataset, held)}, the " if held else "The "
    return (
        f"{where}{_subject(dataset, variable, method)} is {_value(dataset, variable, base)} "
        f"{view.BASELINE}; the largest of {len(changes)} changes: {listed}."
    )


def ratio_text(ratio: float) -> str:
    """Return a positive ratio as a change: `+24 %`, `× 31`, `÷ 45`."""
    if 0.2 < ratio < 2:
        return f"{100 * (ratio - 1):+.3g} %".replace("-", "−")
    return f"× {ratio:.3g}" if ratio > 1 else f"÷ {1 / ratio:.3g}"


def _at_operating_point(dataset: Dataset, variable: str, means: dict[str, DataArray]) -> str:
    """Return a sentence with the values of all methods at the operating point; "" if the point is
    on no step, or if a further axis has several steps."""
    point, axes = points.operating_point(dataset), points.axes_of(dataset)
    fixed, others = [a for a in axes if a in point], [a for a in axes if a not in point]
    at = view.hold(dataset, [*fixed, *others])
    is_on_steps = all(
        points.is_numeric(dataset, a) and np.isclose(dataset[a].values[at[a]], point[a], rtol=1e-9)
        for a in fixed
    )
    if not fixed or not is_on_steps or any(dataset.sizes[a] > 1 for a in others):
        return ""
    known = {method: float(each.isel(at)) for method, each in means.items()}
    parts = [
        f"{_value(dataset, variable, value)} by {view.LOOKS[method].label}"
        for method, value in known.items()
        if math.isfinite(value)
    ]
    if not parts:
        return ""
    where = view.place_text(dataset, points.step_values(dataset, at.items()))
    return f"At {where} the {view.variable_name(dataset, variable)} is {' and '.join(parts)}."


def _extremes(dataset: Dataset, variable: str, means: dict[str, DataArray]) -> str:
    """Return a sentence with the highest and the lowest value and their places."""
    method, values = next(iter(means.items()))
    highest, lowest = (_place(dataset, values, part) for part in (values.argmax, values.argmin))
    subject = _subject(dataset, variable, method)
    if highest[0] == lowest[0]:
        return f"The {subject} is {_value(dataset, variable, highest[0])} at every point."
    ends = (
        f"{name}, {_value(dataset, variable, value)}, at {where}"
        for name, (value, where) in (("highest", highest), ("lowest", lowest))
    )
    return f"The {subject} is {', and '.join(ends)}."


def _place(dataset: Dataset, values: DataArray, find: Any) -> tuple[float, str]:
    """Return an extreme value and its place in words."""
    at = {str(axis): int(step) for axis, step in find(...).items()}
    several = {axis: step for axis, step in at.items() if dataset.sizes[axis] > 1}
    where = view.place_text(dataset, points.step_values(dataset, several.items()))
    return float(values.isel(at)), where
