"""Figures as data: panels with axes and marks, drawn by renderers.

Marks are painted in the order of their list; marks with a name have an entry in the legend. Sizes
and widths are in points (1/72 inch); `at`, `x` and `y` are in the units of the axes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from daqloom.report.style import BLACK, BLUE, GREY, round_steps

Dash: TypeAlias = Literal["solid", "dash", "longdash", "dot", "sparse"]


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, markers, or both, with error bars; a NaN interrupts the curve."""

    x: Any
    y: Any
    name: str = ""
    colour: str = BLUE
    width: float = 1.8
    """0 for markers without a line."""
    dash: Dash = "solid"
    marker: str = ""
    """Name of the marker in matplotlib: "o", "s", "D", "P", ".", "|" or "_"."""
    size: Any = 4.5
    """Diameter of all markers, or one for each point (points)."""
    hollow: bool = False
    step: Literal["", "pre", "post"] = ""
    """Side of a point on which the curve keeps the point's value."""
    opacity: float = 1.0
    error: Any = None
    """Lengths of error bars below and above the points; shape (2, n)."""
    error_along: Literal["x", "y", "z"] = "y"
    is_peaks: bool = False
    """Whether a picture may show only the highest of several neighbouring points."""
    z: Any = None
    """Third coordinates, for a three-dimensional panel."""
    is_hidden: bool = False
    """Whether the line appears on a page only after a click on its legend entry."""
    hover: str = ""
    """Text shown at the mouse pointer, in the form of plotly's `hovertemplate`."""


@dataclass(frozen=True, eq=False)
class Area:
    """Area between two curves."""

    x: Any
    low: Any
    high: Any
    name: str = ""
    colour: str = BLUE
    opacity: float = 0.18
    step: Literal["", "post"] = ""


@dataclass(frozen=True, eq=False)
class Bars:
    """Rectangles, used for bars, stacks of bars, boxes and time spans."""

    at: Any
    """Centres of the bars, along the axis across the bars."""
    length: Any
    base: Any = 0.0
    thickness: Any = 0.8
    name: str = ""
    colour: str | Sequence[str] = BLUE
    upright: bool = False
    opacity: float = 1.0
    edge: str = ""
    hatched: bool = False
    texts: Sequence[str] = ()
    """Text of each bar, behind its end or in its middle."""
    text_at: Literal["end", "middle"] = "end"
    text_size: float = 8.0


@dataclass(frozen=True, eq=False)
class Band:
    """Shaded range of the x axis, or of y if not `upright`, across the panel."""

    low: float
    high: float
    colour: str = GREY
    opacity: float = 0.15
    name: str = ""
    upright: bool = True


@dataclass(frozen=True, eq=False)
class Rule:
    """Straight line across the panel, with a text at its end."""

    at: float
    text: str = ""
    colour: str = GREY
    width: float = 0.9
    dash: Dash = "sparse"
    name: str = ""
    upright: bool = False


@dataclass(frozen=True, eq=False)
class Text:
    """Texts at points."""

    x: Any
    y: Any
    text: Sequence[str]
    colour: str = BLACK
    size: float = 8.0
    across: Literal["left", "center", "right"] = "center"
    down: Literal["top", "center", "bottom"] = "center"
    turned: float = 0.0
    """Degrees."""
    offset: tuple[float, float] = (0.0, 0.0)
    """Distance from the point to the text, right and up (points)."""
    shares: Literal["", "x", "y", "xy"] = ""
    """Coordinates given as fractions of the panel instead of axis units."""
    bold: bool = False
    ground: float = 0.0
    """Opacity of a white background."""

    def words(self) -> Iterator[tuple[float, float, str]]:
        """Yield each text with its point."""
        for number, text in enumerate(self.text):
            x, y = (each[number] if hasattr(each, "__len__") else each for each in (self.x, self.y))
            yield float(x), float(y), text


@dataclass(frozen=True, eq=False)
class Scale:
    """Colour scale from `low` to `high`."""

    colours: Sequence[str]
    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, eq=False)
class Cells:
    """A table of numbers as colours; NaN is blank."""

    x: Any
    """Edges of the columns, shape (m + 1,)."""
    y: Any
    """Edges of the rows, shape (n + 1,)."""
    values: Any
    """Numbers, shape (n, m)."""
    scale: Scale
    texts: Any = None
    """Texts in the cells, shape (n, m)."""
    gap: float = 0.0
    """Width of the white lines between cells."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A surface over x and y in a three-dimensional panel; the matplotlib renderer omits it."""

    x: Any
    y: Any
    z: Any
    """Heights, shape (n, m)."""
    scale: Scale
    name: str = ""
    is_hidden: bool = False
    hover: str = ""


