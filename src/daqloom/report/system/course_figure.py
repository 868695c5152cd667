"""Figure of throughput, members and faults over the time of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from daqloom.report import style
from daqloom.report.figure import Axis, Band, Figure, Line, Mark, Panel, Rule, Text

if TYPE_CHECKING:
    from daqloom.results.result import Result

MOST_NAMED = 24
"""Limit on the number of faults for which names are written above the figure."""


def figure(result: Result) -> Figure:
    """Return the figure of the series that `daqloom.results.course` writes into a result."""
    throughput, members = (result.series[name] for name in ("throughput", "members"))
    until_s = max([*throughput["end_s"], *members["time_s"], 0.0])
    faults = result.series.get("faults", {})
    events = [*_regroupings(members, until_s), *_faults(faults, until_s)]
    rates = [bps / 1e9 for bps in throughput["throughput_bps"]]
    step: dict[str, Any] = {"step": "post"}
    begins_s, ends_s = throughput["begin_s"], throughput["end_s"]
    course = Line(
        [*begins_s, *ends_s[-1:]], [*rates, *rates[-1:]], width=1.4, hover="%{y:.4g} Gb/s", **step
    )
    counts = [*members["members"], *members["members"][-1:]]
    times_s = [*members["time_s"], until_s]
    count = Line(times_s, counts, colour=style.GREEN, hover="%{y} members", **step)
    x = Axis(ends=(0, until_s or 1.0), grid=False)
    rate_axis = Axis("throughput (Gb/s)", (0, None), grid=False)
    member_axis = Axis("members", (0, None), integer=True, grid=False)
    labelled = replace(x, label="time since all units first build (s)")
    panels = [
        Panel([*events, course, *_names(faults)], x, rate_axis),
        Panel([*events, count], labelled, member_axis, cell=(1, 0, 1, 1)),
    ]
    title = f"{result.scenario}: {result.method}"
    return Figure(panels, (9, 4.6), title, shared="x", heights=(3, 1))


def _regroupings(members: Mapping[str, Sequence[Any]], until_s: float) -> Iterator[Mark]:
    ends_s = [*members["time_s"][1:], until_s]
    for begin_s, end_s, count in zip(members["time_s"], ends_s, members["members"], strict=True):
        if not count:
            yield Band(begin_s, end_s)


def _faults(faults: Mapping[str, Sequence[Any]], until_s: float) -> Iterator[Mark]:
    """Yield a line at each fault and a band from there to its repair. A killed unit has no band."""
    begun: dict[tuple[str, str], float] = {}
    columns = [faults.get(name, ()) for name in ("time_s", "name", "which", "change")]
    for time_s, name, which, change in zip(*columns, strict=True):
        if change == "begins":
            begun[name, which] = time_s
            yield Rule(time_s, colour=style.ORANGE, dash="solid", upright=True)
        elif change == "ends":
            yield Band(begun[name, which], min(time_s, until_s), style.ORANGE, 0.12)


def _names(faults: Mapping[str, Sequence[Any]]) -> list[Mark]:
    columns = [faults.get(name, ()) for name in ("time_s", "name", "change")]
    begun = [
        (time_s, name) for time_s, name, change in zip(*columns, strict=True) if change == "begins"
    ]
    if not 0 < len(begun) <= MOST_NAMED:
        return []
    times, names = zip(*begun, strict=True)
    look: dict[str, Any] = {"across": "left", "down": "bottom", "turned": 30, "shares": "y"}
    return [Text(times, 1.02, names, style.ORANGE, **look)]
