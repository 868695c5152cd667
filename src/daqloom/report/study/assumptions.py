"""Assumed values of a study and what others would change: sentences and table of a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from daqloom.report.page import Section
from daqloom.report.study import view
from daqloom.report.study.summary import ratio_text
from daqloom.results.metrics import find_declaration, label, unit_of
from daqloom.study.file import points
from daqloom.study.methods import assumptions

if TYPE_CHECKING:
    from xarray import Dataset

    from daqloom.study.file.study import Study
    from daqloom.study.methods.assumptions import Change, Effects

HEADING = "Assumptions that move the answer"


def effects(
    study: Study,
    dataset: Dataset,
    show: str | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Effects | None:
    """Return the effects of the study's assumed values on its main metric, by closed form at the
    point that figures of single points show; None without assumed values or closed form."""
    assumed = study.assumptions()
    metric = _metric(dataset, points.shown_variable(dataset, show))
    if not assumed or metric is None:
        return None
    steps = view.hold(dataset, points.axes_of(dataset))
    return assumptions.effects(study.scenario(tuple(steps.values())), metric, assumed, progress)


def _metric(dataset: Dataset, variable: str) -> str | None:
    """Return the metric of closed forms that corresponds to a variable; None for other variables
    than metrics."""
    if variable in points.BOUNDARIES:
        key = str(dataset["boundary"].attrs.get("key"))
        return points.COUNTERPARTS.get(key)
    if variable == points.NEEDED:
        return points.PEAK
    return variable if find_declaration(variable) else None


def section(assumed: Mapping[str, str], found: Effects | None, where: str = "") -> Section | None:
    """Return the section of a report, with the strongest effects first and values whose effect is
    not known last; None without assumed values. `where`: the point of the effects, in words."""
    if not assumed:
        return None
    unknown = found.unknown if found else assumed
    listed = ", ".join(f"{key} = {value}" for key, value in unknown.items())
    if found is None or not found.moving:
        return Section("Assumptions", [f"Assumed, and their effect is not known: {listed}."])
    form = "the formula for random events" if found.is_random else "the formula"
    at = f" at {where}" if where else ""
    text = (
        f"Neither scenario nor study gives these values. Effects are on the {label(found.metric)}, "
        f"which is {_amount(found, found.base)} by {form}{at}."
    )
    rows = [
        [f"{each.key} = {each.value}", "; ".join(_change(found, one) for one in each.changes)]
        for each in found.moving
    ]
    rows += [["effect not known", listed]] * bool(unknown)
    return Section(HEADING, [text], head=("assumed", "with others"), rows=rows, look="pairs")


def sentences(found: Section | None) -> list[str]:
    """Return the section as sentences for a terminal."""
    if found is None:
        return []
    return [*found.sentences, *(f"{name}: {effect}." for name, effect in found.rows)]


def _change(found: Effects, change: Change) -> str:
    if change.result is None:
        return f"{change.value} is too slow for the event rate"
    ratio = ratio_text(change.result / found.base)
    return f"{change.value} gives {_amount(found, change.result)} ({ratio})"


def _amount(found: Effects, value: float) -> str:
    return view.rounded_amount(value, unit_of(found.metric))