Mark: TypeAlias = Line | Area | Bars | Band | Rule | Text | Cells | Surface


@dataclass(frozen=True, eq=False)
class Axis:
    """Label, range and ticks of an axis."""

    label: str = ""
    ends: tuple[float | None, float | None] = (None, None)
    """Range; None takes an end from the data."""
    log: bool = False
    ticks: Any = None
    """Positions of the ticks; None: the renderer chooses them."""
    names: Sequence[str] | None = None
    """Texts of the ticks."""
    text: Callable[[float], str] | None = None
    """Returns the text of a tick."""
    size: float | None = None
    turned: float = 0.0
    grid: bool = True
    bare: bool = False
    """Whether ticks have no marks."""
    integer: bool = False
    margin: float | None = None
    """Free space at each end of the axis, as a share of the data's range."""


@dataclass(frozen=True, eq=False)
class Legend:
    """Position of a legend: a name in matplotlib, or "below" the axes."""

    where: str = "best"
    columns: int = 1
    size: float | None = None


@dataclass(frozen=True, eq=False)
class Panel:
    """A pair of axes and its marks."""

    marks: Sequence[Mark]
    x: Axis = Axis()
    y: Axis = Axis()
    title: str = ""
    about: str = ""
    """Sentences for a page."""
    legend: Legend | None = None
    z: Axis | None = None
    """Vertical axis of a three-dimensional panel."""
    cell: tuple[int, int, int, int] = (0, 0, 1, 1)
    """Row and column in the figure's grid, and number of rows and columns covered."""
    place: tuple[float, float, float, float] | None = None
    """Left, top, width and height (points); overrides `cell`."""
    title_size: float = 10.5
    title_left: float = 0.0
    """Distance by which the title starts left of the axes (points)."""
    ground: str = ""
    frame: bool = True
    blank: bool = False
    """Whether the axes are hidden."""


@dataclass(frozen=True, eq=False)
class ColourBar:
    """Key of a colour scale, next to the panels with these numbers (from 0)."""

    scale: Scale
    label: str
    panels: Sequence[int]
    where: Literal["right", "bottom"] = "right"
    ticks: Sequence[float] | None = None
    shrink: float = 1.0
    aspect: float = 20.0

    def steps(self) -> Sequence[float]:
        """Return the ticks, round numbers by default."""
        return self.ticks or round_steps(self.scale.low, self.scale.high, log=self.scale.log)


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels, in a grid or at given positions, with a title and a legend."""

    panels: Sequence[Panel]
    size: tuple[float, float]
    """Width and height (inches)."""
    title: str = ""
    title_size: float = 11.0
    legend: Legend | None = None
    legend_title: str = ""
    keys: Sequence[Mark] = ()
    """Marks in the legend; if empty, those of the panels."""
    x_label: str = ""
    y_label: str = ""
    shared: Literal["", "x", "y", "xy"] = ""
    """Axes that all panels share."""
    heights: Sequence[float] = ()
    """Ratios of the rows' heights."""
    is_by_row: bool = False
    """Whether margins are computed row by row."""
    bars: Sequence[ColourBar] = ()


def in_grid(panels: Iterable[Panel], columns: int) -> list[Panel]:
    """Return the panels in rows of `columns`."""
    return [
        replace(panel, cell=(*divmod(place, columns), 1, 1)) for place, panel in enumerate(panels)
    ]


def dots(x: Any, y: Any, name: str = "", **look: Any) -> Line:
    """Return markers without a line."""
    defaults: dict[str, Any] = {"width": 0.0, "marker": "o"}
    return Line(x, y, name, **defaults | look)


def segments(x: Any, y: Any, look: Line) -> Line:
    """Return a line of separate straight segments; x and y, shape (2, n), are their end points."""
    x, y = (np.asarray([*each, [np.nan] * len(each[0])], dtype=float).T.ravel() for each in (x, y))
    return replace(look, x=x, y=y)


def row_names(names: Sequence[str], least: int = 1, **look: Any) -> Axis:
    """Return an axis with a row for each name, from the top, and space for `least` rows or more."""
    ends = max(least, len(names)) - 0.5, -0.5
    return Axis("", ends, ticks=range(len(names)), names=names, **look)


def evenly(count: int, most: int) -> list[int]:
    """Return at most `most` indices below `count`, evenly spread, with the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})
