"""Timeline of linear shift: the receiver and the waiting of each sender, in each phase."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from daqloom.base.words import natural_key
from daqloom.report import style
from daqloom.report.figure import Axis, Bars, Legend, Mark, Panel, evenly
from daqloom.report.system.fabric_layout import FONT, LETTER, shorten

MOST_NODES = 32
ROW = 12.0
LEAST_HEIGHT = 110.0
PHASES = 5
"""Number of phases in the figure."""
STEPS = (style.SKY, style.AMBER, style.GREEN, style.PURPLE, style.BLUE, style.ORANGE)
"""Colours of successive phases, in turn."""
WAITS = {"asking": "#f6d9bd", "waiting": "#d8d8d8", "releasing": "#a3a3a3", "idle": "#eeeeee"}
WORDS = {
    "asking": "waiting until its builder unit lets it write",
    "waiting": "in the barrier, waiting for others",
    "releasing": "in the barrier, release",
    "idle": "no partner (dummy)",
}
MOST_NAMED = len(STEPS)
"""Limit on the number of phases in the legend, as colours repeat."""

Phases = Mapping[str, Sequence[Any]]
"""The series "phases" of a result: lists of equal length by column name."""


def panel(width: float, phases: Phases, warmup_s: float) -> Panel:
    """Return the panel of a few phases of typical length, for up to `MOST_NODES` nodes."""
    every = sorted(set(phases["node"]), key=natural_key)
    nodes = spread(every, MOST_NODES)
    part = window(phases, warmup_s)
    few = f"{len(nodes)} of {len(every)} nodes" if len(nodes) < len(every) else "all nodes"
    title = f"Sender and receiver in each phase, {few}: {part.title}"
    line = Timeline(nodes, (part.begin_s, part.end_s), title, width, ROW * len(nodes))
    return line.panel(_bars(phases, nodes, line))


def spread(names: Sequence[str], most: int) -> list[str]:
    """Return at most `most` names at even distance, with the first and the last."""
    return [names[place] for place in evenly(len(names), most)]


@dataclass(frozen=True)
class Timeline:
    """Panel over a part of a run's time, with a row for each name."""

    names: Sequence[str]
    window_s: tuple[float, float]
    title: str
    width: float
    """Width of the panel with the row names (points)."""
    height: float

    @property
    def label(self) -> float:
        """Width of the row names (points)."""
        return 10 + LETTER * max(len(shorten(name)) for name in self.names)

    def panel(self, marks: Sequence[Mark]) -> Panel:
        """Return the panel with the given marks and a legend below."""
        named = sum(bool(getattr(mark, "name", "")) for mark in marks)
        names = [shorten(name) for name in self.names]
        rows = [row + 0.5 for row in range(len(names))]
        begin_ms, end_ms = (1e3 * at for at in self.window_s)
        return Panel(
            marks,
            Axis("time since the start of the run (ms)", (begin_ms, end_ms), grid=False),
            Axis("", (len(names), 0), ticks=rows, names=names, size=FONT, grid=False, bare=True),
            self.title,
            legend=Legend("below", columns=max(1, named), size=FONT),
            place=(self.label, 0, self.width - self.label, max(self.height, LEAST_HEIGHT)),
            title_left=self.label,
        )

    def bars(self, bars: Sequence[Bar], thickness: float, size: float, **look: Any) -> Bars:
        """Return bars, cut to the time span of the timeline, with the texts that fit into them."""
        begin_s, end_s = self.window_s
        rows, begins, ends = (np.array([bar[at] for bar in bars]) for at in range(3))
        first, last = np.maximum(begins, begin_s), np.minimum(ends, end_s)
        room = (last - first) * (self.width - self.label) / (end_s - begin_s)
        letter = LETTER / FONT * size
        texts = [
            bar.text if space > letter * len(bar.text) else ""
            for bar, space in zip(bars, room, strict=True)
        ]
        words: dict[str, Any] = {"texts": texts, "text_at": "middle", "text_size": size}
        return Bars(rows, 1e3 * (last - first), 1e3 * first, thickness, **words, **look)


class Bar(NamedTuple):
    """Time span in a row of a timeline."""

    row: float
    begin_s: float
    end_s: float
    text: str


class Window(NamedTuple):
    """Part of a run that the figure shows."""

    begin_s: float
    end_s: float
    title: str
    """Phases of this part, in words."""


def window(phases: Phases, warmup_s: float) -> Window:
    """Return the span of `PHASES` successive phases after the warm-up whose length is the median of
    all such spans. If there are too few, return all phases after the warm-up."""
    begun_s: dict[int, float] = {}
    for step, begin_s in zip(phases["step"], phases["begin_s"], strict=True):
        begun_s[step] = min(begin_s, begun_s.get(step, begin_s))
    end_s = max(phases["end_s"])
    warm = sorted(step for step, begin_s in begun_s.items() if begin_s >= warmup_s)
    if len(warm) <= PHASES:
        earliest_s = warmup_s if warmup_s < end_s else 0.0
        return Window(earliest_s, end_s, "all phases" if not warmup_s else "all after the warm-up")
    starts = np.array([begun_s[step] for step in warm])
    lengths = starts[PHASES:] - starts[:-PHASES]
    place = int(np.argsort(lengths, kind="stable")[len(lengths) // 2])
    begin_s, stop_s = float(starts[place]), float(starts[place + PHASES])
    span = f"phases {warm[place]} to {warm[place + PHASES - 1]} of {max(begun_s)}"
    return Window(begin_s, stop_s, f"{span}, a stretch of median length")


def _bars(phases: Phases, nodes: Sequence[str], line: Timeline) -> list[Mark]:
    """Return the bars, one set of marks per colour, in the order of the legend."""
    row_of = {name: row for row, name in enumerate(nodes)}
    begin_s, end_s = line.window_s
    bars: dict[str, list[Bar]] = defaultdict(list)
    steps: set[int] = set()
    columns = ("node", "step", "what", "to", "begin_s", "end_s")
    for node, step, what, to, first, last in zip(*(phases[each] for each in columns), strict=True):
        if node not in row_of or last <= max(begin_s, first) or first >= end_s:
            continue
        is_sending = what == "sending"
        if is_sending:
            steps.add(step)
        word = f"to {shorten(to)}" if is_sending else "dummy" if to == "dummy" else ""
        word = "" if what == "releasing" else word
        bars[_colour(what, step)].append(Bar(row_of[node] + 0.5, first, last, word))
    meaning = {_colour("sending", step): f"phase {step}" for step in sorted(steps)[:MOST_NAMED]}
    meaning |= {WAITS[what]: WORDS[what] for what in WAITS}
    return [
        line.bars(bars[colour], 0.82, FONT - 0.5, name=meaning.get(colour, ""), colour=colour)
        for colour in {**meaning, **bars}
        if colour in bars
    ]


def _colour(what: str, step: int) -> str:
    return STEPS[step % len(STEPS)] if what == "sending" else WAITS[what]
