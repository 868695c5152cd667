"""The panels that figures for print are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daqloom.report import style
from daqloom.report.system import windows
from daqloom.report.system.buffer_question import Regular, Run, Switch
from daqloom.report.system.curves import most_held, share_slower, stacked_events, thinned
from daqloom.report.system.windows import RTO_S

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAYERS = ("#d6e6f4", "#eaf2fa")
"""Fills of every other event in the buffer."""


def triangles(axes: Axes, regular: Regular, limit: Switch | None) -> None:
    """Periodic events, one triangle each, stacked; the simulated switch; the closed form's peak."""
    times, stack = stacked_events(regular.event, regular.arrivals_s, regular.until_s)
    below = 0 * times
    for index, height in enumerate(stack):
        axes.fill_between(
            times * 1e3,
            below / 1e6,
            height / 1e6,
            color=LAYERS[index % 2],
            lw=0,
            label=None if index else "one event: filled by all sources, drained by one link",
        )
        below = height
    if regular.result is not None:
        instants, held = most_held(regular.result)
        axes.plot(
            instants * 1e3,
            held / 1e6,
            color=style.BLUE,
            lw=4,
            alpha=0.5,
            label="simulation, packet by packet",
        )
    axes.plot(times * 1e3, below / 1e6, color=style.BLACK, lw=1.1, label="formula: their sum")
    peak = regular.peak_bytes / 1e6
    axes.axhline(peak, color=style.BLACK, lw=0.8, ls=(0, (6, 4)))
    _label_line(axes, f"exact peak: {style.megabytes(regular.peak_bytes)}", peak, style.BLACK)
    if limit is not None:
        _limit(axes, limit)
    x, y = windows.triangles(regular)
    axes.set(
        xlabel="time (ms)",
        ylabel="held by the switch (MB)",
        xlim=[1e3 * end for end in x],
        ylim=[end / 1e6 for end in y],
    )
    axes.legend(loc="upper left", frameon=False, ncols=3, borderaxespad=0.2)
    style.quiet_grid(axes)


def whole_run(axes: Axes, runs: Sequence[Run], limit: Switch | None) -> None:
    """Most bytes held, bin by bin."""
    for run in runs:
        times, held = thinned(*most_held(run.result))
        first = run is runs[0]
        axes.step(
            times,
            held / 1e6,
            where="post",
            color=run.switch.colour,
            lw=2.4 if first and len(runs) > 1 else 0.8,
            alpha=0.4 if first and len(runs) > 1 else 1.0,
        )
    if limit is not None:
        _limit(axes, limit)
    x, y = windows.whole_run(runs)
    axes.set(
        xlabel="time (s)", ylabel="held by the switch (MB)", xlim=x, ylim=[end / 1e6 for end in y]
    )
    style.quiet_grid(axes)


def latency(axes: Axes, runs: Sequence[Run]) -> None:
    """Share of the events that took longer, on two logarithmic axes."""
    curves = [(run, *share_slower(run.result)) for run in runs]
    curves = [(run, taken, slower) for run, taken, slower in curves if taken.size]
    for run, taken, slower in curves:
        first = run is runs[0] and len(runs) > 1
        axes.plot(
            taken,
            slower,
            color=run.switch.colour,
            lw=5 if first else 1.8,
            alpha=0.4 if first else 1.0,
            label=run.switch.label,
        )
    axes.axvline(RTO_S, color=style.GREY, lw=0.8, ls=(0, (6, 4)))
    axes.annotate(
        "smallest TCP RTO, 200 ms",
        (RTO_S, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=style.GREY,
    )
    x, y = windows.latency(runs)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=x,
        ylim=y,
        xlabel="event-building latency",
        ylabel="share of events with a longer latency",
    )
    axes.xaxis.set_major_formatter(lambda value, _: style.round_seconds(value))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
    if len(curves) > 1:
        # Below the axes: curves may run anywhere within them.
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, frameon=False)
    style.quiet_grid(axes)


def _limit(axes: Axes, switch: Switch) -> None:
    if switch.buffer_bytes is None:
        return
    capacity = switch.buffer_bytes / 1e6
    axes.axhline(capacity, color=switch.colour, lw=1.2, ls=(0, (2, 2)))
    _label_line(axes, f"buffer of the {switch.label}: {capacity:g} MB", capacity, switch.colour)


def _label_line(axes: Axes, text: str, height: float, colour: str) -> None:
    """Words on a horizontal line, at its right end."""
    axes.annotate(
        text,
        (1.0, height),
        xycoords=("axes fraction", "data"),
        xytext=(-6, 4),
        textcoords="offset points",
        ha="right",
        color=colour,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 1},
    )
