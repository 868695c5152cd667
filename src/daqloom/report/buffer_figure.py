"""The figure of the buffer question, for print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.report import style
from daqloom.report.buffer_question import SHALLOW, BufferQuestion
from daqloom.report.curves import most_held, share_slower
from daqloom.report.output import written_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RTO_S = 0.2
"""TCP's smallest retransmission time-out, as Linux has it."""


def write_png(question: BufferQuestion, path: Path, dpi: int = 150) -> None:
    """Writes the figure to `path`. Raises `OutputError`."""
    figure = draw(question)
    with written_whole(path) as scratch:
        figure.savefig(scratch, dpi=dpi)


def draw(question: BufferQuestion) -> Figure:
    """Three panels: triangles and simulation, the whole run, collection latency."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(10, 7.4), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1)  # type: ignore[union-attr,call-arg]
        figure.suptitle(
            f"How much buffer does a top-of-rack switch need?\n{question.title}",
            fontsize=12.5,
            fontweight="bold",
            ha="left",
            x=0.012,
        )
        grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1))
        _triangles(figure.add_subplot(grid[0, :]), question)
        _whole_run(figure.add_subplot(grid[1, 0]), question)
        _latency(figure.add_subplot(grid[1, 1]), question)
    return figure


def _triangles(axes: Axes, question: BufferQuestion) -> None:
    """Periodic events: one triangle each, their sum, and the simulated switch."""
    from daqloom.analyse.occupancy import occupancy

    times, held = most_held(question.regular)
    end_ms = float(times[-1]) * 1e3
    for start in question.regular_arrivals_s:
        corners, height = occupancy(question.event, [start])
        axes.fill_between(corners * 1e3, height / 1e6, color="#9ecae1", alpha=0.35, lw=0)
        axes.plot(corners * 1e3, height / 1e6, color="#6baed6", lw=0.7)
    axes.plot(times * 1e3, held / 1e6, color=style.BLUE, lw=3.2, alpha=0.55)
    corners, total = occupancy(question.event, question.regular_arrivals_s)
    axes.plot(corners * 1e3, total / 1e6, color=style.BLACK, lw=1.0)

    exact = question.analysis.analysis["exact"]["value_bytes"] / 1e6
    axes.axhline(exact, color=style.BLACK, lw=0.8, ls=(0, (6, 4)))
    axes.annotate(
        f"exact peak of the triangles: {style.megabytes(exact * 1e6)}",
        (0.008 * end_ms, exact),
        xytext=(0, 4),
        textcoords="offset points",
    )
    _shallow_line(axes, x=0.008 * end_ms)
    middle = 0.42 * end_ms
    axes.annotate(
        "one event: filled by all sources at once,\ndrained by one builder's link",
        (middle, 3.2),
        xytext=(middle, 17),
        ha="center",
        color="#2171b5",
        arrowprops={"arrowstyle": "-", "color": "#2171b5", "lw": 0.8},
    )
    axes.plot([], [], color=style.BLUE, lw=3.2, alpha=0.55, label="simulated, packet by packet")
    axes.plot([], [], color=style.BLACK, lw=1.0, label="sum of the triangles (analysis)")
    axes.legend(loc="lower right", frameon=True, framealpha=0.9, edgecolor="none", ncols=2)
    axes.set(
        title="Regular events, empty switch at the start: simulation and formula agree",
        xlabel="time (ms)",
        ylabel="held by the switch (MB)",
        xlim=(0, end_ms),
        ylim=(0, exact * 1.16),
    )
    style.quiet_grid(axes)


def _whole_run(axes: Axes, question: BufferQuestion) -> None:
    """The scenario's own arrivals: most bytes held, bin by bin."""
    top = 0.0
    for run in question.runs:
        times, held = most_held(run.result)
        wide = run.switch.buffer_bytes is None
        axes.step(
            times,
            held / 1e6,
            where="post",
            color=run.switch.colour,
            lw=2.2 if wide else 0.8,
            alpha=0.45 if wide else 1.0,
        )
        top = max(top, float(held.max(initial=0.0)) / 1e6)
    _shallow_line(axes, x=0.0)
    unlimited = question.runs[0].result.metric("buffer_peak_bytes.tor")
    if unlimited is not None:
        axes.set_title(f"Random events: peak of {style.megabytes(unlimited)}")
    axes.set(xlabel="time (s)", ylabel="held by the switch (MB)", ylim=(0, top * 1.1))
    axes.margins(x=0)
    style.quiet_grid(axes)


def _shallow_line(axes: Axes, x: float) -> None:
    capacity = (SHALLOW.buffer_bytes or 0) / 1e6
    axes.axhline(capacity, color=SHALLOW.colour, lw=1.0, ls=(0, (2, 2)))
    axes.annotate(
        f"buffer of the {SHALLOW.label}: {capacity:g} MB",
        (x, capacity),
        xytext=(4, 4),
        textcoords="offset points",
        color=SHALLOW.colour,
    )


def _latency(axes: Axes, question: BufferQuestion) -> None:
    """Share of the events that took longer, on two logarithmic axes."""
    slowest, rarest = RTO_S, 1e-2
    for run in question.runs:
        latency, slower = share_slower(run.result)
        if latency.size == 0:
            continue
        wide = run.switch.buffer_bytes is None
        axes.plot(
            latency,
            slower,
            color=run.switch.colour,
            lw=4 if wide else 1.6,
            alpha=0.45 if wide else 1.0,
            label=run.switch.label,
        )
        slowest = max(slowest, float(latency[-1]))
        rarest = min(rarest, float(slower[slower > 0].min()))
    axes.axvline(RTO_S, color=style.GREY, lw=0.8, ls=(0, (6, 4)))
    axes.annotate(
        "TCP's time-out, 200 ms",
        (RTO_S, 1.0),
        xytext=(-4, -4),
        textcoords="offset points",
        rotation=90,
        ha="right",
        va="top",
        color=style.GREY,
    )
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(1e-3, slowest * 1.6),
        ylim=(rarest / 2, 1.4),
        title="Collection latency of an event",
        xlabel="latency",
        ylabel="share of events that take longer",
    )
    axes.xaxis.set_major_formatter(lambda value, _: style.round_seconds(value))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value * 100:g} %")
    axes.legend(loc="lower left", frameon=False)
    style.quiet_grid(axes)
