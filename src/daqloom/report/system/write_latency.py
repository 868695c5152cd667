"""Histogram of write latency, or of the time to collect an event."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daqloom.report import style
from daqloom.report.figure import Area, Axis, Panel, Text
from daqloom.report.system.fabric_layout import FONT
from daqloom.results.result import Number

BINS = 60
WIDE = 100.0
"""Ratio of longest to shortest time from which the axis of times is logarithmic."""

Histogram = Mapping[str, Sequence[float]]
"""Columns `lowest_s`, `width_s` and `count`, with a value for each bucket."""


WRITES = "Latency of writes", "latency from post to completion"
EVENTS = "Time to collect an event", "latency from assignment to completion"
"""Title of the panel, and label of its axis of times."""


def panel(
    histogram: Histogram,
    titles: tuple[str, str] = WRITES,
    exact: Mapping[str, Number | None] | None = None,
) -> Panel:
    """Return the panel: the share of writes in each of `BINS` bins, and median, 99 % and slowest in
    words. These come from `exact` (keys "p50", "p99", "max"; s), else from the buckets."""
    lowest, width, count = (
        np.asarray(histogram[name], float) for name in ("lowest_s", "width_s", "count")
    )
    filled = count > 0
    lowest, highest, count = lowest[filled], (lowest + width)[filled], count[filled]
    wide = bool(highest[-1] > WIDE * lowest[0] > 0)
    edges = (np.geomspace if wide else np.linspace)(lowest[0], highest[-1], BINS + 1)
    share = np.diff(completions(edges, lowest, highest, count)) / count.sum()
    ends = 0.5 / count.sum(), min(10 * share.max(), 1)
    words = "\n".join(
        f"{text} {style.seconds((exact or {}).get(key) or of_buckets)}"
        for text, key, of_buckets in _marks(lowest, highest, count)
    )
    title, times = titles
    steps = None if wide else style.round_steps(edges[0], edges[-1], 4)
    return Panel(
        [
            Area(edges, ends[0], [*share, share[-1]], colour=style.SKY, opacity=1.0, step="post"),
            Text(0.98, 0.98, [words], size=FONT + 1, across="right", down="top", shares="xy"),
        ],
        Axis(times, log=wide, ticks=steps, text=style.round_seconds, size=FONT + 0.5),
        Axis("", ends, log=True, text=lambda value: f"{100 * value:g} %", size=FONT + 0.5),
        title,
    )


def completions(at: Any, lowest: Any, highest: Any, count: Any) -> NDArray[np.float64]:
    """Return how many writes completed up to time `at`, evenly spread in each bucket."""
    times = np.stack([lowest, highest], axis=1).ravel()
    total = np.cumsum(count)
    done = np.stack([total - count, total], axis=1).ravel()
    found: NDArray[np.float64] = np.interp(at, times, done)
    return found


def _marks(lowest: Any, highest: Any, count: Any) -> Iterator[tuple[str, str, float]]:
    total = np.cumsum(count)
    for text, key, share in (("median", "p50", 0.5), ("99 %", "p99", 0.99)):
        bucket = int(np.searchsorted(total, share * total[-1]))
        yield text, key, (lowest[bucket] + highest[bucket]) / 2
    yield "slowest", "max", highest[-1]
