"""Timeline of DAQPIPE: the events that each builder unit collects at the same time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from daqloom.base.words import natural_key
from daqloom.report import style
from daqloom.report.figure import Bars, Mark, Panel, Rule
from daqloom.report.system.phase_figure import Bar, Timeline, spread

MOST_LANES = 64
LANE = 7.5
SMALL = 5.5
"""Size of the text in a lane (points); a lane is a line of bars of one builder unit."""
GAP = 0.12
"""Gap between builder units, as a share of the height of one."""
EVENTS, FEWEST = 5.0, 2.0
"""Length of the timeline in mean event durations, and its length if it includes warm-up."""
COLOURS = (style.SKY, style.AMBER, style.GREEN, style.PURPLE)
"""Colours of the successive events of a builder unit, which repeat."""
UNFINISHED = 0.45
"""Opacity of events that are incomplete when the run ends."""

Events = Mapping[str, Sequence[Any]]
"""The series "events" of a result: lists of equal length by column name."""


class Event(NamedTuple):
    """Event in the timeline of its builder unit."""

    begin_s: float
    end_s: float
    number: int
    is_whole: bool
    """Whether all fragments had arrived when the run ended."""


def panel(width: float, events: Events, warmup_s: float) -> Panel:
    """Return the panel with the last events of a selection of builder units."""
    columns = ("builder", "assigned_s", "until_s", "event", "whole")
    by_builder: dict[str, list[Event]] = defaultdict(list)
    for builder, *rest in zip(*(events[name] for name in columns), strict=True):
        by_builder[builder].append(Event(*rest))
    begin_s, end_s = _window([span for found in by_builder.values() for span in found], warmup_s)
    every = sorted(by_builder, key=natural_key)
    lanes_of = {
        name: lanes([span for span in by_builder[name] if span.end_s > begin_s]) for name in every
    }
    most = max(1, *map(len, lanes_of.values()))
    builders = spread(every, max(2, MOST_LANES // most))
    few = f"{len(builders)} of {len(every)}" if len(builders) < len(every) else "all"
    title = f"Events collected by {few} builder units, from assignment to last fragment"
    line = Timeline(builders, (begin_s, end_s), title, width, LANE * most * len(builders))
    high = (1 - GAP) / most
    bars: dict[tuple[str, bool], list[Bar]] = defaultdict(list)
    for row, builder in enumerate(builders):
        places = {span.number: place for place, span in enumerate(sorted(by_builder[builder]))}
        for lane, found in enumerate(lanes_of[builder]):
            y = row + GAP / 2 + (lane + 0.5) * high
            for span in found:
                colour = COLOURS[places[span.number] % len(COLOURS)]
                bar = Bar(y, span.begin_s, span.end_s, f"event {span.number}")
                bars[colour, span.is_whole].append(bar)
    whole, part = "an event; colours distinguish neighbours", "incomplete at the end of the run"
    marks: list[Mark] = [
        Bars([0], [0], name=whole, colour=style.SKY),
        Bars([0], [0], name=part, colour=style.SKY, opacity=UNFINISHED),
    ]
    for (colour, is_whole), found_bars in bars.items():
        look: dict[str, Any] = {"colour": colour, "opacity": 1.0 if is_whole else UNFINISHED}
        marks.append(line.bars(found_bars, 0.84 * high, SMALL, **look))
    if begin_s < warmup_s < end_s:
        text = "the warm-up ends"
        marks.append(Rule(1e3 * warmup_s, text, style.BLACK, 1, "solid", upright=True))
    return line.panel(marks)


def lanes(events: Sequence[Event]) -> list[list[Event]]:
    """Return the events in as few lanes as possible, so that events of a lane do not overlap."""
    found: list[list[Event]] = []
    for event in sorted(events):
        free = next((lane for lane in found if lane[-1].end_s <= event.begin_s), None)
        if free is None:
            found.append([event])
        else:
            free.append(event)
    return found


def _window(events: Sequence[Event], warmup_s: float) -> tuple[float, float]:
    """Return begin and end of the timeline. If it starts in the warm-up, it has `FEWEST` events."""
    end_s = max(each.end_s for each in events)
    mean_s = float(np.mean([each.end_s - each.begin_s for each in events]))
    earliest_s = min(warmup_s, end_s - FEWEST * mean_s)
    return max(end_s - EVENTS * mean_s, earliest_s, 0.0), end_s
