"""The figure of the buffer question, for print, and as a page to zoom and hover."""

from __future__ import annotations

import html
from dataclasses import replace
from typing import TYPE_CHECKING

from daqloom.report import style
from daqloom.report.page import page, table
from daqloom.report.system import comparison
from daqloom.report.system.buffer_question import SHALLOW, BufferQuestion
from daqloom.report.system.panel_drawing import draw_panel, part
from daqloom.report.system.panels import Panel, latency, triangles, whole_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

QUESTION = "How much buffer does a top-of-rack switch need?"


def _panels(question: BufferQuestion) -> tuple[Panel, Panel, Panel]:
    run = whole_run(question.runs, SHALLOW)
    peak = question.runs[0].result.metric("buffer_peak_bytes.tor")
    needed = f": up to {style.megabytes(peak)} needed" if peak else ""
    return (
        triangles(question.regular, SHALLOW),
        replace(run, title="Random events" + needed),
        latency(question.runs),
    )


def draw(question: BufferQuestion) -> Figure:
    """Three panels: triangles and simulation, the whole run, collection latency."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(10, 7.4), layout="constrained")
        title = f"{QUESTION}\n{question.title}"
        figure.suptitle(title, fontsize=12.5, fontweight="bold", ha="left", x=0.012)
        grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1), hspace=0.08, wspace=0.06)
        places = grid[0, :], grid[1, 0], grid[1, 1]
        for place, panel in zip(places, _panels(question), strict=True):
            draw_panel(figure.add_subplot(place), panel)
    return figure


def render(question: BufferQuestion) -> str:
    """The page: table, what it means, three figures."""
    return page(
        QUESTION,
        question.title,
        [
            *(f"<p>{html.escape(sentence)}</p>" for sentence in comparison.verdict(question)),
            table(comparison.head(question), comparison.rows(question)),
            *map(part, _panels(question)),
        ],
    )
