"""Return levels of a study (peaks expected in an hour, a day, a fill): text, figure, table."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import style
from daqloom.report.figure import (
    Area,
    Axis,
    Band,
    Figure,
    Legend,
    Line,
    Mark,
    Panel,
    Rule,
    Text,
    dots,
)
from daqloom.report.page import Section
from daqloom.report.study import view
from daqloom.study import StudyError
from daqloom.study.conclusions.levels import (
    USUAL,
    LeftOut,
    Levels,
    PointLevels,
    is_needed,
    levels,
)
from daqloom.study.file.points import PEAK, axes_of, is_numeric, operating_point
from daqloom.study.statistics.return_levels import Level, describe

if TYPE_CHECKING:
    from xarray import Dataset

HEADING = "Peaks expected in an hour, a day, a fill"
MOST_POINTS = 60
"""Limit on a report's points; a larger study shows only those on the operating point's axes."""
MOST_STEPS = 8
"""Limit on the steps of an axis for which a sentence lists the levels."""
CURVE = 16
"""Number of periods at which the figure's curve is computed."""
_TICKS = {
    1e-3: "1 ms", 1e-2: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s", 60.0: "1 min",
    600.0: "10 min", 3600.0: "1 h", 86400.0: "1 d", 604800.0: "1 week", 365.25 * 86400: "1 year",
}  # fmt: skip


def section(dataset: Dataset, progress: Callable[[float], None] = lambda _: None) -> Section | None:
    """Return the section of a report; None for a study without time series of fixed runs."""
    try:
        found = levels(dataset, USUAL, at=_lines(dataset), progress=progress)
    except StudyError:
        return None
    shown = nearest(dataset, found, operating_point(dataset))
    if shown is None:
        return None
    text = sentences(dataset, found, shown)
    answers = 1 + len(_along(dataset, found, shown))
    text = [" ".join(text[:answers]), *text[answers:]]
    if len(found.points) + len(found.left_out) < math.prod(_sizes(dataset)):
        text.append(
            "The table has the points that share a step with the operating point; "
            "`daqloom study levels` prints all."
        )
    head, rows = table(dataset, found)
    picture = figure(dataset, found, shown)
    # A level that may be twice as high or half as high is no answer.
    known = [level.high < 2 * level.low for level in shown.levels]
    is_answer = shown.limit is not None or all(known)
    return Section(HEADING, text, is_answer, picture, head=head, rows=rows, name="levels")


def _sizes(dataset: Dataset) -> list[int]:
    return [dataset.sizes[axis] for axis in axes_of(dataset)]


def _lines(dataset: Dataset) -> list[dict[str, Any]]:
    """Return, for a large study, lines of points through the operating point, one for each axis."""
    if math.prod(_sizes(dataset)) <= MOST_POINTS:
        return []
    held = {
        a: dataset[a].values[[s]].tolist() for a, s in view.hold(dataset, axes_of(dataset)).items()
    }
    return [{a: v for a, v in held.items() if a != free} for free in held]


def nearest(dataset: Dataset, levels: Levels, point: Mapping[str, float]) -> PointLevels | None:
    """Return the point nearest to `point`; on axes that `point` lacks, nearest to their middle."""
    if not levels.points:
        return None
    middle = view.hold(dataset, axes_of(dataset))

    def distance(one: PointLevels) -> float:
        apart = 0.0
        for axis, step in middle.items():
            values = dataset[axis].values
            place = values.tolist().index(one.at[axis])
            if is_numeric(dataset, axis):
                span = float(np.ptp(values)) or 1.0
                target = point.get(axis, float(values[step]))
                apart += abs(float(values[place]) - target) / span
            else:
                apart += float(place != step)
        return apart

    return min(levels.points, key=distance)


def sentences(dataset: Dataset, found: Levels, shown: PointLevels) -> list[str]:
    """Return sentences on the levels at one point, their warnings, and points that are left out."""
    quantity = view.variable_quantity(dataset, shown.metric)
    text = [_answer(quantity, view.place_text(dataset, shown.at), shown, found)]
    text += [*_along(dataset, found, shown), *_meanings(found)]
    if shown.limit is None:
        farthest = max(shown.levels, key=lambda level: level.period_s)
        text += [f"There {warning}." for warning in farthest.warnings]
    if found.left_out:
        reasons = Counter(one.reason for one in found.left_out)
        text.append(f"Left out: {view.counts_text(reasons)}.")
    return text


