"""A figure as data: panels with axes and marks, which the renderers beside this file draw.

Marks are painted in the order of their list. A mark with a name has an entry in the legend. Sizes
and widths are points (1/72 inch); `at`, `x` and `y` are numbers of the axes, in their units.
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
    """A curve, markers, or both, with error bars; NaN interrupts it."""

    x: Any
    y: Any
    name: str = ""
    colour: str = BLUE
    width: float = 1.8
    """0 for markers alone."""
    dash: Dash = "solid"
    marker: str = ""
    """As matplotlib names them: "o", "s", "D", "P", ".", "|" or "_"."""
    size: Any = 4.5
    """Diameter of the markers: a number, or one for each point."""
    hollow: bool = False
    step: Literal["", "pre", "post"] = ""
    """Side of a point on which its value holds."""
    opacity: float = 1.0
    error: Any = None
    """Lengths of the bars below and above the points, shape (2, n)."""
    error_along: Literal["x", "y", "z"] = "y"
    is_peaks: bool = False
    """Whether a picture may show the highest of neighbouring points in place of all."""
    z: Any = None
    """Third coordinates, of a panel to turn."""
    is_hidden: bool = False
    """Whether it appears only on a click in the legend of a page."""
    hover: str = ""
    """Text for the point under the mouse, as plotly's `hovertemplate`."""


@dataclass(frozen=True, eq=False)
class Area:
    """The surface between two curves."""

    x: Any
    low: Any
    high: Any
    name: str = ""
    colour: str = BLUE
    opacity: float = 0.18
    step: Literal["", "post"] = ""


@dataclass(frozen=True, eq=False)
class Bars:
    """Rectangles: bars, stacks of bars, boxes and stretches of time."""

    at: Any
    """Middles across their length."""
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
    """A word for each bar, behind its end or in its middle."""
    text_at: Literal["end", "middle"] = "end"
    text_size: float = 8.0


@dataclass(frozen=True, eq=False)
class Band:
    """A stretch of the axis x (`upright`) or y, across the panel."""

    low: float
    high: float
    colour: str = GREY
    opacity: float = 0.15
    name: str = ""
    upright: bool = True


@dataclass(frozen=True, eq=False)
class Rule:
    """A straight line across the panel, with words at its end."""

    at: float
    text: str = ""
    colour: str = GREY
    width: float = 0.9
    dash: Dash = "sparse"
    name: str = ""
    upright: bool = False


@dataclass(frozen=True, eq=False)
class Text:
    """Words at places."""

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
    """From the place to the text, to the right and upwards."""
    shares: Literal["", "x", "y", "xy"] = ""
    """Coordinates that are shares of the panel, and not numbers of its axes."""
    bold: bool = False
    ground: float = 0.0
    """Opacity of a white ground."""

    def words(self) -> Iterator[tuple[float, float, str]]:
        """Yield each text with its place."""
        for number, text in enumerate(self.text):
            x, y = (each[number] if hasattr(each, "__len__") else each for each in (self.x, self.y))
            yield float(x), float(y), text


@dataclass(frozen=True, eq=False)
class Scale:
    """Colours of numbers from `low` to `high`."""

    colours: Sequence[str]
    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, eq=False)
class Cells:
    """A table of numbers as colours; NaN is left blank."""

    x: Any
    """Edges of the columns, shape (m + 1,)."""
    y: Any
    """Edges of the rows, shape (n + 1,)."""
    values: Any
    """Shape (n, m)."""
    scale: Scale
    texts: Any = None
    """Words in the cells, shape (n, m)."""
    gap: float = 0.0
    """Width of the white line between cells."""


