"""Figure of a run over time: event rate, throughput and members, as fig. 13 of the LHCb paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from daqloom.base.words import TIMES_S
from daqloom.report import style
from daqloom.report.figure import Axis, Band, Figure, Line, Mark, Panel, Rule, Text

MOST_NAMED = 16
"""Limit on the number of losses of units whose time is marked."""
LONG_S = {"s": 600.0, "min": 3 * 3600.0, "h": 3 * 86_400.0}
"""Longest run that is drawn in a unit of time."""


def figure(title: str, run: Mapping[str, Any], events: Iterable[Mapping[str, Any]]) -> Figure:
    """Return the figure of a run's series `run` and of the losses of units in its log."""
    begins_s, widths_s = run["time_s"], run["width_s"]
    end_s = float(begins_s[-1] + widths_s[-1]) if len(begins_s) else 1.0
    name = next((name for name, most_s in LONG_S.items() if end_s <= most_s), "d")
    scale_s = TIMES_S[name]
    ends = np.r_[begins_s, end_s] / scale_s
    lost = [each for each in events if each.get("trouble") and each.get("lost") is not None]
    marks: list[Mark] = list(_idle(run, scale_s))
    marks += [
        Rule(each["time_s"] / scale_s, colour=style.ORANGE, dash="solid", upright=True)
        for each in lost[:MOST_NAMED]
    ]

    def course(values: Any, colour: str) -> Line:
        last = values[-1:] if len(values) else [0.0]
        return Line(ends, np.r_[values, last], width=1.3, step="post", colour=colour)

    rate = run["events"] / widths_s
    most = int(np.nanmax(run["members"], initial=1))
    prefix, factor = next(
        (each for each in (("M", 1e6), ("k", 1e3)) if len(rate) and rate.max() >= each[1]),
        ("", 1.0),
    )
    x = Axis(ends=(0, end_s / scale_s), grid=False)
    names = Text(
        [each["time_s"] / scale_s for each in lost[:MOST_NAMED]],
        1.02,
        [f"unit {each['lost']}" for each in lost[:MOST_NAMED]],
        style.ORANGE,
        shares="y",
        across="left",
        down="bottom",
        turned=30,
    )
    panels = [
        Panel(
            [*marks, course(rate / factor, style.BLUE), *([names] if lost else [])],
            x,
            Axis(f"event rate ({prefix}Hz)", (0, None), grid=False),
        ),
        Panel(
            [*marks, course(8 * run["bytes"] / widths_s / 1e9, style.GREEN)],
            x,
            Axis("throughput (Gb/s)", (0, None), grid=False),
            cell=(1, 0, 1, 1),
        ),
        Panel(
            [*marks, course(run["members"], style.BLACK)],
            Axis(f"time since the start ({name})", (0, end_s / scale_s), grid=False),
            Axis("members", (0, None), ticks=[0, most], grid=False),
            cell=(2, 0, 1, 1),
        ),
    ]
    return Figure(panels, (9, 5.6), title, shared="x", heights=(3, 3, 1))


def _idle(run: Mapping[str, Any], scale_s: float) -> Iterable[Band]:
    """Yield a band for each span in which the run did not build or has no bins."""
    ends_s = run["time_s"] + run["width_s"]
    for begin_s, end_s, phase in zip(run["time_s"], ends_s, run["phase"], strict=True):
        if phase != "running":
            yield Band(begin_s / scale_s, end_s / scale_s)
    for begin_s, end_s in zip(ends_s[:-1], run["time_s"][1:], strict=True):
        if end_s - begin_s > 1e-3:
            yield Band(begin_s / scale_s, end_s / scale_s, style.ORANGE)