def _answer(quantity: view.Quantity, where: str, shown: PointLevels, found: Levels) -> str:
    at = f"At {where} " if where else "Here "
    at = f"{where.capitalize()}, " if where == view.BASELINE else at
    if shown.fit.scale == 0:
        return (
            f"{at}the peak is {quantity.text(shown.fit.location)} in each of the "
            f"{shown.fit.maxima.size} blocks simulated: without any spread no distribution can be "
            "fitted, and nothing is known of longer runs."
        )
    if shown.limit is not None:
        return (
            f"{at}peaks saturate near {quantity.text(shown.limit)}: a limit of the system, not "
            "chance, seems to determine them. With this limit, a longer run gives no higher peak."
        )
    if shown.fit.has_no_peak:
        return (
            f"{at}the peak was at most {quantity.text(float(shown.fit.maxima.max()))} in the "
            f"{style.round_seconds(shown.observed_s)} simulated, and levels are not known: "
            f"{shown.fit.warnings[0]}."
        )
    buffer = "A buffer" if is_needed(shown.metric) else "An ideal buffer"
    text = " ".join(
        describe(level, each.often, buffer)
        for level, each in zip(shown.levels, found.periods, strict=True)
    )
    return at + text[0].lower() + text[1:]


def _along(dataset: Dataset, levels: Levels, shown: PointLevels) -> list[str]:
    """Return sentences with the levels of the longest period along each axis that the operating
    point does not fix."""
    longest = max(range(len(levels.periods)), key=lambda i: levels.periods[i].length_s)
    sentences = []
    for axis in axes_of(dataset):
        if axis in operating_point(dataset) or not 1 < dataset.sizes[axis] <= MOST_STEPS:
            continue
        others = {key: value for key, value in shown.at.items() if key != axis}
        line = {
            one.at[axis]: one
            for one in levels.points
            if one.method == shown.method and others == {key: one.at[key] for key in others}
        }
        steps = dataset[axis].values[view.ordered_steps(dataset, axis)].tolist()
        if len(known := [step for step in reversed(steps) if step in line]) > 1:
            of_longest = {step: line[step].levels[longest] for step in known}
            most = max(float(line[step].fit.maxima.max()) for step in known)
            divisor, unit = style.prefix("B", most)
            shown_as = view.Quantity("", unit, divisor)
            is_mixed = len({is_needed(line[step].metric) for step in known}) > 1
            ideal = {True: "", False: " (ideal buffer)" if is_mixed else ""}
            parts = [
                f"{_along_text(shown_as, line[step], level)} with "
                f"{view.step_text(dataset, axis, step)}{ideal[is_needed(line[step].metric)]}"
                for step, level in of_longest.items()
            ]
            period = levels.periods[longest].often
            sentences.append(
                f"By {view.key_name(axis)}, exceeded less than {period} ({unit}, 95 %): "
                f"{', '.join(parts)}."
            )
    return sentences


def _along_text(quantity: view.Quantity, one: PointLevels, level: Level) -> str:
    """Return a level as in the table, with what was seen if it is not known."""
    most = f" (at most {quantity.number(float(one.fit.maxima.max()))} seen)"
    return _level(quantity, one, level) + most * (one.limit is None and math.isnan(level.high))


_MEANINGS = {
    True: (
        "{these} the total buffer of the simulated switch: cells, dedicated buffers and dynamic "
        "threshold are accounted for."
    ),
    False: (
        "{these} an ideal buffer, counted in bytes, which any output may fill. A shared-memory "
        "switch needs more because of its cells and thresholds: for its levels, set its model "
        "(network.switch.tor.model in a rack), and its buffer to more than it can fill, such as "
        '"1 GB".'
    ),
}
"""Explanation of the buffer to which levels refer: by `is_needed` of their metric."""
_BUFFERS = {True: "of the switch", False: "ideal"}
"""The buffer, for a table that contains both."""


def _meanings(found: Levels) -> Iterator[str]:
    for kind in sorted({is_needed(metric) for metric in found.metrics}, reverse=True):
        marked = f'Levels marked "{_BUFFERS[kind]}" in the table are of'
        yield _MEANINGS[kind].format(these=marked if found.has_both else "This is")


def _table_quantity(dataset: Dataset, found: Levels) -> view.Quantity:
    """Return the quantity of the table; without points, that of the peak occupancy."""
    first, *others = found.metrics or (PEAK,)
    quantity = view.variable_quantity(dataset, first)
    return replace(quantity, name="peak of the switch") if others else quantity


