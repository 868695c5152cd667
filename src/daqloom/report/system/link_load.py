"""Load of each cable of a simulated fabric, and tables with a cell for each cable."""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.base.output import OutputError
from daqloom.results.result import Result
from daqloom.topology.fabric.fabric import Cable, End, Fabric, natural_order
from daqloom.topology.fabric.levels import HOST, level_name, node_levels
from daqloom.topology.fabric.wiring import NONE

DENSE = 0.5
"""Least share of cells with a cable; below, columns only number the cables of each row."""


@dataclass(frozen=True)
class Loads:
    """Loads of all directed links, shape (links,). Cable c has the links 2·c and 2·c + 1."""

    busy: NDArray[np.float64]
    """Utilisation of each link: bytes · 8 / (rate · duration)."""
    waiting: NDArray[np.float64]
    """Share of time in which a packet waited for credits at the link's port."""
    has_credits: bool = True


@dataclass(frozen=True)
class Group:
    """Adjacent columns whose cables lead to the same switch, or a column of one port."""

    label: str
    first: int
    count: int


@dataclass(frozen=True)
class Table:
    """Cables between two levels. A row is a switch of the lower level, or of the upper level for
    cables of hosts. A column is a port, or one of the cables to an upper switch."""

    lower: str
    upper: str
    columns: str
    """Meaning of a column, in words."""
    groups: list[Group]
    up: NDArray[np.int32]
    """Upward link of each (row, column), `NONE` if no cable. The downward link is `up` ^ 1."""


@dataclass(frozen=True)
class Block:
    """Tables of cables that have the same rows."""

    level: str
    rows: list[str]
    tables: list[Table]


def loads(fabric: Fabric, result: Result, duration_s: float) -> Loads:
    """Return the loads from `result.series["ports"]`. Raises OutputError if a port is missing."""
    ports = result.series.get("ports", {})
    place = {name: row for row, name in enumerate(ports.get("name", ()))}
    ends = [fabric.end_name(end) for cable in fabric.cables for end in (cable.a, cable.b)]
    if missing := next((name for name in ends if name not in place), None):
        raise OutputError(
            f"the result has no port {missing}; expected series.ports of a simulation of this "
            f"scenario, a {fabric.name}"
        )
    rows = [place[name] for name in ends]
    rate_bps = np.repeat([float(cable.rate_bps) for cable in fabric.cables], 2)
    sent = np.asarray(ports["bytes"], float)[rows]
    waited_s = np.asarray(ports.get("wait_credits_s", np.zeros(len(place))), float)[rows]
    busy = 8 * sent / (rate_bps * duration_s)
    return Loads(busy, waited_s / duration_s, has_credits="wait_credits_s" in ports)


def blocks(fabric: Fabric) -> list[Block]:
    """Return tables of all cables at switches, leaves first. Each cable is in one table."""
    level = node_levels(fabric)
    pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, cable in enumerate(fabric.cables):
        low, high = sorted((level[cable.a.node], level[cable.b.node]))
        if high != HOST:
            pairs[low, high].append(index)
    order = [fabric.switch_node(place) for place in natural_order(fabric.switches)]
    found = []
    for height in sorted({_rows_of(pair) for pair in pairs}):
        rows = [node for node in order if level[node] == height]
        tables = [
            _table(fabric, level, pair, pairs[pair], rows, order)
            for pair in sorted(pairs)
            if _rows_of(pair) == height
        ]
        names = [fabric.nodes[node].name for node in rows]
        found.append(Block(level_name(height), names, tables))
    return found


def _rows_of(pair: tuple[int, int]) -> int:
    """Return the level of the switches that are rows of the table for a pair of levels."""
    return pair[1] if pair[0] == HOST else pair[0]


def _table(
    fabric: Fabric,
    level: tuple[int, ...],
    pair: tuple[int, int],
    cables: list[int],
    rows: list[int],
    order: list[int],
) -> Table:
    cells: dict[tuple[int, tuple[int, int]], int] = {}  # links by row and key of the column
    parallel: Counter[tuple[int, int]] = Counter()
    place = {node: rank for rank, node in enumerate(order)}
    for low, high, link in sorted(_upwards(fabric.cables[c], c, level) for c in cables):
        if pair[0] == HOST:
            cells[high.node, (high.port, 0)] = link
        else:
            cells[low.node, (place[high.node], parallel[low.node, high.node])] = link
            parallel[low.node, high.node] += 1
    keys = sorted({key for _, key in cells})
    lower, upper = map(level_name, pair)
    columns = f"port of the {upper}" if pair[0] == HOST else upper
    if len(cells) < DENSE * len(rows) * len(keys):
        columns, number = "its cables, one after the other", Counter[int]()
        dense = {}
        for (node, _), link in sorted(cells.items()):
            number[node] += 1
            dense[node, (number[node], 0)] = link
        cells, keys = dense, sorted({key for _, key in dense})
    groups: list[Group] = []
    for key, count in Counter(key for key, _ in keys).items():
        label = fabric.nodes[order[key]].name if columns == upper else str(key)
        groups.append(Group(label, sum(group.count for group in groups), count))
    row = {node: place for place, node in enumerate(rows)}
    column = {key: place for place, key in enumerate(keys)}
    grid = np.full((len(rows), len(keys)), NONE, np.int32)
    for (node, at), link in cells.items():
        grid[row[node], column[at]] = link
    return Table(lower, upper, columns, groups, grid)


def _upwards(cable: Cable, index: int, level: tuple[int, ...]) -> tuple[End, End, int]:
    """Return the lower end of the cable, its upper end, and its upward link."""
    if level[cable.a.node] <= level[cable.b.node]:
        return cable.a, cable.b, 2 * index
    return cable.b, cable.a, 2 * index + 1
