"""The methods side by side as bars, alone or on a page: rate, phase or latency, buffer, time."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from daqloom.metrics import label, unit_of
from daqloom.output import write_text
from daqloom.report import style
from daqloom.report.page import page, picture, table
from daqloom.report.system.beside_table import head, rows, title, value_of, verdict
from daqloom.scenario.switches import LEVELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from daqloom.result import Result
    from daqloom.study.beside import Beside

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
"""Shares of a node's time, and their colours."""
REST = "sending, building, rest"
LIGHT = "#d9d9d9"
BAR = 0.62
"""Height of a bar, of that of a row."""
LEAST_SHARE = 5e-4


def write(path: Path, found: Beside) -> None:
    """Writes png, pdf, svg, or a page that opens in any browser, offline. Raises OutputError."""
    if path.suffix.lower() == ".html":
        write_text(path, render(found))
    else:
        style.save(draw(found), path)


def render(found: Beside) -> str:
    """Return the page: the picture, what it says, the table, and notes of the methods."""
    described = "Bars of the methods: events per second, phase or latency, buffer, shares of time"
    notes = [
        f"Note, {result.method}: {warning}"
        for result in found.results
        for warning in result.warnings
    ]
    return page(
        f"{found.scenario.name}: {', '.join(result.method for result in found.results)}",
        title(found),
        [
            picture(
                "One scenario, all methods",
                "",
                style.png(draw(found, titled=False), 130),
                described,
            ),
            *(f"<p>{html.escape(sentence)}</p>" for sentence in verdict(found)),
            table(head(found), rows(found)),
            *(f"<p>{html.escape(sentence)}</p>" for sentence in notes),
        ],
    )


def draw(found: Beside, *, titled: bool = True) -> Figure:
    """A panel for each amount that some method gives, and one of shares."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    amounts = [path for path in AMOUNTS if any(value_of(each, path) for each in found.results)]
    amounts = [*amounts[:MOST_AMOUNTS], *_fullest_buffer(found)]
    timed = [result for result in found.results if _shares(result)]
    with mpl.rc_context(style.RC):
        columns = len(amounts) + bool(timed)
        figure = Figure(figsize=(1.2 + 3.6 * columns, 3.3), layout="constrained")
        panels = figure.subplots(1, columns, squeeze=False)[0]
        for axes, path in zip(panels, amounts, strict=False):
            _bars(axes, found.results, path)
            axes.set_title(label(path).capitalize())
        if timed:
            _stacks(panels[-1], found.results)
            panels[-1].set_title("Use of a node's time")
        for axes in panels[1:]:
            axes.tick_params(axis="y", labelleft=False)
        if titled:
            figure.suptitle(title(found), x=0.01, ha="left", fontsize=11, color=style.GREY)
    return figure


def _fullest_buffer(found: Beside) -> list[str]:
    """The peak of the level of switches that holds most by any method; none without buffers."""
    peaks = {
        path: max(value_of(each, path) or 0.0 for each in found.results)
        for path in (f"buffer_peak_bytes.{level}" for level in LEVELS)
    }
    fullest = max(peaks, key=lambda path: peaks[path])
    return [fullest] if peaks[fullest] else []


def _bars(axes: Axes, results: tuple[Result, ...], path: str) -> None:
    unit = unit_of(path)
    values = [value_of(result, path) for result in results]
    divisor, prefixed = style.prefixed(unit, max(value or 0.0 for value in values))
    bars = axes.barh(
        range(len(results)),
        [(value or 0.0) / divisor for value in values],
        height=BAR,
        color=[COLOURS[result.method] for result in results],
    )
    scales = [style.prefixed(unit, value or 0.0) for value in values]
    told = [
        " not given" if value is None else f" {value / scale:.3g} {own}"
        for value, (scale, own) in zip(values, scales, strict=True)
    ]
    axes.bar_label(bars, told, fontsize=9)
    _methods(axes, results)
    axes.set_xlabel(prefixed)
    axes.margins(x=0.28)
    axes.set_xlim(left=0)


def _shares(result: Result) -> dict[str, float]:
    return {path: value for path in SHARES if (value := value_of(result, path)) is not None}


def _stacks(axes: Axes, results: tuple[Result, ...]) -> None:
    given = [_shares(result) for result in results]
    for place, shares in enumerate(given):
        if not shares:
            axes.text(0, place, " not given", va="center", color=style.GREY, fontsize=8)
    parts = [
        (label(path), colour, [shares.get(path, 0.0) for shares in given])
        for path, colour in SHARES.items()
    ]
    rest = [max(0.0, 1 - sum(shares.values())) if shares else 0.0 for shares in given]
    left = np.zeros(len(given))
    for name, colour, taken in [*parts, (REST, LIGHT, rest)]:
        if max(taken) < LEAST_SHARE:
            continue
        percent = 100 * np.array(taken)
        bars = axes.barh(range(len(given)), percent, BAR, left, color=colour, label=name)
        told = [f"{each:.0f} %" if each > 12 else "" for each in percent]
        axes.bar_label(bars, told, label_type="center", fontsize=8, color=style.on(colour))
        left += percent
    _methods(axes, results)
    axes.set(xlim=(0, 100), xlabel="% of the nodes' time")
    axes.legend(loc="upper center", bbox_to_anchor=(0.45, -0.2), ncols=2, frameon=False, fontsize=8)


def _methods(axes: Axes, results: tuple[Result, ...]) -> None:
    axes.set_yticks(range(len(results)), [NAMES[result.method] for result in results])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(results) - 0.5, -0.5)
    axes.grid(axis="x", color="#ececec", linewidth=0.7)
    axes.set_axisbelow(True)
