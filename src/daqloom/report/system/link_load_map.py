"""A map of a fabric's cables, coloured by what they carried: the way of a packet from the left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daqloom.report import style
from daqloom.report.system.fabric_layout import FONT, LETTER, LINE, shortened
from daqloom.report.system.link_load import Block, Loads, Table, blocks
from daqloom.report.system.sheet import Sheet
from daqloom.topology.wiring import NONE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from daqloom.topology.fabric import Fabric

COLOURS, DARKEST = "Blues", 0.72
"""Black letters and orange dots are seen on all of them."""
NO_CABLE = "#e9e6e1"
ROW = 11.0
MOST_HEIGHT = 640.0
"""Largest height of a block, in units of the sheet; rows of more switches are thinner."""
GAP = 16.0
"""Space between tables, in units of the sheet."""
BAR = 10.0
FEWEST_ROWS = 6
"""With no more rows than this there is room for the names of hosts."""
LEAST_WAITING = 1e-3
DOT: Any = {"color": style.ORANGE, "linewidths": 0, "zorder": 3}
TOPS = (0.25, 0.5, 0.75, 1.0)


def draw(sheet: Sheet, fabric: Fabric, loads: Loads) -> None:
    """Adds a line of tables for each level of switches, and what colours and dots mean."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, Normalize

    top = next((top for top in TOPS if loads.busy.max(initial=0) <= top), loads.busy.max())
    colours = ListedColormap(colormaps[COLOURS](np.linspace(0, DARKEST, 256)))
    look: dict[str, Any] = {"norm": Normalize(0, 100 * top), "cmap": colours}
    found = blocks(fabric)
    sizes = [_sizes(fabric, block, sheet.width) for block in found]
    room = min((size for _, *sides in sizes for size in sides), default=ROW)
    drawn: Any = None
    for block, (label, cell, row) in zip(found, sizes, strict=True):
        panels = _panels(block)
        sheet.down(2.2 * LINE)
        x = label
        for index, (title, grid, table) in enumerate(panels):
            axes = sheet.axes(x, grid.shape[1] * cell, len(block.rows) * row)
            drawn = axes.pcolormesh(
                np.where(grid == NONE, np.nan, 100 * loads.busy[grid]),
                edgecolors="white",
                linewidth=0.4 if min(cell, row) > 4 else 0,
                rasterized=grid.size > 5000,
                **look,
            )
            _frame(axes, title, table, cell)
            _name_rows(axes, block.rows if index == 0 else [], row)
            _mark_waiting(axes, grid, loads, min(cell, row) / 2 / row, room)
            if row > 2 * ROW and table.lower == "host" and cell > LINE:
                _name_hosts(axes, grid, fabric)
            x += grid.shape[1] * cell + GAP
        foot = max(LINE, *(_labels(table, cell).height for table in block.tables))
        sheet.down(len(block.rows) * row + foot + 1.5 * LINE)
    sheet.down(LINE)
    _keys(sheet, found, drawn, room, loads)


def _panels(block: Block) -> list[tuple[str, NDArray[np.int32], Table]]:
    """Upwards, then downwards: title, links, and the table that they are from."""
    up = [(f"{plural(t.lower)} → {plural(t.upper)}", t.up, t) for t in block.tables]
    down = [
        (f"{plural(t.upper)} → {plural(t.lower)}", np.where(t.up == NONE, NONE, t.up ^ 1), t)
        for t in reversed(block.tables)
    ]
    return up + down


def plural(level: str) -> str:
    """Several switches of a level."""
    return "leaves" if level == "leaf" else f"{level}s"


def _sizes(fabric: Fabric, block: Block, width: float) -> tuple[float, float, float]:
    """Room for the names of rows, width of a cell, height of a row."""
    label = 12 + LETTER * max(len(shortened(name)) for name in block.rows)
    columns = 2 * sum(table.up.shape[1] for table in block.tables)
    gaps = (2 * len(block.tables) - 1) * GAP
    return label, (width - label - gaps) / columns, _row_height(fabric, block)


def _row_height(fabric: Fabric, block: Block) -> float:
    if len(block.rows) <= FEWEST_ROWS and any(table.lower == "host" for table in block.tables):
        longest = max(len(shortened(host.name)) for host in fabric.hosts)
        return LETTER * longest + 2 * ROW
    return min(ROW, MOST_HEIGHT / len(block.rows))