@dataclass(frozen=True, eq=False)
class Surface:
    """A surface over x and y, of a panel to turn, which only pages have."""

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
    """Label, visible part and ticks of an axis."""

    label: str = ""
    ends: tuple[float | None, float | None] = (None, None)
    """Numbers at its begin and end; None leaves one to the data."""
    log: bool = False
    ticks: Any = None
    """Places of the ticks; None leaves them to the renderer."""
    names: Sequence[str] | None = None
    """Texts of these ticks."""
    text: Callable[[float], str] | None = None
    """Gives the text of any tick."""
    size: float | None = None
    turned: float = 0.0
    grid: bool = True
    bare: bool = False
    """Without marks at the ticks."""
    integer: bool = False
    margin: float | None = None
    """Share of the data's length that is left free at both ends."""


@dataclass(frozen=True, eq=False)
class Legend:
    """Place of a legend: as matplotlib names it, or "below" the axes."""

    where: str = "best"
    columns: int = 1
    size: float | None = None


@dataclass(frozen=True, eq=False)
class Panel:
    """A pair of axes and what is drawn on them."""

    marks: Sequence[Mark]
    x: Axis = Axis()
    y: Axis = Axis()
    title: str = ""
    about: str = ""
    """Sentences for a page, which has room for them."""
    legend: Legend | None = None
    z: Axis | None = None
    """Axis upwards, of a panel to turn."""
    cell: tuple[int, int, int, int] = (0, 0, 1, 1)
    """Row and column in the figure's grid, number of rows and columns."""
    place: tuple[float, float, float, float] | None = None
    """Left, top, width and height in points, in place of a cell."""
    title_size: float = 10.5
    title_left: float = 0.0
    """Length by which the title begins left of the axes (points)."""
    ground: str = ""
    frame: bool = True
    blank: bool = False
    """Without axes."""


@dataclass(frozen=True, eq=False)
class ColourBar:
    """The key of a scale beside panels, which are numbered from 0."""

    scale: Scale
    label: str
    panels: Sequence[int]
    where: Literal["right", "bottom"] = "right"
    ticks: Sequence[float] | None = None
    shrink: float = 1.0
    aspect: float = 20.0

    def steps(self) -> Sequence[float]:
        """Return the ticks, as given or as round numbers."""
        return self.ticks or round_steps(self.scale.low, self.scale.high, log=self.scale.log)


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels in a grid, or at places, with a title and a legend."""

    panels: Sequence[Panel]
    size: tuple[float, float]
    """Width and height (inches)."""
    title: str = ""
    title_size: float = 11.0
    legend: Legend | None = None
    legend_title: str = ""
    keys: Sequence[Mark] = ()
    """Entries of the legend, in place of the marks of the panels."""
    x_label: str = ""
    y_label: str = ""
    shared: Literal["", "x", "y", "xy"] = ""
    """Axes that have the same ends in all panels."""
    heights: Sequence[float] = ()
    """Ratios of the rows' heights."""
    is_by_row: bool = False
    """Whether each row has margins of its own."""
    bars: Sequence[ColourBar] = ()


def in_grid(panels: Iterable[Panel], columns: int) -> list[Panel]:
    """Return the panels in rows of so many."""
    return [
        replace(panel, cell=(*divmod(place, columns), 1, 1)) for place, panel in enumerate(panels)
    ]


def dots(x: Any, y: Any, name: str = "", **look: Any) -> Line:
    """Return markers without a line."""
    defaults: dict[str, Any] = {"width": 0.0, "marker": "o"}
    return Line(x, y, name, **defaults | look)


def segments(x: Any, y: Any, look: Line) -> Line:
    """Return straight lines from the first to the second place of each pair, shapes (2, n)."""
    x, y = (np.asarray([*each, [np.nan] * len(each[0])], dtype=float).T.ravel() for each in (x, y))
    return replace(look, x=x, y=y)


def row_names(names: Sequence[str], least: int = 1, **look: Any) -> Axis:
    """Return an axis with a row for each name, from the top down, and room for at least some."""
    ends = max(least, len(names)) - 0.5, -0.5
    return Axis("", ends, ticks=range(len(names)), names=names, **look)
