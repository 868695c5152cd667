"""What figures hold: their marks and all that is written in them."""

from collections.abc import Iterator
from typing import Any, TypeVar

from daqloom.report.figure import Bars, Figure, Line, Panel, Text

M = TypeVar("M")


def marks(panel: Panel, kind: type[M], **look: Any) -> list[M]:
    """The marks of one kind that look so."""
    return [
        mark
        for mark in panel.marks
        if isinstance(mark, kind) and all(getattr(mark, key) == look[key] for key in look)
    ]


def curves(panel: Panel) -> list[Line]:
    """The curves of points that can be trusted."""
    return marks(panel, Line, hollow=False)


def titles(figure: Figure) -> list[str]:
    return [panel.title for panel in figure.panels]


def names(figure: Figure) -> list[str]:
    """Entries of the legend."""
    shown = figure.keys or [mark for panel in figure.panels for mark in panel.marks]
    return [mark.name for mark in shown if getattr(mark, "name", "")]


def texts(figure: Figure) -> set[str]:
    """All that is written in a figure, but numbers at axes."""
    return {*_texts(figure), *names(figure), *titles(figure)} - {""}


def _texts(figure: Figure) -> Iterator[str]:
    yield from (figure.title, figure.x_label, figure.y_label)
    yield from (bar.label for bar in figure.bars)
    for panel in figure.panels:
        for axis in (panel.x, panel.y):
            yield axis.label
            yield from axis.names or ()
        for mark in panel.marks:
            yield from mark.text if isinstance(mark, Text) else ()
            yield from mark.texts if isinstance(mark, Bars) else ()
            yield getattr(mark, "name", "")
