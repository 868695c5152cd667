"""The figure of the buffer question, to zoom and hover."""

import html
from pathlib import Path

from daqloom.output import written_whole
from daqloom.report.page import page, section, table
from daqloom.report.system import comparison, interactive
from daqloom.report.system.buffer_question import SHALLOW, BufferQuestion


def write_html(question: BufferQuestion, path: Path) -> None:
    """Writes one self-contained file to `path`. Raises `OutputError`."""
    text = render(question)
    with written_whole(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def render(question: BufferQuestion) -> str:
    """The page: table, what it means, three figures."""
    return page(
        "How much buffer does a top-of-rack switch need?",
        question.title,
        [
            *(f"<p>{html.escape(sentence)}</p>" for sentence in comparison.verdict(question)),
            table(comparison.head(question), comparison.rows(question)),
            section(
                "Regular events, initially empty switch",
                "Each layer is one event: filled by all sources at once, drained by one builder's "
                "link. Their sum is the closed form; the blue line is the simulated switch.",
                interactive.triangles(question.regular, SHALLOW),
            ),
            section(
                "Random events",
                "Peak buffer occupancy in each interval, over the whole run. Click a name in the "
                "legend to hide its curve.",
                interactive.whole_run(question.runs, SHALLOW),
            ),
            section(
                "Event-building latency",
                "Share of events with a longer latency. An event that loses the tail of a reply "
                "waits for a TCP retransmission timeout.",
                interactive.latency(question.runs),
            ),
        ],
    )
