"""Figure and page of link failures: their durations, days, links, and intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daqloom.base.words import TIMES_S, duration, natural_key, plural, unit_of_time
from daqloom.faults.logs.clock import DAY_S, day_name
from daqloom.faults.statistics.failure import Failure
from daqloom.faults.statistics.summary import Variant, distinct
from daqloom.report import page, style
from daqloom.report.figure import (
    Area,
    Axis,
    Bars,
    Cells,
    ColourBar,
    Figure,
    Legend,
    Line,
    Mark,
    Panel,
    Scale,
    evenly,
    row_names,
)
from daqloom.report.page import Section

COLOURS = (style.SKY, style.ORANGE, style.BLUE)
MOST_BARS = 20
"""Limit on the links with a bar; those that fail most are shown."""
MARKS_S = (
    1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000,
)  # fmt: skip
"""Ticks of an axis of durations."""
MOST_COLUMNS = 400
MOST_ROWS = 2000
"""Limits of the map; in a long log a cell covers several days, with many links several links."""
LABELS = 50
"""Limit on the names of links next to the map."""


def write(path: Path, kinds: Mapping[str, Variant], links: Sequence[str]) -> None:
    """Write the figure as png, pdf or svg, or a page with the figure and a table of links. `links`:
    the links of the network in the order of the map; empty if unknown. Raises OutputError."""
    last = list(kinds.values())[-1]
    begin, end = (day_name(int(at // DAY_S)) for at in last.observed)
    counts = "; ".join(f"{name}: {len(kind.failures):,}" for name, kind in kinds.items())
    rows = [
        (total.link, f"{total.failures}", duration(total.down_s), total.causes_in_words)
        for total in last.totals
    ]
    head = ("link", "failures, flapping merged", "down", "causes")
    sections = [
        Section("Failures", [counts], figure=figure(kinds, links)),
        Section("Links", head=head, rows=rows),
    ]
    page.write(path, "Failures of links", f"{begin} to {end}", sections)


def figure(kinds: Mapping[str, Variant], links: Sequence[str]) -> Figure:
    """Return the figure."""
    real = list(kinds.values())[1]
    last = list(kinds.values())[-1]
    shown, bars = _map(real, links)
    panels = [
        _durations(kinds),
        replace(_days(kinds), cell=(1, 0, 1, 1)),
        replace(shown, cell=(0, 1, 2, 1)),
        replace(_between(last), cell=(2, 0, 1, 1)),
        replace(_worst(last), cell=(2, 1, 1, 1)),
    ]
    return Figure(panels, (12, 9.2), bars=bars)


def _durations(kinds: Mapping[str, Variant]) -> Panel:
    marks: list[Mark] = []
    times: list[float] = []
    for (name, kind), colour in zip(distinct(kinds).items(), COLOURS, strict=False):
        found = kind.durations
        if not len(found.duration_s):
            continue
        label = f"{name}, {len(kind.failures):,}"
        marks.append(Area(found.duration_s, found.low, found.high, "", colour, 0.2, "post"))
        marks.append(Line(found.duration_s, found.share, label, colour, step="post"))
        times += [each for each in found.duration_s if each > 0]
    return Panel(
        marks,
        duration_axis("duration, with bands of 95 %", times),
        Axis("", (0, 1), text=lambda value: f"{100 * value:g} %"),
        "Failures that end within a duration",
        legend=Legend("lower right"),
    )


def duration_axis(label: str, times_s: Sequence[float]) -> Axis:
    """Return a logarithmic axis for durations, with ticks in seconds, minutes, hours and days."""
    low, high = (min(times_s), max(times_s)) if len(times_s) else (1.0, 10.0)
    room = (high / low) ** 0.05 if high > low else 3.0
    ends = low / room, high * room
    marks = [at for at in MARKS_S if ends[0] <= at <= ends[1]]
    return Axis(label, ends, log=True, ticks=marks, names=[_round_duration(at) for at in marks])


def _days(kinds: Mapping[str, Variant]) -> Panel:
    every, real = list(kinds.values())[:2]
    span = _Days(every)
    outside = span.counts(real)
    tests = span.counts(every) - outside
    places = np.arange(span.columns) + 0.5
    look: dict[str, Any] = {"upright": True, "thickness": 0.85}
    marks: list[Mark] = [
        Bars(places, outside, name="outside tests", colour=style.ORANGE, **look),
        Bars(places, tests, outside, name="in test periods", colour="#d8d8d8", **look),
    ]
    each = "each day" if span.step == 1 else f"each {span.step} days"
    title = f"Failures that begin on {each}"
    return Panel(marks, span.axis(), title=title, legend=Legend() if tests.any() else None)


class _Days:
    """Columns for the days of a log: a day each, or several days each for a long log."""

    def __init__(self, kind: Variant) -> None:
        self.first, last = (int(at // DAY_S) for at in kind.observed)
        self.step = -(-(last - self.first + 1) // MOST_COLUMNS)
        self.columns = (last - self.first) // self.step + 1

    def column(self, failure: Failure) -> int:
        """Return the column in which a failure begins."""
        return (int(failure.begin_s // DAY_S) - self.first) // self.step

    def counts(self, kind: Variant) -> NDArray[np.int64]:
        """Return the number of failures that begin in each column of days."""
        columns = [self.column(each) for each in kind.failures]
        return np.bincount(np.array(columns, dtype=np.int64), minlength=self.columns)

    def axis(self) -> Axis:
        """Return an axis with some of the dates."""
        places = np.arange(0, self.columns, max(1, -(-self.columns // 6)))
        names = [day_name(self.first + self.step * int(place)) for place in places]
        same = len({name[:4] for name in names}) == 1
        shown = [name[5:] if same else name[:7] for name in names]
        label = f"day (UTC), from {names[0]}"
        return Axis(label, (0, self.columns), ticks=places + 0.5, names=shown)


def _map(kind: Variant, links: Sequence[str]) -> tuple[Panel, list[ColourBar]]:
    """Return a map of failures by link and day; rows are failed links, by switch and port."""
    failed = {each.link for each in kind.failures}
    rows = [link for link in links if link in failed]
    rows = rows or sorted(failed, key=natural_key)
    per_row = -(-max(1, len(rows)) // MOST_ROWS)
    row_of = {link: row // per_row for row, link in enumerate(rows)}
    span = _Days(kind)
    grid = np.zeros((max(1, -(-len(rows) // per_row)), span.columns))
    for each in kind.failures:
        grid[row_of[each.link], span.column(each)] += 1
    scale = Scale(style.sequence(64, "viridis_r", 1.0), 1, max(2, float(grid.max())), log=True)
    shown = np.where(grid > 0, grid, np.nan)
    cells = Cells(np.arange(span.columns + 1), np.arange(len(grid) + 1), shown, scale)
    marks = [n * 10**power for power in range(6) for n in (1, 2, 5) if n * 10**power <= grid.max()]
    places = np.array(evenly(len(rows), LABELS))
    names = [rows[place].split(" - ")[0] for place in places]
    y = Axis("", (len(grid), 0), ticks=(places + 0.5) / per_row, names=names, size=7, grid=False)
    title = f"Outside tests, {plural(len(rows), 'link')} by switch and port"
    bar = ColourBar(scale, "failures", [2], ticks=marks, shrink=0.6)
    return Panel([cells], replace(span.axis(), grid=False), y, title), [bar]


def _between(kind: Variant) -> Panel:
    """Return the shares of intervals longer than x, found and fitted; exponentials are straight."""
    found = kind.intervals
    count = len(found.interval_s)
    longest_s = float(found.interval_s.max(initial=0.0))
    scale, unit = unit_of_time(longest_s / 3)
    marks: list[Mark] = []
    if count:
        left = 1 - np.arange(count) / count
        marks.append(Line(found.interval_s / scale, left, "found", style.BLACK, step="pre"))
    for fit, colour in zip(found.fits, (style.SKY, style.PURPLE), strict=False):
        times = np.linspace(0, longest_s, 400)
        share = np.exp(-((times / fit.scale_s) ** fit.shape))
        marks.append(Line(times / scale, share, f"{fit.name}, p = {fit.p_value:.2g}", colour))
    x = Axis(f"time from one failure to the next ({unit}), flapping merged")
    ends = (0.5 / count, 1.2) if count else (0.5, 1.2)
    y = Axis("", ends, log=True, text=lambda value: f"{100 * value:g} %")
    return Panel(marks, x, y, "Intervals that are longer", legend=Legend())


def _worst(kind: Variant) -> Panel:
    totals = kind.totals[:MOST_BARS]
    hours = [total.down_s / TIMES_S["h"] for total in totals]
    names = [f"{total.link}  ({total.failures})" for total in totals]
    title = "Links that fail most (failures, flapping merged)"
    bars, y = Bars(range(len(totals)), hours), row_names(names, size=7)
    return Panel([bars], Axis("cumulative downtime (h)"), y, title)


def _round_duration(value_s: float) -> str:
    length, unit = unit_of_time(value_s)
    return f"{value_s / length:g} {unit}" if unit != "s" else style.round_seconds(value_s)
