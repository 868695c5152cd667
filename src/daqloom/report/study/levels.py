"""How high the peak gets in an hour, a day, a fill: sentences, figure and table of levels."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
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
from daqloom.report.study import view
from daqloom.report.study.finding import NOTHING, Finding, counted
from daqloom.study import StudyError
from daqloom.study.conclusions.levels import USUAL, LeftOut, Levels, PointLevels, levels
from daqloom.study.file.points import NEEDED, PEAK, axes_of, is_numeric, operating_point
from daqloom.study.statistics.return_levels import describe

if TYPE_CHECKING:
    from xarray import Dataset

HEADING = "Peaks expected in an hour, a day, a fill"
MOST_POINTS = 60
"""More than these, and a report tells the levels along the operating point's axes alone."""
MOST_STEPS = 8
"""Most steps of an axis whose levels a sentence lists."""
CURVE = 16
"""Periods at which the figure's curve is computed."""
_TICKS = {
    1e-3: "1 ms",
    1e-2: "10 ms",
    0.1: "0.1 s",
    1.0: "1 s",
    10.0: "10 s",
    60.0: "1 min",
    600.0: "10 min",
    3600.0: "1 h",
    86400.0: "1 d",
    604800.0: "1 week",
    365.25 * 86400: "1 year",
}


def finding(dataset: Dataset, progress: Callable[[float], None] = lambda _: None) -> Finding | None:
    """The section of a report; None where the study has no course of fixed runs to tell it from."""
    try:
        found = levels(dataset, USUAL, at=_lines(dataset), progress=progress)
    except StudyError:
        return None
    shown = nearest(dataset, found, operating_point(dataset))
    if shown is None:
        return None
    told = list(sentences(dataset, found, shown))
    if len(found.points) + len(found.left_out) < math.prod(_sizes(dataset)):
        told.append(
            "The table has the points that share a step with the operating point; "
            "`daqloom study levels` prints all."
        )
    return Finding(
        "levels",
        HEADING,
        tuple(told),
        figure(dataset, found, shown),
        head(dataset, found),
        rows(dataset, found),
    )


def _sizes(dataset: Dataset) -> list[int]:
    return [dataset.sizes[axis] for axis in axes_of(dataset)]


def _lines(dataset: Dataset) -> list[dict[str, Any]]:
    """Of many points, those that differ from the operating point in one axis."""
    if math.prod(_sizes(dataset)) <= MOST_POINTS:
        return []
    held = {
        a: dataset[a].values[[s]].tolist() for a, s in view.hold(dataset, axes_of(dataset)).items()
    }
    return [{a: v for a, v in held.items() if a != free} for free in held]


def nearest(dataset: Dataset, found: Levels, point: Mapping[str, float]) -> PointLevels | None:
    """The point nearest to the operating point, the middle of axes that it does not name."""
    if not found.points:
        return None
    wanted = view.hold(dataset, axes_of(dataset))

    def distance(one: PointLevels) -> float:
        apart = 0.0
        for axis, step in wanted.items():
            values = dataset[axis].values
            place = values.tolist().index(one.at[axis])
            if is_numeric(dataset, axis):
                span = float(np.ptp(values)) or 1.0
                target = point.get(axis, float(values[step]))
                apart += abs(float(values[place]) - target) / span
            else:
                apart += float(place != step)
        return apart

    return min(found.points, key=distance)


def sentences(dataset: Dataset, found: Levels, shown: PointLevels) -> list[str]:
    """The levels at one point in words, its doubts, what was left out of all."""
    quantity = view.variable_quantity(dataset, shown.metric)
    told = [_answer(quantity, view.place_text(dataset, shown.at), shown, found)]
    told += [*_along(dataset, found, shown), *_meant(found)]
    if shown.limit is None:
        farthest = max(shown.levels, key=lambda level: level.period_s)
        told += [f"There {warning}." for warning in farthest.warnings]
    if found.left_out:
        told.append(f"Left out: {counted(Counter(one.reason for one in found.left_out))}.")
    return told


def _answer(quantity: view.Quantity, where: str, shown: PointLevels, found: Levels) -> str:
    at = f"At {where} " if where else "Here "
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
    buffer = "A buffer" if shown.metric == NEEDED else "An ideal buffer"
    spoken = " ".join(
        describe(level, each.often, buffer)
        for level, each in zip(shown.levels, found.periods, strict=True)
    )
    return at + spoken[0].lower() + spoken[1:]


