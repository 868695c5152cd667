"""HTML elements that display systems and results in a notebook."""

from collections.abc import Iterable, Sequence

from daqloom.base import lazy

with lazy.imports():
    import html


def heading(name: str, title: str) -> str:
    """Return the line above the tables: a name, and a title if there is one."""
    return f"<b>{escape(name)}</b>" + (f": {escape(title)}" if title else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return "\n".join(["<table>", *lines, "</table>"])


def notes(sentences: Iterable[str]) -> list[str]:
    """Return the lines of a list of sentences; none without a sentence."""
    items = [f"<li>{escape(sentence)}</li>" for sentence in sentences]
    return ["<ul>", *items, "</ul>"] if items else []


def fold(title: str, text: str) -> str:
    """Return a text that the reader unfolds."""
    return f"<details><summary>{escape(title)}</summary><pre>{escape(text)}</pre></details>"


def escape(text: str) -> str:
    """Return a text without markup."""
    return html.escape(text)


def _row(cell: str, texts: Sequence[str]) -> str:
    style = ' style="text-align:left"'
    return "<tr>" + "".join(f"<{cell}{style}>{escape(text)}</{cell}>" for text in texts) + "</tr>"
