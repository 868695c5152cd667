"""Tables of published numbers on pages: `python -m daqloom.study.reproduction.pages PAGE…` rewrites
the text between a marker with names of records, and the end marker."""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from daqloom.study import StudyError
from daqloom.study.reproduction.record import Record, records, select
from daqloom.study.reproduction.table import HEAD, NOTHING, rows

BLOCK = re.compile(
    r"(?P<begin><!-- reproduce: (?P<names>[^>]*?) -->\n).*?(?P<end><!-- end of reproduce -->)", re.S
)
"""A table on a page. The names are records, or words in several."""


def rewritten(text: str) -> str:
    """Return the text of a page with all tables from the records. Raises StudyError."""
    known = records()

    def block(found: re.Match[str]) -> str:
        return found["begin"] + "\n" + _table(found["names"].split(), known) + "\n" + found["end"]

    return BLOCK.sub(block, text)


def names(text: str) -> list[str]:
    """Return the records in the tables of a page. Raises StudyError."""
    return [name for found in BLOCK.finditer(text) for name in select(found["names"].split())]


def _table(chosen: list[str], known: dict[str, Record]) -> str:
    lines = ["| " + " | ".join(HEAD) + " |", "|---" * len(HEAD) + "|"]
    lines += (
        "| " + " | ".join(row) + " |" for name in select(chosen) for row in _rows(name, known)
    )
    return "\n".join(lines) + "\n"


def _rows(name: str, known: Mapping[str, Record]) -> Iterator[Sequence[str]]:
    """Yield the rows of a record: one for each step with a published value, or one for all."""
    record = known[name]
    number = f"{record.where}: {record.title} (`{name}`)"
    found = list(rows(record, record.stored.full))
    if record.published is None and len(found) > 1:
        steps, _, ours, *_ = zip(*found, strict=True)
        values = "; ".join(": ".join(pair) for pair in zip(steps, ours, strict=True))
        found = [("", NOTHING, values, NOTHING, NOTHING)]
    for step, *cells in found:
        yield f"{number} {step}".rstrip(), *cells
        number = "…"


if __name__ == "__main__":
    for _page in map(Path, sys.argv[1:]):
        try:
            _page.write_text(rewritten(_page.read_text()))
        except StudyError as error:
            sys.exit(str(error))
