"""Map of a fabric's cables, coloured by load, in the order in which a packet crosses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daqloom.report import style
from daqloom.report.figure import Axis, Bars, Cells, Legend, Mark, Panel, Rule, Scale, Text, dots
from daqloom.report.system.fabric_layout import FONT, LETTER, LINE, shorten
from daqloom.report.system.link_load import Block, Loads, Table, blocks
from daqloom.topology.fabric.wiring import NONE

if TYPE_CHECKING:
    from daqloom.topology.fabric.fabric import Fabric

Grid = NDArray[np.int32]
"""Index of the link in each row and column of a table."""
COLOURS, DARKEST = "Blues", 0.72
"""Colour map, and the share of it in use: black text and orange dots are legible on all colours."""
NO_CABLE = "#e9e6e1"
ROW = 11.0
MOST_HEIGHT = 640.0
"""Limit on the height of a table, in units of the sheet; with more rows, rows are thinner."""
GAP = 16.0
"""Space between neighbouring tables, in units of the sheet."""
BAR = 10.0
FEWEST_ROWS = 6
"""Limit on the number of rows of a table whose cells show names of hosts."""
LEAST_WAITING = 1e-3
TOPS = (0.25, 0.5, 0.75, 1.0)


def panels(fabric: Fabric, loads: Loads, width: float) -> tuple[list[Panel], float]:
    """Return a row of tables for each switch level, a key of colours and dots below, and the total
    height. Positions start at y = 0 and grow downwards."""
    busiest = float(loads.busy.max(initial=0))
    top = next((top for top in TOPS if busiest <= top), busiest)
    scale = Scale(style.sequence(64, COLOURS, DARKEST), 0, 100 * top)
    groups = blocks(fabric)
    sizes = [_sizes(fabric, block, width) for block in groups]
    room = min((size for _, *sides in sizes for size in sides), default=ROW)
    drawn: list[Panel] = []
    y = 0.0
    for block, (label, cell, row) in zip(groups, sizes, strict=True):
        y += 2.2 * LINE
        x = label
        for index, (title, grid, table) in enumerate(_tables(block)):
            wide, high = grid.shape[1] * cell, len(block.rows) * row
            marks = _marks(grid, loads, scale, table, (cell, row), room)
            if row > 2 * ROW and table.lower == "host" and cell > LINE:
                marks += _hosts(grid, fabric)
            axes = _columns(table, cell), _rows(block.rows, row, named=index == 0)
            look: dict[str, Any] = {"title_size": 9, "ground": NO_CABLE, "frame": False}
            drawn.append(Panel(marks, *axes, title, place=(x, y, wide, high), **look))
            x += wide + GAP
        foot = max(LINE, *(_labels(table, cell).height for table in block.tables))
        y += len(block.rows) * row + foot + 1.5 * LINE
    y += LINE
    drawn += [_bar(scale, width, y), _keys(groups, loads, room, width, y)]
    return drawn, y + BAR + 2.5 * LINE


def _tables(block: Block) -> list[tuple[str, Grid, Table]]:
    """Return title, links and `Table` of each map of a block, first upwards, then downwards."""
    up = [(f"{plural(t.lower)} → {plural(t.upper)}", t.up, t) for t in block.tables]
    down = [
        (f"{plural(t.upper)} → {plural(t.lower)}", np.where(t.up == NONE, NONE, t.up ^ 1), t)
        for t in reversed(block.tables)
    ]
    return up + down


def plural(level: str) -> str:
    """Return the plural of a level's name, such as "leaves"."""
    return "leaves" if level == "leaf" else f"{level}s"


def _sizes(fabric: Fabric, block: Block, width: float) -> tuple[float, float, float]:
    """Return the width of row names, the width of a cell, and the height of a row."""
    label = 12 + LETTER * max(len(shorten(name)) for name in block.rows)
    columns = 2 * sum(table.up.shape[1] for table in block.tables)
    gaps = (2 * len(block.tables) - 1) * GAP
    return label, (width - label - gaps) / columns, _row_height(fabric, block)


def _row_height(fabric: Fabric, block: Block) -> float:
    if len(block.rows) <= FEWEST_ROWS and any(table.lower == "host" for table in block.tables):
        longest = max(len(shorten(host.name)) for host in fabric.hosts)
        return LETTER * longest + 2 * ROW
    return min(ROW, MOST_HEIGHT / len(block.rows))


