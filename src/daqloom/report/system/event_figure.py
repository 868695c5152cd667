"""DAQPIPE in time: the events that each builder unit collects, several at a time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daqloom.report import style
from daqloom.report.system.fabric_layout import FONT, LETTER
from daqloom.report.system.phase_figure import Timeline, spread, timeline
from daqloom.report.system.sheet import Sheet
from daqloom.words import natural_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LANES = 64
LANE = 7.5
SMALL = 5.5
"""Size of the letters in a lane (points)."""
GAP = 0.12
"""Between builder units, of the height of a unit."""
EVENTS, FEWEST = 5.0, 2.0
"""So many of the mean length fit into the picture, in as long a run and in a short one."""
COLOURS = (style.SKY, style.AMBER, style.GREEN, style.PURPLE)
"""Colours of a builder's events one after the other; then they begin again."""
UNFINISHED = 0.45
"""Opacity of events that are incomplete at the end of the run."""

Events = Mapping[str, Sequence[Any]]
"""`Result.series["events"]`."""


class Bar(NamedTuple):
    """An event at its builder."""

    begin_s: float
    end_s: float
    event: int
    whole: bool
    """Whether the event was whole by the end of the run."""


def draw(sheet: Sheet, width: float, events: Events, warmup_s: float) -> float:
    """The last events of some builder units; returns the height that the panel takes."""
    columns = ("builder", "assigned_s", "until_s", "event", "whole")
    of: dict[str, list[Bar]] = defaultdict(list)
    for builder, *rest in zip(*(events[name] for name in columns), strict=True):
        of[builder].append(Bar(*rest))
    begin_s, end_s = _window([bar for bars in of.values() for bar in bars], warmup_s)
    every = sorted(of, key=natural_key)
    lanes_of = {name: lanes([bar for bar in of[name] if bar.end_s > begin_s]) for name in every}
    most = max(1, *map(len, lanes_of.values()))
    builders = spread(every, max(2, MOST_LANES // most))
    few = f"{len(builders)} of {len(every)}" if len(builders) < len(every) else "all"
    title = f"Events collected by {few} builder units, from assignment to last fragment"
    height = LANE * most * len(builders)
    line = timeline(sheet, width, height, builders, (begin_s, end_s), title)
    high = (1 - GAP) / most
    for row, builder in enumerate(builders):
        ordered = sorted(of[builder])
        colour = {bar.event: COLOURS[i % len(COLOURS)] for i, bar in enumerate(ordered)}
        for lane, bars in enumerate(lanes_of[builder]):
            y = row + GAP / 2 + (lane + 0.5) * high
            for bar in bars:
                _draw_bar(line, bar, colour[bar.event], y, high)
    _mark_warmup(line.axes, warmup_s)
    incomplete = {"alpha": UNFINISHED, "label": "incomplete at the end of the run"}
    return line.legend(
        [
            {"color": style.SKY, "label": "an event; colours distinguish neighbours"},
            {"color": style.SKY} | incomplete,
        ]
    )


def lanes(bars: Sequence[Bar]) -> list[list[Bar]]:
    """The bars in as few lanes as hold them without overlap: one for each event under way."""
    found: list[list[Bar]] = []
    for bar in sorted(bars):
        free = next((lane for lane in found if lane[-1].end_s <= bar.begin_s), None)
        if free is None:
            found.append([bar])
        else:
            free.append(bar)
    return found


def _window(bars: Sequence[Bar], warmup_s: float) -> tuple[float, float]:
    """The last of them; within the warm-up only as far as it takes to see `FEWEST`."""
    end_s = max(bar.end_s for bar in bars)
    mean_s = float(np.mean([bar.end_s - bar.begin_s for bar in bars]))
    earliest_s = min(warmup_s, end_s - FEWEST * mean_s)
    return max(end_s - EVENTS * mean_s, earliest_s, 0.0), end_s


def _draw_bar(line: Timeline, bar: Bar, colour: str, y: float, high: float) -> None:
    axes, points_per_s = line.axes, line.points_per_s
    first_s, last_s = max(bar.begin_s, axes.get_xlim()[0] / 1e3), bar.end_s
    axes.barh(
        y,
        1e3 * (last_s - first_s),
        left=1e3 * first_s,
        height=0.84 * high,
        color=colour,
        alpha=1 if bar.whole else UNFINISHED,
        linewidth=0,
    )
    text = f"event {bar.event}"
    if points_per_s * (last_s - first_s) > 4 + LETTER / FONT * SMALL * len(text):
        at = 1e3 * (first_s + 2 / points_per_s)
        axes.text(at, y, text, va="center_baseline", fontsize=SMALL)


def _mark_warmup(axes: Axes, warmup_s: float) -> None:
    at = 1e3 * warmup_s
    if axes.get_xlim()[0] < at < axes.get_xlim()[1]:
        axes.axvline(at, color=style.BLACK, linewidth=1)
        axes.annotate(
            "the warm-up ends",
            (at, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2),
            textcoords="offset points",
            ha="center",
            fontsize=FONT,
        )
