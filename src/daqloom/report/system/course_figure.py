"""The course of a run: throughput and members against time, and what breaks when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from daqloom.report import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from daqloom.result import Result

MOST_NAMED = 24
"""Most faults whose names fit above the figure."""


@style.in_style
def draw(result: Result) -> Figure:
    """Draw the series of `daqloom.course`."""
    from matplotlib.figure import Figure

    throughput, members = (result.series[name] for name in ("throughput", "members"))
    until_s = max([*throughput["end_s"], *members["time_s"], 0.0])
    faults = result.series.get("faults", {})
    figure = Figure(figsize=(9, 4.6), layout="constrained")
    figure.suptitle(f"{result.scenario}: {result.method}", x=0.01, ha="left", fontweight="bold")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    if throughput["throughput_bps"]:
        above.stairs(
            [bps / 1e9 for bps in throughput["throughput_bps"]],
            [*throughput["begin_s"], *throughput["end_s"][-1:]],
            color=style.BLUE,
            linewidth=1.4,
            baseline=None,
        )
    above.set_ylabel("throughput (Gb/s)")
    above.set_ylim(bottom=0)
    below.step(
        [*members["time_s"], until_s],
        [*members["members"], *members["members"][-1:]],
        where="post",
        color=style.GREEN,
    )
    below.set_ylabel("members")
    below.set_ylim(bottom=0)
    below.yaxis.get_major_locator().set_params(integer=True)
    below.set_xlabel("time since all units first build (s)")
    below.set_xlim(0, until_s or 1.0)
    for axes in (above, below):
        _show_regroupings(axes, members, until_s)
        if faults:
            _show_faults(axes, faults, until_s)
    if faults:
        _name_faults(above, faults)
    return figure


def _show_regroupings(axes: Axes, members: Mapping[str, Sequence[Any]], until_s: float) -> None:
    ends_s = [*members["time_s"][1:], until_s]
    for begin_s, end_s, count in zip(members["time_s"], ends_s, members["members"], strict=True):
        if not count:
            axes.axvspan(begin_s, end_s, color=style.GREY, alpha=0.15, linewidth=0)


def _show_faults(axes: Axes, faults: Mapping[str, Sequence[Any]], until_s: float) -> None:
    for begin_s, end_s in _lengths(faults, until_s):
        axes.axvspan(begin_s, end_s, color=style.ORANGE, alpha=0.12, linewidth=0)
        axes.axvline(begin_s, color=style.ORANGE, linewidth=0.9)


def _lengths(faults: Mapping[str, Sequence[Any]], until_s: float) -> list[tuple[float, float]]:
    """Return the times of all breaks; of one that nobody mends (a killed unit) only its begin."""
    begun: dict[tuple[str, str], float] = {}
    found = []
    rows = zip(*(faults[name] for name in ("time_s", "name", "which", "change")), strict=True)
    for time_s, name, which, change in rows:
        if change == "begins":
            begun[name, which] = time_s
            found.append((time_s, time_s))
        elif change == "ends":
            found.append((begun[name, which], min(time_s, until_s)))
    return found


def _name_faults(axes: Axes, faults: Mapping[str, Sequence[Any]]) -> None:
    rows = zip(faults["time_s"], faults["name"], faults["change"], strict=True)
    begun = [(time_s, name) for time_s, name, change in rows if change == "begins"]
    if len(begun) > MOST_NAMED:
        return
    for time_s, name in begun:
        place = axes.get_xaxis_transform()
        axes.text(time_s, 1.02, name, transform=place, rotation=30, fontsize=8, color=style.ORANGE)