def table(dataset: Dataset, levels: Levels) -> tuple[list[str], list[list[str]]]:
    """Return column names with units, and a row for each point; a point that is left out shows the
    reason in place of levels."""
    quantity, axes = _table_quantity(dataset, levels), axes_of(dataset)
    every: list[PointLevels | LeftOut] = [*levels.points, *levels.left_out]
    has_methods, has_buffers = len({point.method for point in every}) > 1, levels.has_both
    head = [
        *map(view.key_name, axes),
        *["method"] * has_methods,
        *["buffer"] * has_buffers,
        quantity.label,
        "observed",
        *(f"{each.often} ({quantity.unit})" for each in levels.periods),
        "notes",
    ]
    rows: dict[tuple[int, ...], list[str]] = {}
    for point in every:
        place = tuple(dataset[axis].values.tolist().index(point.at[axis]) for axis in axes)
        cells = [view.step_text(dataset, axis, point.at[axis]) for axis in axes]
        cells += [view.LOOKS[point.method].label] * has_methods
        if isinstance(point, PointLevels):
            cells += [
                *[_BUFFERS[is_needed(point.metric)]] * has_buffers,
                quantity.number(float(point.fit.maxima.max())),
                style.round_seconds(point.observed_s),
                *(_level(quantity, point, level) for level in point.levels),
                "; ".join(map(short, point.fit.warnings)) or style.NOTHING,
            ]
        else:
            cells += [style.NOTHING] * (len(head) - 1 - len(cells)) + [point.reason]
        rows[(list(dataset["by"].values).index(point.method), *place)] = cells
    return head, [rows[place] for place in sorted(rows)]


def _level(quantity: view.Quantity, one: PointLevels, level: Level) -> str:
    if one.limit is not None:
        return f"{quantity.number(one.limit)} (limit)"
    value, low = quantity.number(level.value), quantity.number(level.low)
    if math.isnan(level.high):
        return "not known"
    if level.high == math.inf:
        return f"{value} (at least {low})"
    return f"{value} ({low} to {quantity.number(level.high)})"


def short(warning: str) -> str:
    """Return a warning shortened to its first clause, without numbers and reasons."""
    what = re.split(r" \(|[:;,] ", warning, maxsplit=1)[0]
    return re.sub(r"^[0-9]+ of [0-9]+ ", "some ", what)


def figure(dataset: Dataset, found: Levels, shown: PointLevels) -> Figure:
    """Return a figure of the levels at one point by period, with intervals and observed maxima."""
    quantity = view.variable_quantity(dataset, shown.metric)
    ends = shown.block_s, 2 * max(each.length_s for each in found.periods)
    curve, y = _curve(shown, quantity, ends)
    runs = Band(0.5 * shown.block_s, shown.observed_s, style.PALE, 1.0, "length of the runs")
    marks: list[Mark] = [runs, *curve]
    look: dict[str, Any] = {"across": "right", "down": "top", "turned": 90, "offset": (-3, -3)}
    for each in found.periods:
        marks.append(Rule(each.length_s, upright=True, width=0.8))
        marks.append(Text(each.length_s, 1, [each.name], style.GREY, shares="y", **look))
    ticks = [time for time in _TICKS if ends[0] <= time <= ends[1]]
    names = [_TICKS[time] for time in ticks]
    x = Axis("exceeded once in", ends, log=True, ticks=ticks, names=names)
    panel = Panel(marks, x, y, view.place_text(dataset, shown.at))
    return view.panels_for([panel], legend=Legend("outside lower center", columns=3))


def _curve(
    shown: PointLevels, quantity: view.Quantity, ends: tuple[float, float]
) -> tuple[list[Mark], Axis]:
    fit, colour = shown.fit, view.LOOKS[shown.method].colour
    ordered = np.sort(fit.maxima) / quantity.divisor
    # Weibull's plotting positions: the i-th of n maxima is exceeded with 1 - i / (n + 1).
    exceeded = 1 - np.arange(1, ordered.size + 1) / (ordered.size + 1)
    name = f"maxima of {ordered.size} blocks of {style.round_seconds(shown.block_s)}"
    maxima = dots(shown.block_s / exceeded, ordered, name, size=3.5, colour=style.BLACK)
    if shown.limit is not None:
        limit = shown.limit / quantity.divisor
        name = f"limit, {quantity.text(shown.limit)}"
        rule = Rule(limit, "", style.ORANGE, 1.3, "dash", name)
        return [rule, maxima], Axis(quantity.label, (0, 1.12 * limit))
    times = np.geomspace(1.3 * shown.block_s, ends[1], CURVE)
    levels_at = [fit.tail.levels(shown.block_s / time) for time in times]
    low, curve, high = np.array(levels_at).T / quantity.divisor
    marks: list[Mark] = [Line(times, curve, "expected level", colour)]
    if not fit.has_no_peak:
        marks.append(Area(times, low, high, "interval, 95 %", colour))
    bottom = max(0.0, 0.9 * min(float(ordered[0]), curve[0]))
    top = 1.05 * float(min(high.max(), 2.5 * curve[-1]))
    return [*marks, maxima], Axis(quantity.label, (bottom, top))
