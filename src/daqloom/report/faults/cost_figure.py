"""What failures of links cost in one figure: what is down, what is left, and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.faults.loss import MONTH_H, Cost, Estimate, Way
from daqloom.faults.loss_record import notes
from daqloom.faults.network import HOST_LINK
from daqloom.output import write_text
from daqloom.report import style
from daqloom.report.faults.failure_figure import duration_marks
from daqloom.words import counted, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.AMBER, style.SKY)
MOST_BARS = 12
"""Numbers of cables that are down at once."""
FEWEST_BARS = 5
"""Of links, so that a single one is no wall."""
SHORTEST_S = 1.0
POINTS = 24
"""Of the curve of repair times."""


def write(path: Path, name: str, cost: Cost) -> None:
    """Write the figure as png, pdf or svg, or a page with it and tables. Raises OutputError."""
    figure = draw(name, cost)
    if path.suffix.lower() == ".html":
        write_text(path, _page(figure, name, cost))
    else:
        style.save(figure, path)


@style.in_style
def draw(name: str, cost: Cost) -> Figure:
    """Return the figure."""
    from matplotlib.figure import Figure as Blank

    figure = Blank(figsize=(12, 10.5), layout="constrained")
    figure.suptitle(f"{name}: {_answer(cost)}", fontsize=11, x=0.01, ha="left")
    # Of their own margins, for names differ in length.
    above, middle, below = figure.subfigures(3, 1, squeeze=False)[:, 0]
    time, left = above.subplots(1, 2)
    _time(time, cost)
    _left(left, cost)
    _ways(middle.subplots(), cost)
    repair, worst = below.subplots(1, 2)
    _repair(repair, cost)
    _worst(worst, cost)
    return figure


def _answer(cost: Cost) -> str:
    hours = cost.ways[0].hours
    return (
        f"{_hours(hours)} of full throughput lost in a month, {100 * cost.lost.value:.3g} % of it"
    )


def _hours(hours: Estimate) -> str:
    told = f"{hours.value:.3g} h"
    if hours.low is None or hours.high is None:
        return told
    return f"{told} ({hours.low:.3g} to {hours.high:.3g})"


def _time(axes: Axes, cost: Cost) -> None:
    shares = cost.at_once[1 : MOST_BARS + 1]
    places = np.arange(1, len(shares) + 1)
    axes.bar(places, [100 * each.value for each in shares], color=style.SKY, width=0.8)
    for place, each in zip(places, shares, strict=True):
        if each.low is not None and each.high is not None:
            axes.plot([place] * 2, [100 * each.low, 100 * each.high], color=style.BLACK, lw=1.2)
    axes.set_xticks(places)
    axes.set_ylim(0, None if shares else 1)
    beyond = sum(each.value for each in cost.at_once[MOST_BARS + 1 :])
    more = f"; more than {MOST_BARS}: {100 * beyond:.2g} %" if beyond else ""
    axes.set(xlabel=f"cables between switches down at once{more}", ylabel="share of the time (%)")
    axes.set_title(f"What is down (none: {100 * cost.at_once[0].value:.3g} % of the time)")
    style.quiet_grid(axes)


def _left(axes: Axes, cost: Cost) -> None:
    largest = max(max(map(max, each.found_bps.values())) for each in cost.throughputs.values())
    scale, unit = style.prefixed("bit/s", largest)
    for (way, each), colour in zip(cost.throughputs.items(), cycle(COLOURS), strict=False):
        axes.plot(each.numbers, each.means_bps / scale, color=colour, label=way)
        for number, draws in each.found_bps.items():
            axes.plot([number] * len(draws), np.array(draws) / scale, ".", color=colour, ms=5)
    axes.set_xticks(cost.as_it_is.numbers)
    axes.set_ylim(0, None)
    axes.set(xlabel="broken cables; points are draws", ylabel=f"throughput ({unit})")
    axes.set_title("What is left, simulated")
    axes.legend(frameon=False)
    style.quiet_grid(axes)


def _all_ways(cost: Cost) -> list[tuple[str, Way]]:
    found = [(way.name, way) for way in cost.ways]
    found += [(f"repaired within {duration(cap_s)}", way) for cap_s, way in cost.repaired]
    return [*found, (cost.mended.name, cost.mended)]


def _ways(axes: Axes, cost: Cost) -> None:
    ways = _all_ways(cost)
    colours = dict(zip(cost.throughputs, cycle(COLOURS), strict=False))
    for place, (name, way) in enumerate(ways):
        hours = way.hours
        axes.barh(place, hours.value, color=colours.get(name, style.GREY), height=0.7)
        if hours.low is not None and hours.high is not None:
            axes.plot([hours.low, hours.high], [place] * 2, color=style.BLACK, lw=1.2)
    axes.set_yticks(range(len(ways)), [f"{name}   {way.hours.value:.3g} h" for name, way in ways])
    axes.set_ylim(len(ways) - 0.5, -0.5)
    least, _ = axes.get_xlim()
    most = 1.05 * max(0.1, *(way.hours.high or way.hours.value for _, way in ways))
    shown = max(least, -most)  # a way that gains much would leave no room for what others lose
    axes.set_xlim(shown, most)
    cut = "; some bars go on" if shown > least else ""
    gained = f" (below 0: gained{cut})" if any(way.hours.value < 0 for _, way in ways) else ""
    axes.axvline(0, color=style.GREY, lw=0.8)
    axes.set_xlabel(f"hours lost in a month, of the full throughput as it is{gained}")
    axes.set_title("What would help")
    style.quiet_grid(axes)


def _repair(axes: Axes, cost: Cost) -> None:
    end_s = cost.month.observed.end_s
    longest_s = max(each.lasts_s(end_s) for each in cost.month.failures)
    shortest_s = min(SHORTEST_S, longest_s / 10) or SHORTEST_S
    times_s = np.geomspace(shortest_s, max(longest_s, 10 * shortest_s), POINTS)
    hours = [cost.hours_repaired(float(time_s)) for time_s in times_s]
    axes.plot(times_s, hours, color=style.BLUE)
    for cap_s, way in cost.repaired:
        axes.plot([cap_s], [way.hours.value], "o", color=style.ORANGE, ms=5)
        axes.annotate(
            duration(cap_s), (cap_s, way.hours.value), (-4, 4), textcoords="offset points",
            ha="right", fontsize=8,
        )  # fmt: skip
    axes.set(xscale="log", xlabel="longest failure", ylabel="hours lost in a month")
    duration_marks(axes)
    axes.set_ylim(min(0.0, *hours), None)
    axes.set_title("If all were repaired within a time")
    style.quiet_grid(axes)


def _worst(axes: Axes, cost: Cost) -> None:
    for place, each in enumerate(cost.worst):
        colour = style.AMBER if each.kind == HOST_LINK else style.BLUE
        axes.barh(place, each.hours, color=colour, height=0.7)
    names = [f"{each.total.link}  ({each.total.failures})" for each in cost.worst]
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_ylim(max(FEWEST_BARS, len(names)) - 0.5, -0.5)
    hosts = any(each.kind == HOST_LINK for each in cost.worst)
    axes.set_xlabel(f"hours lost in a month{'; amber: host links' if hosts else ''}")
    axes.set_title("Links with most downtime (failures)", loc="right")
    style.quiet_grid(axes)


def _page(figure: Any, name: str, cost: Cost) -> str:
    from daqloom.report.page import page, picture, table

    ways = [
        (named, f"{way.full_bps / 1e12:.4g}", f"{way.mean_bps.value / 1e12:.4g}", _hours(way.hours))
        for named, way in _all_ways(cost)
    ]
    links = [
        (each.total.link, each.kind, f"{each.total.failures}", duration(each.total.down_s),
         f"{each.hours:.3g} h", each.total.causes_in_words)
        for each in cost.worst
    ]  # fmt: skip
    rests = [(sentence,) for sentence in _rests(cost)]
    described = "Time with cables down, throughput, what would help, repair times and links"
    parts = [
        picture("Cost of failures", _answer(cost), style.png(figure, 110), described, answer=True),
        "<h2>What would help</h2>",
        table(("", "none down (Tb/s)", "mean (Tb/s)", "lost in a month"), ways),
        "<h2>Links</h2>",
        table(
            ("most downtime first", "kind", "failures", "down", "lost in a month", "causes"), links
        ),
        "<h2>What it rests on</h2>",
        table(("",), rests),
    ]
    failures = counted(len(cost.month.failures), "failure")
    return page(name, f"{failures} in {cost.month.days:.3g} days, flapping merged", parts)


def _rests(cost: Cost) -> Sequence[str]:
    draws = max(len(found) for found in cost.as_it_is.found_bps.values())
    return [
        f"a month has {MONTH_H / 24:.0f} days; throughput is the mean of {counted(draws, 'draw')}",
        *notes(cost),
    ]
