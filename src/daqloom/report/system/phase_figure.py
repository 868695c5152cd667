"""Linear shifting in time: who sends to whom in which phase, who waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from daqloom.report import style
from daqloom.report.system.fabric_layout import FONT, LETTER, shortened
from daqloom.report.system.sheet import Sheet
from daqloom.words import natural_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NODES = 32
ROW = 12.0
LEAST_HEIGHT = 110.0
PHASES = 5
"""Number of phases that are drawn."""
STEPS = (style.SKY, style.AMBER, style.GREEN, style.PURPLE, style.BLUE, style.ORANGE)
"""Colours of phases one after the other; then they begin again."""
WAITS = {
    "asking": "#f6d9bd",
    "waiting": "#d8d8d8",
    "releasing": "#a3a3a3",
    "idle": "#eeeeee",
}
WORDS = {
    "asking": "waiting until its builder unit lets it write",
    "waiting": "in the barrier, waiting for others",
    "releasing": "in the barrier, release",
    "idle": "no partner (dummy)",
}
MOST_NAMED = len(STEPS)
"""Phases in the legend; with more, colours come again."""

Phases = Mapping[str, Sequence[Any]]
"""`Result.series["phases"]`."""


def draw(sheet: Sheet, width: float, phases: Phases, warmup_s: float) -> float:
    """A few usual phases of up to `MOST_NODES` nodes; returns the height that the panel takes."""
    every = sorted(set(phases["node"]), key=natural_key)
    nodes = spread(every, MOST_NODES)
    begin_s, end_s, which = window(phases, warmup_s)
    few = f"{len(nodes)} of {len(every)} nodes" if len(nodes) < len(every) else "all nodes"
    title = f"Sender and receiver in each phase, {few}: {which}"
    line = timeline(sheet, width, ROW * len(nodes), nodes, (begin_s, end_s), title)
    axes = line.axes
    meaning = _bars(axes, phases, {name: row for row, name in enumerate(nodes)}, begin_s, end_s)
    _label_bars(axes, phases, nodes, begin_s, end_s, line.points_per_s)
    return line.legend([{"color": colour, "label": text} for colour, text in meaning.items()])


def spread(names: Sequence[str], most: int) -> list[str]:
    """At most so many of them, evenly chosen, the first and the last among them."""
    places = np.linspace(0, len(names) - 1, min(most, len(names))).round().astype(int)
    return [names[place] for place in places]


class Timeline(NamedTuple):
    """A panel over the time of a run."""

    axes: Axes
    height: float
    points_per_s: float

    def legend(self, patches: Sequence[Mapping[str, Any]]) -> float:
        """Says below the panel what colours mean; returns the height that both take."""
        from matplotlib.patches import Patch

        self.axes.legend(
            handles=[Patch(**patch) for patch in patches],
            loc="upper left",
            bbox_to_anchor=(0, -32 / self.height),
            ncols=len(patches),
            frameon=False,
            fontsize=FONT,
            handlelength=1.2,
            columnspacing=1.2,
            borderaxespad=0,
        )
        return self.height + 52


def timeline(
    sheet: Sheet,
    width: float,
    height: float,
    names: Sequence[str],
    window_s: tuple[float, float],
    title: str,
) -> Timeline:
    """A panel with a row for each name, and the time of the run in ms."""
    label = 10 + LETTER * max(len(shortened(name)) for name in names)
    height = max(height, LEAST_HEIGHT)
    axes = sheet.axes(label, width - label, height)
    axes.set_title(title, x=-label / (width - label))
    axes.set(xlim=[1e3 * at for at in window_s], ylim=(len(names), 0))
    places = [row + 0.5 for row in range(len(names))]
    axes.set_yticks(places, [shortened(name) for name in names], parse_math=False)
    axes.tick_params(axis="y", length=0, labelsize=FONT)
    axes.set_xlabel("time since the start of the run (ms)")
    return Timeline(axes, height, (width - label) / (window_s[1] - window_s[0]))


class Window(NamedTuple):
    """The part of a run that is drawn."""

    begin_s: float
    end_s: float
    title: str
    """Which phases these are."""


def window(phases: Phases, warmup_s: float) -> Window:
    """`PHASES` in a row after the warm-up that take neither long nor short: of all such stretches
    the one of median length. Of a run with fewer phases, all of it."""
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
    told = f"phases {warm[place]} to {warm[place + PHASES - 1]} of {max(begun_s)}"
    return Window(
        float(starts[place]), float(starts[place + PHASES]), f"{told}, a stretch of median length"
    )


def _bars(
    axes: Axes, phases: Phases, row_of: Mapping[str, int], begin_s: float, end_s: float
) -> dict[str, str]:
    """Draws them; what their colours mean, in the order of the legend."""
    bars: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    seen: set[tuple[bool, int, str]] = set()
    for node, step, what, first, last in _columns(phases, "node", "step", "what"):
        if node in row_of and last > begin_s and first < end_s and last > first:
            bars[_colour(what, step)].append((row_of[node], first, last))
            seen.add((what != "sending", step if what == "sending" else 0, what))
    for colour, of_colour in bars.items():
        row, first, last = np.array(of_colour).T
        axes.barh(row + 0.5, 1e3 * (last - first), left=1e3 * first, height=0.82, color=colour)
    steps = [step for waits, step, _ in sorted(seen) if not waits]
    meaning = {_colour("sending", step): f"phase {step}" for step in steps[:MOST_NAMED]}
    return meaning | {_colour(what, 0): WORDS[what] for what in WAITS if (True, 0, what) in seen}


def _colour(what: str, step: int) -> str:
    return STEPS[step % len(STEPS)] if what == "sending" else WAITS[what]


def _label_bars(
    axes: Axes,
    phases: Phases,
    nodes: Sequence[str],
    begin_s: float,
    end_s: float,
    points_per_s: float,
) -> None:
    """Names of partners where there is room for them."""
    row_of = {name: row for row, name in enumerate(nodes)}
    for node, step, what, to, first, last in _columns(phases, "node", "step", "what", "to"):
        seen = max(first, begin_s), min(last, end_s)
        text = f"to {shortened(to)}" if what == "sending" else "dummy" if to == "dummy" else ""
        fits = points_per_s * (seen[1] - seen[0]) > LETTER * len(text)
        if text and node in row_of and fits and what != "releasing":
            axes.text(
                1e3 * sum(seen) / 2,
                row_of[node] + 0.5,
                text,
                ha="center",
                va="center_baseline",
                fontsize=FONT - 0.5,
                color=style.on(_colour(what, step)),
                parse_math=False,
            )


def _columns(phases: Phases, *names: str) -> Any:
    return zip(*(phases[name] for name in (*names, "begin_s", "end_s")), strict=True)
