"""Figure and page on how much buffer a top-of-rack switch needs."""

from __future__ import annotations

from dataclasses import replace

from daqloom.report import style
from daqloom.report.figure import Figure, Panel
from daqloom.report.page import Section, page
from daqloom.report.system import buffer_table as comparison
from daqloom.report.system.buffer_answer import answer
from daqloom.report.system.buffer_question import SHALLOW, BufferQuestion
from daqloom.report.system.panels import latency, triangles, whole_run
from daqloom.report.system.result_figure import panel_sections

QUESTION = "How much buffer does a top-of-rack switch need?"


def _panels(question: BufferQuestion) -> tuple[Panel, Panel, Panel]:
    run = whole_run(question.runs, SHALLOW)
    peak = question.runs[0].result.metric("buffer_peak_bytes.tor")
    needed = f": up to {style.megabytes(peak)} needed" if peak else ""
    return (
        replace(triangles(question.regular, SHALLOW), cell=(0, 0, 1, 2)),
        replace(run, title="Random events" + needed, cell=(1, 0, 1, 1)),
        replace(latency(question.runs), cell=(1, 1, 1, 1)),
    )


def figure(question: BufferQuestion) -> Figure:
    """Return three panels: triangles and simulation, whole run, and collection latency."""
    title = f"{QUESTION}\n{question.title}"
    return Figure(_panels(question), (10, 7.4), title, 12.5, heights=(1.15, 1))


def render(question: BufferQuestion) -> str:
    """Return the page, in HTML: the answer, three figures, and the table of switches."""
    table = Section(
        "Switches",
        list(comparison.verdict(question)),
        head=comparison.head(question),
        rows=comparison.rows(question),
    )
    sections = [*panel_sections(_panels(question)), table]
    return page(QUESTION, question.title, sections, answer(question))
