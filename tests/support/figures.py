"""Marks and texts of figures."""

from collections.abc import Iterator
from typing import Any, TypeVar

from daqloom.report.figure import Bars, Figure, Line, Panel, Text

M = TypeVar("M")


def marks(panel: Panel, kind: type[M], **look: Any) -> list[M]:
    """Return the marks of one kind with these attributes."""
    return [
        mark
        for mark in panel.marks
        if isinstance(mark, kind) and all(getattr(mark, key) == look[key] for key in look)
    ]


def curves(panel: Panel) -> list[Line]:
    """Return the curves of points that are not saturated."""
    return marks(panel, Line, hollow=False)


def titles(figure: Figure) -> list[str]:
    return [panel.title for panel in figure.panels]


def names(figure: Figure) -> list[str]:
    """Return the entries of the legend."""
    shown = figure.keys or [mark for panel in figure.panels for mark in panel.marks]
    return [mark.name for mark in shown if getattr(mark, "name", "")]


def texts(figure: Figure) -> set[str]:
    """Return all texts of a figure, except numbers at axes."""
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
