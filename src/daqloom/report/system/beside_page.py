"""The methods beside each other on one page that opens in any browser, offline."""

import html
from collections.abc import Iterable
from pathlib import Path

from daqloom.output import written_whole
from daqloom.report.page import page, picture, table
from daqloom.report.system import beside_figure, beside_table
from daqloom.study.beside import Beside


def write(path: Path, found: Beside) -> None:
    """Writes one self-contained file. Raises OutputError."""
    text = render(found)
    with written_whole(path) as scratch:
        scratch.write_text(text, encoding="utf-8")


def render(found: Beside) -> str:
    """The picture, what it says, the table, and notes of the methods."""
    notes = [
        f"{result.method}: {warning}" for result in found.results for warning in result.warnings
    ]
    return page(
        f"{found.scenario.name}: {', '.join(result.method for result in found.results)}",
        beside_table.title(found),
        [
            picture(
                "One scenario, all methods",
                "",
                beside_figure.png(found),
                "Bars of the methods: events per second, length of a phase, shares of time",
            ),
            *_paragraphs(beside_table.verdict(found)),
            table(beside_table.head(found), beside_table.rows(found)),
            *_paragraphs(f"Note, {note}" for note in notes),
        ],
    )


def _paragraphs(sentences: Iterable[str]) -> list[str]:
    return [f"<p>{html.escape(sentence)}</p>" for sentence in sentences]
