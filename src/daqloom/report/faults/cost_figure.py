"""Figure and page of the cost of link failures: downtime, throughput, and remedies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from daqloom.base.words import duration, plural
from daqloom.faults.costs.loss import MONTH_H, Cost, Estimate, Way
from daqloom.faults.costs.loss_record import notes
from daqloom.faults.costs.network import HOST_LINK
from daqloom.report import page, style
from daqloom.report.faults.failure_figure import duration_axis
from daqloom.report.figure import (
    Axis,
    Bars,
    Figure,
    Legend,
    Line,
    Mark,
    Panel,
    Rule,
    Text,
    dots,
    row_names,
    segments,
)
from daqloom.report.page import Section

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.AMBER, style.SKY)
MOST_BARS = 12
"""Limit on the bars, one for each number of cables down at the same time."""
FEWEST_BARS = 5
"""Least number of rows in a panel of links, so that a single bar is not too thick."""
SHORTEST_S = 1.0
POINTS = 24
"""Points on the curve of repair times."""


def write(path: Path, name: str, cost: Cost) -> None:
    """Write the figure as png, pdf or svg, or a page of figure and tables. Raises OutputError."""
    ways = [
        (way_name, f"{way.full_bps / 1e12:.4g}", f"{way.mean_bps.value / 1e12:.4g}",
         _hours(way.hours_lost))
        for way_name, way in _all_ways(cost)
    ]  # fmt: skip
    links = [
        (each.total.link, each.kind, f"{each.total.failures}", duration(each.total.down_s),
         f"{each.hours_lost:.3g} h", each.total.causes_in_words)
        for each in cost.worst
    ]  # fmt: skip
    link_head = ("most downtime first", "kind", "failures", "down", "lost in a month", "causes")
    way_head = ("", "none down (Tb/s)", "mean (Tb/s)", "lost in a month")
    draws = max(len(each) for each in cost.as_it_is.found_bps.values())
    assumptions = [
        f"a month has {MONTH_H / 24:.0f} days; throughput is the mean of {plural(draws, 'draw')}",
        *notes(cost),
    ]
    drawn = figure(name, cost)
    sections = [
        Section("Cost of failures", [_answer(cost)], is_answer=True, figure=drawn),
        Section("What would help", head=way_head, rows=ways),
        Section("Links", head=link_head, rows=links),
        Section("Assumptions", assumptions),
    ]
    failures = plural(len(cost.month.failures), "failure")
    page.write(path, name, f"{failures} in {cost.month.days:.3g} days, flapping merged", sections)


def figure(name: str, cost: Cost) -> Figure:
    """Return the figure; each of its rows has separate margins, because names differ in length."""
    cells = ((0, 0, 1, 1), (0, 1, 1, 1), (1, 0, 1, 2), (2, 0, 1, 1), (2, 1, 1, 1))
    drawn = _time(cost), _throughput(cost), _ways(cost), _repair(cost), _worst(cost)
    panels = [replace(panel, cell=cell) for panel, cell in zip(drawn, cells, strict=True)]
    return Figure(panels, (12, 10.5), f"{name}: {_answer(cost)}", is_by_row=True)


def _answer(cost: Cost) -> str:
    hours, share = _hours(cost.ways[0].hours_lost), 100 * cost.lost.value
    return f"{hours} of full throughput lost in a month, {share:.3g} % of it"


def _hours(hours: Estimate) -> str:
    value = f"{hours.value:.3g} h"
    if hours.low is None or hours.high is None:
        return value
    return f"{value} ({hours.low:.3g} to {hours.high:.3g})"


INTERVAL = Line([], [], "", style.BLACK, 1.2)


def _ends(estimates: Sequence[Estimate]) -> Any:
    """Return the ends of the intervals of estimates, shape (2, n); NaN for unknown ends."""
    ends = [(each.low, each.high) for each in estimates]
    return np.array(ends, dtype=float).reshape(-1, 2).T


def _time(cost: Cost) -> Panel:
    shares = cost.at_once[1 : MOST_BARS + 1]
    places = np.arange(1, len(shares) + 1)
    marks: list[Mark] = [
        Bars(places, [100 * each.value for each in shares], colour=style.SKY, upright=True),
        segments([places, places], 100 * _ends(shares), INTERVAL),
    ]
    beyond = sum(each.value for each in cost.at_once[MOST_BARS + 1 :])
    more = f"; more than {MOST_BARS}: {100 * beyond:.2g} %" if beyond else ""
    names = [str(place) for place in places]
    return Panel(
        marks,
        Axis(f"cables between switches down at once{more}", ticks=places, names=names),
        Axis("share of the time (%)", (0, None if shares else 1)),
        f"Cables that are down (none: {100 * cost.at_once[0].value:.3g} % of the time)",
    )


def _throughput(cost: Cost) -> Panel:
    largest = max(max(map(max, each.found_bps.values())) for each in cost.throughputs.values())
    scale, unit = style.prefix("bit/s", largest)
    marks: list[Mark] = []
    for (way, each), colour in zip(cost.throughputs.items(), cycle(COLOURS), strict=False):
        marks.append(Line(each.numbers, each.means_bps / scale, way, colour))
        draws = [(number, bps / scale) for number, all_ in each.found_bps.items() for bps in all_]
        x, y = zip(*draws, strict=True)
        marks.append(dots(x, y, marker=".", colour=colour, size=5))
    numbers = cost.as_it_is.numbers
    x_axis = Axis(
        "broken cables; points are draws", ticks=numbers, names=[*map("{:g}".format, numbers)]
    )
    y_axis = Axis(f"throughput ({unit})", (0, None))
    return Panel(marks, x_axis, y_axis, "Throughput left, simulated", legend=Legend())


def _all_ways(cost: Cost) -> list[tuple[str, Way]]:
    found = [(way.name, way) for way in cost.ways]
    found += [(f"repaired within {duration(cap_s)}", way) for cap_s, way in cost.faster_repairs]
    return [*found, (cost.reliable_links.name, cost.reliable_links)]


def _ways(cost: Cost) -> Panel:
    ways = _all_ways(cost)
    colours = dict(zip(cost.throughputs, cycle(COLOURS), strict=False))
    hours = [way.hours_lost for _, way in ways]
    places = np.arange(len(ways))
    shades = [colours.get(name, style.GREY) for name, _ in ways]
    marks: list[Mark] = [
        Bars(places, [each.value for each in hours], 0.0, 0.7, "", shades),
        segments(_ends(hours), [places, places], INTERVAL),
        Rule(0, dash="solid", upright=True, width=0.8),
    ]
    most = 1.05 * max(0.1, *(each.high or each.value for each in hours))
    least = 1.05 * min(0.0, *(each.value if each.low is None else each.low for each in hours))
    shown = max(least, -most)  # a large gain would leave no room for the losses of others
    cut = "; some bars go on" if shown > least else ""
    gained = f" (below 0: gained{cut})" if any(each.value < 0 for each in hours) else ""
    names = [f"{name}   {way.hours_lost.value:.3g} h" for name, way in ways]
    label = f"hours lost in a month, of the full throughput as it is{gained}"
    return Panel(marks, Axis(label, (shown, most)), row_names(names), "What would help")


def _repair(cost: Cost) -> Panel:
    end_s = cost.month.observed.end_s
    longest_s = max(each.lasts_s(end_s) for each in cost.month.failures)
    shortest_s = min(SHORTEST_S, longest_s / 10) or SHORTEST_S
    times_s = np.geomspace(shortest_s, max(longest_s, 10 * shortest_s), POINTS)
    hours = [cost.hours_repaired(float(time_s)) for time_s in times_s]
    marks: list[Mark] = [Line(times_s, hours)]
    if cost.faster_repairs:
        caps_s = [cap_s for cap_s, _ in cost.faster_repairs]
        values = [way.hours_lost.value for _, way in cost.faster_repairs]
        names = [*map(duration, caps_s)]
        marks.append(dots(caps_s, values, colour=style.ORANGE, size=5))
        marks.append(Text(caps_s, values, names, across="right", down="bottom", offset=(-4, 4)))
    x = duration_axis("longest failure", [*times_s])
    y = Axis("hours lost in a month", (min(0.0, *hours), None))
    return Panel(marks, x, y, "If all were repaired within a time")


def _worst(cost: Cost) -> Panel:
    colours = [style.AMBER if each.kind == HOST_LINK else style.BLUE for each in cost.worst]
    hours = [each.hours_lost for each in cost.worst]
    bars = Bars(range(len(hours)), hours, thickness=0.7, colour=colours)
    names = [f"{each.total.link}  ({each.total.failures})" for each in cost.worst]
    x = Axis(f"hours lost in a month{'; amber: host links' if style.AMBER in colours else ''}")
    y = row_names(names, FEWEST_BARS, size=7)
    return Panel([bars], x, y, "Links with most downtime (failures)")