def _frame(axes: Axes, title: str, table: Table, cell: float) -> None:
    axes.set_title(title, fontsize=9, pad=5)
    axes.set_facecolor(NO_CABLE)
    axes.invert_yaxis()
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.tick_params(length=0, labelsize=FONT, pad=2)
    labels = _labels(table, cell)
    shown = table.groups[:: labels.every]
    axes.set_xticks(
        [group.first + group.count / 2 for group in shown],
        [shortened(group.label) for group in shown],
        rotation=90 if labels.turned else 0,
        parse_math=False,
    )
    axes.set_xlabel(table.columns, fontsize=FONT, color=style.GREY, labelpad=1)
    for group in table.groups[1:]:
        if group.count > 1 or table.groups[0].count > 1:
            axes.axvline(group.first, color=style.GREY, linewidth=0.5)


class Labels(NamedTuple):
    """How the columns of a table are named."""

    every: int
    """One of so many columns has room for its name, upright or turned."""
    turned: bool
    height: float


def _labels(table: Table, cell: float) -> Labels:
    narrowest = min(group.count for group in table.groups) * cell
    every = max(1, int(-(-LINE // narrowest)))
    longest = max(len(shortened(group.label)) for group in table.groups)
    turned = longest > 2 and narrowest * every < LETTER * longest + 4
    return Labels(every, turned, LETTER * longest + 4 if turned else LINE)


def _name_rows(axes: Axes, names: Sequence[str], row: float) -> None:
    every = max(1, int(-(-LINE // row)))
    places = range(0, len(names), every)
    labels = [shortened(names[place]) for place in places]
    axes.set_yticks([place + 0.5 for place in places], labels, parse_math=False)


def _mark_waiting(
    axes: Axes, grid: NDArray[np.int32], loads: Loads, up: float, room: float
) -> None:
    """Dots whose area is the share of the time, so far above the lower edge, clear of names."""
    rows, columns = np.nonzero((grid != NONE) & (loads.waiting[grid] >= LEAST_WAITING))
    if not len(rows):
        return
    shares = loads.waiting[grid[rows, columns]]
    axes.scatter(columns + 0.5, rows + 1 - up, s=_area(shares, room), **DOT)


def _area(share: Any, room: float) -> Any:
    """Of a dot in points²; it fills the smallest cell if the port always waits."""
    return (0.9 * room) ** 2 * share


def _name_hosts(axes: Axes, grid: NDArray[np.int32], fabric: Fabric) -> None:
    for (row, column), link in np.ndenumerate(grid):
        if link != NONE:
            cable = fabric.cables[link // 2]
            host = fabric.nodes[min(cable.a.node, cable.b.node)].name
            axes.text(
                column + 0.5,
                row + 0.04,
                shortened(host),
                rotation=90,
                ha="center",
                va="top",
                fontsize=FONT - 0.5,
                parse_math=False,
            )


def _keys(sheet: Sheet, found: Sequence[Block], drawn: Any, room: float, loads: Loads) -> None:
    bar = sheet.axes(0, 0.3 * sheet.width, BAR)
    bar.figure.colorbar(drawn, cax=bar, orientation="horizontal")
    bar.tick_params(labelsize=FONT + 0.5)
    bar.set_xlabel("cable utilisation (%)", fontsize=FONT + 1)
    keys = sheet.axes(0.36 * sheet.width, 0.64 * sheet.width, BAR)
    keys.set_axis_off()
    if any((table.up == NONE).any() for block in found for table in block.tables):
        keys.fill_between([], [], color=NO_CABLE, label="no cable")
    if (loads.waiting >= LEAST_WAITING).any():
        for share in (0.01, 0.1, 0.5):
            text = (
                f"waiting for credits {share:.0%} of the time" if share == 0.01 else f"{share:.0%}"
            )
            keys.scatter([], [], s=_area(share, room), label=text, **DOT)
    elif loads.has_credits:
        keys.scatter([], [], s=0, label="no port waits for credits for 0.1 % of the time or more")
    keys.legend(loc="center left", ncols=5, frameon=False, fontsize=FONT + 1, borderpad=0)
    sheet.down(BAR + 2.5 * LINE)
