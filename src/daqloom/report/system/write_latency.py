"""How long writes take, or the collection of events: a histogram."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daqloom.report import style
from daqloom.report.system.fabric_layout import FONT
from daqloom.result import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 60
WIDE = 100.0
"""Longest by shortest from which the axis of times is logarithmic."""

Histogram = Mapping[str, Sequence[float]]
"""Columns `lowest_s`, `width_s` and `count`, a row for each bucket."""


WRITES = "Latency of writes", "latency from post to completion"
EVENTS = "Time to collect an event", "latency from assignment to completion"
"""Title, and what the axis of times is."""


def draw(
    axes: Axes,
    histogram: Histogram,
    titles: tuple[str, str] = WRITES,
    exact: Mapping[str, Number | None] | None = None,
) -> None:
    """The share of all in each of equal bins; median, 99 % and slowest in words: `exact` "p50",
    "p99" and "max" (s) of the result, else as the buckets have them."""
    lowest, width, count = (
        np.asarray(histogram[name], float) for name in ("lowest_s", "width_s", "count")
    )
    filled = count > 0
    lowest, highest, count = lowest[filled], (lowest + width)[filled], count[filled]
    wide = highest[-1] > WIDE * lowest[0] > 0
    edges = (np.geomspace if wide else np.linspace)(lowest[0], highest[-1], BINS + 1)
    share = np.diff(reached(edges, lowest, highest, count)) / count.sum()
    axes.stairs(share, edges, fill=True, color=style.SKY)
    axes.set(xscale="log" if wide else "linear", yscale="log")
    axes.set_ylim(0.5 / count.sum(), min(10 * share.max(), 1))
    axes.xaxis.set_major_formatter(lambda value, _: style.round_seconds(value))
    axes.xaxis.set_minor_formatter("")
    axes.yaxis.set_minor_formatter("")
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    if not wide:
        axes.locator_params(axis="x", nbins=5)
    axes.tick_params(labelsize=FONT + 0.5)
    marks = "\n".join(
        f"{text} {style.seconds((exact or {}).get(key) or of_buckets)}"
        for text, key, of_buckets in _marks(lowest, highest, count)
    )
    axes.text(0.98, 0.98, marks, transform=axes.transAxes, ha="right", va="top", fontsize=FONT + 1)
    title, times = titles
    axes.set_xlabel(times)
    axes.set_title(title)
    style.quiet_grid(axes)


def reached(at: Any, lowest: Any, highest: Any, count: Any) -> NDArray[np.float64]:
    """How many writes are done by some time: those of a bucket evenly within it."""
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
