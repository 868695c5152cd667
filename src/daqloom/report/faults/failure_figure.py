"""Failures of a site's links in one figure: durations, days, links, and times between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daqloom.faults.clock import DAY_S, day_name
from daqloom.faults.failure import Failure
from daqloom.faults.summary import Variant, distinct
from daqloom.output import write_text
from daqloom.report import style
from daqloom.words import TIMES_S, counted, duration, natural_key, unit_of_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (style.SKY, style.ORANGE, style.BLUE)
MOST_BARS = 20
"""Of the links that fail most."""
MARKS_S = (
    1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 36_000, 86_400, 864_000, 8_640_000,
)  # fmt: skip
"""On the axis of durations, where they lie on it."""
MOST_COLUMNS = 400
MOST_ROWS = 2000
"""Of the map; of longer logs several days, of more links several neighbours share one."""
LABELS = 24
"""Names of links beside the map, at most."""


def write(path: Path, kinds: Mapping[str, Variant], links: Sequence[str]) -> None:
    """Write the figure as png, pdf or svg, or a page with it and a table of links. `links`: all of
    the network, in the order of the map; none where it is not known. Raises OutputError."""
    figure = draw(kinds, links)
    if path.suffix.lower() == ".html":
        write_text(path, _page(figure, kinds))
    else:
        style.save(figure, path)


@style.in_style
def draw(kinds: Mapping[str, Variant], links: Sequence[str]) -> Figure:
    """Return the figure."""
    from matplotlib.figure import Figure as Blank

    figure = Blank(figsize=(12, 9.2), layout="constrained")
    panels = figure.subplot_mosaic([["durations", "map"], ["days", "map"], ["between", "links"]])
    real = list(kinds.values())[1]
    last = list(kinds.values())[-1]
    _durations(panels["durations"], kinds)
    _days(panels["days"], kinds)
    _map(panels["map"], real, links)
    _between(panels["between"], last)
    _worst(panels["links"], last)
    return figure


def _durations(axes: Axes, kinds: Mapping[str, Variant]) -> None:
    for (name, kind), colour in zip(distinct(kinds).items(), COLOURS, strict=False):
        found = kind.durations
        if not len(found.duration_s):
            continue
        label = f"{name}, {len(kind.failures):,}"
        axes.step(found.duration_s, found.share, where="post", color=colour, label=label)
        axes.fill_between(
            found.duration_s, found.low, found.high, step="post", color=colour, alpha=0.2, lw=0
        )
    axes.set(xscale="log", ylim=(0, 1), xlabel="duration, with bands of 95 %")
    duration_marks(axes)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.set_title("Failures that end within a duration")
    if axes.lines:
        axes.legend(frameon=False, loc="lower right")
    style.quiet_grid(axes)


def duration_marks(axes: Axes) -> None:
    """Mark durations on a logarithmic axis in the units of people."""
    from matplotlib.ticker import NullLocator

    shortest_s, longest_s = axes.get_xlim()
    marks = [at for at in MARKS_S if shortest_s <= at <= longest_s]
    axes.set_xticks(marks, [_round_duration(at) for at in marks])
    axes.xaxis.set_minor_locator(NullLocator())


def _days(axes: Axes, kinds: Mapping[str, Variant]) -> None:
    every, real = list(kinds.values())[:2]
    span = _Days(every)
    outside = span.counts(real)
    tests = span.counts(every) - outside
    places = np.arange(span.columns) + 0.5
    axes.bar(places, outside, color=style.ORANGE, label="outside tests", width=0.85)
    axes.bar(places, tests, bottom=outside, color="#d8d8d8", label="in test periods", width=0.85)
    span.mark(axes)
    each = "each day" if span.step == 1 else f"each {span.step} days"
    axes.set_title(f"Failures that begin on {each}")
    if tests.any():
        axes.legend(frameon=False)
    style.quiet_grid(axes)


class _Days:
    """The days of a log as columns of one day each, or of several where there are many."""

    def __init__(self, kind: Variant) -> None:
        self.first, last = (int(at // DAY_S) for at in kind.observed)
        self.step = -(-(last - self.first + 1) // MOST_COLUMNS)
        self.columns = (last - self.first) // self.step + 1

    def column(self, failure: Failure) -> int:
        """Return that in which a failure begins."""
        return (int(failure.begin_s // DAY_S) - self.first) // self.step

    def counts(self, kind: Variant) -> NDArray[np.int64]:
        """Return how many failures begin in each."""
        columns = [self.column(each) for each in kind.failures]
        return np.bincount(np.array(columns, dtype=np.int64), minlength=self.columns)

    def mark(self, axes: Axes) -> None:
        """Write some of their dates below."""
        places = np.arange(0, self.columns, max(1, -(-self.columns // 6)))
        names = [day_name(self.first + self.step * int(place)) for place in places]
        same = len({name[:4] for name in names}) == 1
        axes.set_xticks(places + 0.5, [name[5:] if same else name[:7] for name in names])
        axes.set_xlim(0, self.columns)
        axes.set_xlabel(f"day (UTC), from {names[0]}")


def _map(axes: Axes, kind: Variant, links: Sequence[str]) -> None:
    """Rows are links by switch and port, of those that failed."""
    failed = {each.link for each in kind.failures}
    rows = [link for link in links if link in failed]
    rows = rows or sorted(failed, key=natural_key)
    per_row = -(-max(1, len(rows)) // MOST_ROWS)
    row_of = {link: row // per_row for row, link in enumerate(rows)}
    span = _Days(kind)
    grid = np.zeros((max(1, -(-len(rows) // per_row)), span.columns))
    for each in kind.failures:
        grid[row_of[each.link], span.column(each)] += 1
    shown = np.ma.masked_equal(grid, 0)
    from matplotlib.colors import LogNorm

    image = axes.pcolormesh(shown, cmap="viridis_r", norm=LogNorm(1, max(2, grid.max())))
    marks = [n * 10**power for power in range(6) for n in (1, 2, 5) if n * 10**power <= grid.max()]
    bar = axes.figure.colorbar(
        image, ax=axes, label="failures", shrink=0.6, ticks=marks, format="%g"
    )
    bar.ax.minorticks_off()
    places = np.unique(np.linspace(0, len(rows) - 1, min(LABELS, len(rows))).astype(int))
    axes.set_yticks(
        (places + 0.5) / per_row, [rows[place].split(" - ")[0] for place in places], fontsize=7
    )
    axes.set_ylim(len(grid), 0)
    span.mark(axes)
    axes.set_title(f"Outside tests, {counted(len(rows), 'link')} by switch and port")


def _between(axes: Axes, kind: Variant) -> None:
    """The share of intervals that are longer, found and fitted, on the scale of an exponential."""
    found = kind.intervals
    longest_s = float(found.interval_s.max(initial=0.0))
    scale, unit = unit_of_time(longest_s / 3)
    if len(found.interval_s):
        left = 1 - np.arange(len(found.interval_s)) / len(found.interval_s)
        axes.step(found.interval_s / scale, left, where="pre", color=style.BLACK, label="found")
        axes.set_ylim(0.5 / len(found.interval_s), 1.2)
    for fit, colour in zip(found.fits, (style.SKY, style.PURPLE), strict=False):
        times = np.linspace(0, longest_s, 400)
        share = np.exp(-((times / fit.scale_s) ** fit.shape))
        axes.plot(times / scale, share, color=colour, label=f"{fit.name}, p = {fit.p_value:.2g}")
    axes.set(yscale="log", xlabel=f"time from one failure to the next ({unit}), flapping merged")
    if axes.lines:
        axes.legend(frameon=False)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.set_title("Intervals that are longer")
    style.quiet_grid(axes)


def _worst(axes: Axes, kind: Variant) -> None:
    totals = kind.totals[:MOST_BARS]
    hours = [total.down_s / TIMES_S["h"] for total in totals]
    axes.barh(range(len(totals)), hours, color=style.BLUE)
    names = [f"{total.link}  ({total.failures})" for total in totals]
    axes.set_yticks(range(len(totals)), names, fontsize=7)
    axes.set_ylim(max(1, len(totals)) - 0.5, -0.5)
    axes.set_xlabel("cumulative downtime (h)")
    axes.set_title("Links that fail most (failures, flapping merged)")
    style.quiet_grid(axes)


def _round_duration(value_s: float) -> str:
    length, unit = unit_of_time(value_s)
    return f"{value_s / length:g} {unit}" if unit != "s" else style.round_seconds(value_s)


def _page(figure: Any, kinds: Mapping[str, Variant]) -> str:
    from daqloom.report.page import page, picture, table

    last = list(kinds.values())[-1]
    begin, end = (day_name(int(at // DAY_S)) for at in last.observed)
    told = "; ".join(f"{name}: {len(kind.failures):,}" for name, kind in kinds.items())
    rows = [
        (total.link, f"{total.failures}", duration(total.down_s), total.causes_in_words)
        for total in last.totals
    ]
    parts = [
        picture("Failures", told, style.png(figure, 110), "Durations, days, links and intervals"),
        "<h2>Links</h2>",
        table(("link", "failures, flapping merged", "down", "causes"), rows),
    ]
    return page("Failures of links", f"{begin} to {end}", parts)
