"""Tables that fit the terminal: numbers are not broken, and words wrap. Columns that do not fit go
to a further table below, which repeats the columns that name a row."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

from daqloom.base import lazy
from daqloom.base.words import printable

with lazy.imports():
    from rich import box
    from rich import console as rich_console
    from rich import table as rich_table
    from rich import text as rich_text


UNLIMITED = 10_000
"""Line width (characters) for output to a pipe or file, where a row stays on one line."""
GAP = 3
"""Spaces between columns."""
FRAME = 4
"""Width of a frame, characters."""
SHORT = 12
"""Longest name of a row, in characters, that is not wrapped, such as "12 kHz"."""

Rows = Sequence[Sequence[str]]


def width_of(console: rich_console.Console) -> int:
    """Return the width of the terminal or the value of COLUMNS, else `UNLIMITED`."""
    return console.width if console.is_terminal or os.environ.get("COLUMNS") else UNLIMITED


def plain_console() -> rich_console.Console:
    """Return standard output for `rich`, as wide as `width_of` allows."""
    console = rich_console.Console(highlight=False)
    console.width = width_of(console)
    return console


def print_table(head: Sequence[str], rows: Rows, *, framed: bool = False, **layout: Any) -> None:
    """Print a table on standard output at its width; see `tables` for `layout`."""
    console = plain_console()
    for place, table in enumerate(tables(head, rows, console.width, framed=framed, **layout)):
        if place and not framed:
            console.print()
        console.print(table)


def print_list(titles: Mapping[str, str]) -> None:
    """Print a line per entry with its name and title; a long title wraps below itself."""
    width = plain_console().width
    indent = 2 + max(map(len, titles), default=0)
    for name, title in ((printable(name), printable(title)) for name, title in titles.items()):
        begin, below = name.ljust(indent), " " * indent
        print(textwrap.fill(title, width, initial_indent=begin, subsequent_indent=below))


def tables(
    head: Sequence[str],
    rows: Rows,
    width: int,
    *,
    names: int = 1,
    words: Collection[int] = (),
    numbers: Literal["left", "right"] = "right",
    framed: bool = False,
    styles: Sequence[str] = (),
) -> list[rich_table.Table]:
    """Lay rows out in tables of at most `width` characters, one below the other. The first `names`
    columns name a row and are repeated in each table. They and the column indices `words` may wrap;
    all other columns are numbers. `framed` adds blank lines around a table; `styles` has a style
    for each row. Control characters are escaped."""
    head = [printable(name) for name in head]
    rows = [[printable(cell) for cell in row] for row in rows]
    wrapping = {*range(names), *words}
    cells = [[name, *(row[number] for row in rows)] for number, name in enumerate(head)]
    kept = [
        SHORT if number < names else 0 if number in words else width for number in range(len(head))
    ]
    least = [
        max(_longest_word(column[0]), 1, *(_least(cell, kept[number]) for cell in column[1:]))
        for number, column in enumerate(cells)
    ]
    room = width - (FRAME if framed else 0)
    parts = []
    for places in _blocks(least, names, room):
        table = rich_table.Table(box=box.SIMPLE_HEAD, show_edge=framed, pad_edge=framed)
        widths = {number: least[number] for number in places}
        spare = room - sum(widths.values()) - GAP * (len(places) - 1)
        if spare < 0:  # a number is longer than a line
            widths[places[-1]] = max(widths[places[-1]] + spare, 1)
        for number in sorted(places, key=lambda number: number not in wrapping):
            more = min(max(map(len, cells[number])) - widths[number], max(spare, 0))
            widths[number] += max(more, 0)
            spare -= max(more, 0)
        for number in places:
            table.add_column(
                rich_text.Text(head[number]),
                justify="left" if number in wrapping else numbers,
                width=widths[number],
                overflow="fold",
            )
        for row, style in zip(rows, styles or [""] * len(rows), strict=True):
            table.add_row(
                *(rich_text.Text(row[number]) for number in places), style=style
            )  # none is markup
        parts.append(table)
    return parts


def _least(cell: str, kept: int) -> int:
    """Return the width of a cell for which no word is broken, nor its first `kept` characters."""
    return max(_longest_word(cell), min(len(cell), kept))


def _longest_word(text: str) -> int:
    return max(map(len, text.split()), default=0)


def _blocks(least: Sequence[int], names: int, width: int) -> Iterator[list[int]]:
    """Yield the column indices of each table: the name columns, then further columns that fit."""
    first = list(range(names))
    block = list(first)
    for place in range(names, len(least)):
        wider = [*block, place]
        if len(block) > names and sum(least[each] + GAP for each in wider) - GAP > width:
            yield block
            wider = [*first, place]
        block = wider
    yield block
