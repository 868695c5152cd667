"""Figure and page to compare the methods: rate, phase or latency, buffer, use of time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from daqloom.report import page, style
from daqloom.report.figure import Axis, Bars, Figure, Legend, Mark, Panel, Text, in_grid, row_names
from daqloom.report.page import Section
from daqloom.report.system.methods_table import head, rows, title, value_of, verdict
from daqloom.results.metrics import label, unit_of
from daqloom.scenario.schema.switches import LEVELS

if TYPE_CHECKING:
    from daqloom.results.result import Result
    from daqloom.study.methods.all_methods import MethodResults

COLOURS = {"analyse": style.GREY, "simulate": style.BLUE, "measure": style.ORANGE}
NAMES = {"analyse": "closed form", "simulate": "simulated", "measure": "measured"}
AMOUNTS = ("event_rate_hz", "phase_s", "collection_latency_s.mean")
MOST_AMOUNTS = 2
SHARES = {
    "barrier_share": style.AMBER,
    "waiting_share.source": style.PURPLE,
    "waiting_share.builder": style.SKY,
    "waiting_share.network": style.GREEN,
    "idle_share": style.GREY,
}
"""Metrics that are shares of a node's time, with their colours."""
REST = "sending, building, rest"
LIGHT = "#d9d9d9"
BAR = 0.62
"""Height of a bar, as a share of the height of a row."""
LEAST_SHARE = 5e-4
WHOLE = 100.01
"""Upper limit of the axis of shares (%), as rounded shares may sum to more than 100."""


def write(path: Path, comparison: MethodResults) -> None:
    """Write the figure to a png, pdf or svg file, or a page with figure, verdict and table. Raises
    OutputError if that fails."""
    notes = [
        f"Note, {result.method}: {warning}"
        for result in comparison.results
        for warning in result.warnings
    ]
    sections = [
        Section("", list(verdict(comparison)), is_answer=True),
        Section("One scenario, all methods", figure=figure(comparison)),
        Section("", head=head(comparison), rows=rows(comparison)),
        Section("", notes),
    ]
    methods = ", ".join(result.method for result in comparison.results)
    page.write(path, f"{comparison.scenario.name}: {methods}", title(comparison), sections)


def figure(found: MethodResults) -> Figure:
    """Return a panel for each of the first metrics that a method gives, and one of shares."""
    amounts = [path for path in AMOUNTS if any(value_of(each, path) for each in found.results)]
    amounts = [*amounts[:MOST_AMOUNTS], *_fullest_buffer(found)]
    panels = [_amount(found.results, path) for path in amounts]
    if any(map(_shares, found.results)):
        panels.append(_use_of_time(found.results))
    size = 1.2 + 3.6 * len(panels), 3.3
    return Figure(in_grid(panels, len(panels)), size, title(found), shared="y")


def _fullest_buffer(found: MethodResults) -> list[str]:
    """Return the path of the metric with the largest buffer peak over all switch levels and
    methods. The list is empty if there are no buffers."""
    peaks = {
        path: max(value_of(each, path) or 0.0 for each in found.results)
        for path in (f"buffer_peak_bytes.{level}" for level in LEVELS)
    }
    fullest = max(peaks, key=lambda path: peaks[path])
    return [fullest] if peaks[fullest] else []


def _amount(results: Sequence[Result], path: str) -> Panel:
    unit = unit_of(path)
    values = [value_of(result, path) for result in results]
    largest = max(value or 0.0 for value in values)
    divisor, prefixed = style.prefix(unit, largest)
    scales = [style.prefix(unit, value or 0.0) for value in values]
    texts = [
        "not given" if value is None else f"{value / scale:.3g} {own}"
        for value, (scale, own) in zip(values, scales, strict=True)
    ]
    bars = Bars(
        range(len(results)),
        [(value or 0.0) / divisor for value in values],
        thickness=BAR,
        colour=[COLOURS[result.method] for result in results],
        texts=texts,
        text_size=9,
    )
    x = Axis(prefixed, (0, 1.34 * largest / divisor or 1.0))
    return Panel([bars], x, _methods(results), label(path).capitalize())


def _shares(result: Result) -> dict[str, float]:
    return {path: value for path in SHARES if (value := value_of(result, path)) is not None}


def _use_of_time(results: Sequence[Result]) -> Panel:
    shares = [_shares(result) for result in results]
    marks: list[Mark] = [
        Text(0, place, ["not given"], style.GREY, across="left", offset=(4, 0))
        for place, each in enumerate(shares)
        if not each
    ]
    parts = [
        (label(path), colour, [each.get(path, 0.0) for each in shares])
        for path, colour in SHARES.items()
    ]
    rest = [max(0.0, 1 - sum(each.values())) if each else 0.0 for each in shares]
    left = np.zeros(len(shares))
    for name, colour, part in [*parts, (REST, LIGHT, rest)]:
        if max(part) < LEAST_SHARE:
            continue
        percent = 100 * np.array(part)
        texts = [f"{each:.0f} %" if each > 12 else "" for each in percent]
        look: dict[str, Any] = {"colour": colour, "texts": texts, "text_at": "middle"}
        marks.append(Bars(range(len(shares)), percent, left, BAR, name, **look))
        left = left + percent
    x, legend = Axis("% of the nodes' time", (0, WHOLE)), Legend("below", columns=2, size=8)
    return Panel(marks, x, _methods(results), "Use of a node's time", legend=legend)


def _methods(results: Sequence[Result]) -> Axis:
    return row_names([NAMES[result.method] for result in results], grid=False, bare=True)
