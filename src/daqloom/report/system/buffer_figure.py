"""The figure of the buffer question, for print, and as a page to zoom and hover."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from daqloom.report import style
from daqloom.report.page import page, section, table
from daqloom.report.system import comparison, panels
from daqloom.report.system.buffer_question import SHALLOW, BufferQuestion
from daqloom.report.system.panel_drawing import draw_panel, interactive

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUESTION = "How much buffer does a top-of-rack switch need?"


def draw(question: BufferQuestion) -> Figure:
    """Three panels: triangles and simulation, the whole run, collection latency."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(10, 7.4), layout="constrained")
        title = f"{QUESTION}\n{question.title}"
        figure.suptitle(title, fontsize=12.5, fontweight="bold", ha="left", x=0.012)
        grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1), hspace=0.08, wspace=0.06)

        top = figure.add_subplot(grid[0, :])
        draw_panel(top, panels.triangles(question.regular, SHALLOW))
        top.set_title("Regular events, initially empty switch: simulation and formula")

        left = figure.add_subplot(grid[1, 0])
        draw_panel(left, panels.whole_run(question.runs, SHALLOW))
        peak = question.runs[0].result.metric("buffer_peak_bytes.tor")
        needed = f": up to {style.megabytes(peak)} needed" if peak else ""
        left.set_title("Random events" + needed)

        right = figure.add_subplot(grid[1, 1])
        draw_panel(right, panels.latency(question.runs))
        right.set_title("Event-building latency")
    return figure


def render(question: BufferQuestion) -> str:
    """The page: table, what it means, three figures."""
    return page(
        QUESTION,
        question.title,
        [
            *(f"<p>{html.escape(sentence)}</p>" for sentence in comparison.verdict(question)),
            table(comparison.head(question), comparison.rows(question)),
            section(
                "Regular events, initially empty switch",
                "Each layer is one event: filled by all sources at once, drained by one builder's "
                "link. Their sum is the closed form; the blue line is the simulated switch.",
                interactive(panels.triangles(question.regular, SHALLOW)),
            ),
            section(
                "Random events",
                "Peak buffer occupancy in each interval, over the whole run. Click a name in the "
                "legend to hide its curve.",
                interactive(panels.whole_run(question.runs, SHALLOW)),
            ),
            section(
                "Event-building latency",
                "Share of events with a longer latency. An event that loses the tail of a reply "
                "waits for a TCP retransmission timeout.",
                interactive(panels.latency(question.runs)),
            ),
        ],
    )