def _marks(
    grid: Grid, loads: Loads, scale: Scale, table: Table, sides: tuple[float, float], room: float
) -> list[Mark]:
    """Return cells, lines between column groups, and dots with the waiting share as area."""
    rows, columns = (np.arange(length + 1) for length in grid.shape)
    busy = np.where(grid == NONE, np.nan, 100 * loads.busy[grid])
    gap = 0.4 if min(sides) > 4 else 0.0
    marks: list[Mark] = [Cells(columns, rows, busy, scale, gap=gap)]
    for group in table.groups[1:]:
        if group.count > 1 or table.groups[0].count > 1:
            marks.append(Rule(group.first, dash="solid", width=0.5, upright=True))
    row, column = np.nonzero((grid != NONE) & (loads.waiting[grid] >= LEAST_WAITING))
    if len(row):
        up = min(sides) / 2 / sides[1]  # clear of names
        size = _diameter(loads.waiting[grid[row, column]], room)
        marks.append(dots(column + 0.5, row + 1 - up, size=size, colour=style.ORANGE))
    return marks


def _columns(table: Table, cell: float) -> Axis:
    labels = _labels(table, cell)
    shown = table.groups[:: labels.every]
    look: dict[str, Any] = {"size": FONT, "grid": False, "bare": True}
    look |= {"turned": 90 if labels.turned else 0}
    look |= {"ticks": [group.first + group.count / 2 for group in shown]}
    look |= {"names": [shorten(group.label) for group in shown]}
    return Axis(table.columns, (0, table.up.shape[1]), **look)


class Labels(NamedTuple):
    """How the columns of a table are named."""

    every: int
    """Number n if every n-th group of columns has a name."""
    turned: bool
    height: float


def _labels(table: Table, cell: float) -> Labels:
    narrowest = min(group.count for group in table.groups) * cell
    every = max(1, int(-(-LINE // narrowest)))
    longest = max(len(shorten(group.label)) for group in table.groups)
    turned = longest > 2 and narrowest * every < LETTER * longest + 4
    return Labels(every, turned, LETTER * longest + 4 if turned else LINE)


def _rows(names: Sequence[str], row: float, *, named: bool) -> Axis:
    places = range(0, len(names) if named else 0, max(1, int(-(-LINE // row))))
    ticks, shown = [place + 0.5 for place in places], [shorten(names[place]) for place in places]
    look: dict[str, Any] = {"size": FONT, "grid": False, "bare": True}
    return Axis("", (len(names), 0), ticks=ticks, names=shown, **look)


def _diameter(share: Any, room: float) -> Any:
    """Return a dot's diameter; a dot fills the smallest cell if its port always waits."""
    return 0.9 * room * np.sqrt(share)


def _hosts(grid: Grid, fabric: Fabric) -> list[Mark]:
    """Return texts with host names in the cells of the hosts' cables."""
    rows, columns = np.nonzero(grid != NONE)
    cables = [fabric.cables[link // 2] for link in grid[rows, columns]]
    hosts = [fabric.nodes[min(cable.a.node, cable.b.node)].name for cable in cables]
    names = [*map(shorten, hosts)]
    return [Text(columns + 0.5, rows + 0.04, names, size=FONT - 0.5, down="top", turned=90)]


def _bar(scale: Scale, width: float, y: float) -> Panel:
    """Return the panel that explains the colours of loads."""
    edges = np.linspace(scale.low, scale.high, 257)
    middles = (edges[:-1] + edges[1:])[None, :] / 2
    x = Axis("cable utilisation (%)", (scale.low, scale.high), size=FONT + 0.5, grid=False)
    blank = Axis("", (0, 1), ticks=(), names=(), grid=False)
    cells = Cells(edges, [0, 1], middles, scale)
    return Panel([cells], x, blank, place=(0, y, 0.3 * width, BAR), frame=False)


def _keys(found: Sequence[Block], loads: Loads, room: float, width: float, y: float) -> Panel:
    marks: list[Mark] = []
    if any((table.up == NONE).any() for block in found for table in block.tables):
        marks.append(Bars([0], [0], name="no cable", colour=NO_CABLE))
    if (loads.waiting >= LEAST_WAITING).any():
        names = ("waiting for credits 1% of the time", "10%", "50%")
        for share, name in zip((0.01, 0.1, 0.5), names, strict=True):
            size = [_diameter(share, room)]
            marks.append(dots([], [], name, size=size, colour=style.ORANGE))
    elif loads.has_credits:
        text = "no port waits for credits for 0.1 % of the time or more"
        marks.append(dots([], [], text, size=[0.0]))
    place = 0.36 * width, y, 0.64 * width, BAR
    legend = Legend("center left", columns=5, size=FONT + 1)
    return Panel(marks, legend=legend, place=place, blank=True)