def _along(dataset: Dataset, found: Levels, shown: PointLevels) -> list[str]:
    """The levels of the longest period along each axis of which the operating point has no step, so
    that no step of it is singled out."""
    place = max(range(len(found.periods)), key=lambda i: found.periods[i].length_s)
    sentences = []
    for axis in axes_of(dataset):
        if axis in operating_point(dataset) or not 1 < dataset.sizes[axis] <= MOST_STEPS:
            continue
        others = {key: value for key, value in shown.at.items() if key != axis}
        line = {
            one.at[axis]: one
            for one in found.points
            if one.method == shown.method
            and one.limit is None
            and others == {key: one.at[key] for key in others}
        }
        steps = [
            dataset[axis].values[step].item() for step in view.along(dataset, axis)[1] if step >= 0
        ]
        if len(known := [step for step in reversed(steps) if step in line]) > 1:
            values = {step: line[step].levels[place].value for step in known}
            divisor, unit = style.prefixed("B", max(values.values()))
            shown_as = view.Quantity("", unit, divisor)
            is_mixed = len({line[step].metric for step in known}) > 1
            ideal = {NEEDED: "", PEAK: " (ideal buffer)" if is_mixed else ""}
            parts = [
                f"{shown_as.text(float(f'{values[step]:.3g}'))} with "
                f"{view.step_text(dataset, axis, step)}{ideal[line[step].metric]}"
                for step in known
            ]
            sentences.append(
                f"By {view.key_name(axis)}, exceeded less than {found.periods[place].often}: "
                f"{', '.join(parts)}."
            )
    return sentences


_MEANT = {
    NEEDED: (
        "{these} the total buffer of the simulated switch: cells, dedicated buffers and dynamic "
        "threshold are accounted for."
    ),
    PEAK: (
        "{these} an ideal buffer, counted in bytes, which any output may fill. A shared-memory "
        "switch needs more because of its cells and thresholds: for its levels, set "
        "network.switch.tor.model to that switch, and network.switch.tor.buffer to more than it "
        'can fill, such as "1 GB".'
    ),
}
"""What levels of each metric are of."""
_OF = {NEEDED: "of the switch", PEAK: "ideal"}
"""The same in a table of both."""


def _meant(found: Levels) -> list[str]:
    """Which buffer the levels are of, or the buffers."""
    is_mixed = len(found.metrics) > 1
    return [
        _MEANT[metric].format(
            these=f'Levels marked "{_OF[metric]}" in the table are of' if is_mixed else "This is"
        )
        for metric in found.metrics
    ]


def _table_quantity(dataset: Dataset, found: Levels) -> view.Quantity:
    """The quantity of a table; that of what was held also where all points are left out."""
    first, *others = found.metrics or (PEAK,)
    quantity = view.variable_quantity(dataset, first)
    return replace(quantity, name="peak of the top-of-rack switch") if others else quantity


def head(dataset: Dataset, found: Levels) -> list[str]:
    """Names of the columns, with units."""
    quantity = _table_quantity(dataset, found)
    return [
        *(view.key_name(axis) for axis in axes_of(dataset)),
        *(["method"] if _methods(found) > 1 else []),
        *(["buffer"] if len(found.metrics) > 1 else []),
        quantity.label,
        "observed",
        *(f"{each.often} ({quantity.unit})" for each in found.periods),
        "notes",
    ]


def rows(dataset: Dataset, found: Levels) -> list[list[str]]:
    """One for each point, those left out with the reason in their place."""
    quantity, is_mixed = _table_quantity(dataset, found), len(found.metrics) > 1
    axes = axes_of(dataset)
    table: dict[tuple[int, ...], list[str]] = {}
    for one in _every(found):
        place = tuple(dataset[axis].values.tolist().index(one.at[axis]) for axis in axes)
        cells = [view.step_text(dataset, axis, one.at[axis]) for axis in axes]
        cells += [view.LOOKS[one.method].label] if _methods(found) > 1 else []
        if isinstance(one, PointLevels):
            cells += [_OF[one.metric]] if is_mixed else []
            cells += [
                quantity.number(float(one.fit.maxima.max())),
                style.round_seconds(one.observed_s),
                *(_level(quantity, one, i) for i in range(len(found.periods))),
                "; ".join(map(short, one.fit.warnings)) or NOTHING,
            ]
        else:
            cells += [NOTHING] * (is_mixed + 2 + len(found.periods)) + [one.reason]
        table[(list(dataset["by"].values).index(one.method), *place)] = cells
    return [table[place] for place in sorted(table)]


def _methods(found: Levels) -> int:
    return len({one.method for one in _every(found)})


def _every(found: Levels) -> list[PointLevels | LeftOut]:
    return [*found.points, *found.left_out]


def _level(quantity: view.Quantity, one: PointLevels, index: int) -> str:
    level = one.levels[index]
    if one.limit is not None:
        return f"{quantity.number(one.limit)} (limit)"
    value, low = quantity.number(level.value), quantity.number(level.low)
    if math.isnan(level.high):
        return f"{value} (error unknown)"
    if level.high == math.inf:
        return f"{value} (at least {low})"
    return f"{value} ({low} to {quantity.number(level.high)})"


def short(warning: str) -> str:
    """A warning without its numbers and reasons."""
    what = re.split(r" \(|[:;,] ", warning, maxsplit=1)[0]
    return re.sub(r"^[0-9]+ of [0-9]+ ", "some ", what)


def figure(dataset: Dataset, found: Levels, shown: PointLevels) -> Figure:
    """Levels against the period at one point, with their interval and the observed maxima."""
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
    # Weibull's plotting positions: the i-th of n is exceeded with 1 - i / (n + 1).
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
