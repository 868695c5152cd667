"""The figure of the buffer question, for print."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.output import written_whole
from daqloom.report import style
from daqloom.report.system import panels
from daqloom.report.system.buffer_question import SHALLOW, BufferQuestion

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_png(question: BufferQuestion, path: Path, dpi: int = 130) -> None:
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
        figure.suptitle(
            f"How much buffer does a top-of-rack switch need?\n{question.title}",
            fontsize=12.5,
            fontweight="bold",
            ha="left",
            x=0.012,
        )
        grid = figure.add_gridspec(2, 2, height_ratios=(1.15, 1), hspace=0.08, wspace=0.06)

        top = figure.add_subplot(grid[0, :])
        panels.triangles(top, question.regular, SHALLOW)
        top.set_title("Regular events, initially empty switch: simulation and formula")

        left = figure.add_subplot(grid[1, 0])
        panels.whole_run(left, question.runs, SHALLOW)
        left.set_title(_headline(question))

        right = figure.add_subplot(grid[1, 1])
        panels.latency(right, question.runs)
        right.set_title("Event-building latency")
    return figure


def _headline(question: BufferQuestion) -> str:
    peak = question.runs[0].result.metric("buffer_peak_bytes.tor")
    return "Random events" + (f": up to {style.megabytes(peak)} needed" if peak else "")
