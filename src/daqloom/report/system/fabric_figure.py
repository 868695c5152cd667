"""Figure of a fabric: a row for each switch level; irregular cables in colour with their ports."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from daqloom.base.words import plural
from daqloom.report import style
from daqloom.report.figure import Axis, Bars, Dash, Figure, Legend, Line, Mark, Panel, Text
from daqloom.report.system.fabric_layout import FONT, LETTER, LINE, Box, Layout, Touch, lay_out
from daqloom.topology.fabric.anomalies import Anomaly, anomalies
from daqloom.topology.fabric.fabric import Fabric

Ends: TypeAlias = tuple[Touch, Touch]

COLOURS = {
    "missing link": style.ORANGE,
    "swapped cables": style.PURPLE,
    "misplaced cable": style.BLUE,
    "extra cable": style.GREEN,
    "uneven links": style.AMBER,
    "other rate": style.SKY,
}
REGULAR = "#c3ccd6"
MARGIN = 24.0
HEAD = 56.0
"""Height above the top row, for the title (points)."""
FOOT = 50.0
"""Height below the bottom row and its notes, for the legend (points)."""
BOW = 44.0
MOST_TAGGED = 500
"""Limit on the number of cables with port numbers, so that these stay legible."""


def figure(fabric: Fabric, *, each_host: bool = False) -> Figure:
    """Return the figure. Unless `each_host`, leaves show only their number of hosts. A grey line
    stands for all regular cables between two nodes; its width shows how many. Raises TopologyError
    if the fabric is too large."""
    found = anomalies(fabric)
    layout = lay_out(fabric, found, each_host=each_host)
    foot = FOOT + max((_note_height(box) for box in layout.boxes.values()), default=0)
    width, height = layout.width + 2 * MARGIN, layout.height + foot + HEAD
    title = (
        f"{fabric.name}: {len(fabric.hosts)} hosts, {len(fabric.switches)} switches, "
        f"{len(fabric.cables)} cables"
    )
    about = "the cabling is regular"
    if found:
        about = f"{plural(len(found), 'irregular place')}, in colour, with port numbers"
    top = height - foot
    marks = [
        *_regular(fabric, found, layout),
        *_irregular(layout),
        *_boxes(list(layout.boxes.values())),
        Text(-MARGIN / 2, top - 12, [title], size=10.5, across="left", bold=True),
        Text(-MARGIN / 2, top - 28, [about], style.GREY, 8.5, "left"),
    ]
    look: dict[str, Any] = {"legend": Legend("lower left", columns=7, size=8.5), "blank": True}
    x, y = Axis(ends=(-MARGIN, width - MARGIN)), Axis(ends=(-foot, top))
    panel = Panel(marks, x, y, place=(0, 0, width, height), **look)
    return Figure([panel], (width / 72, height / 72))


def _regular(fabric: Fabric, found: Sequence[Anomaly], layout: Layout) -> Iterator[Mark]:
    boxes, hosts = layout.boxes, len(fabric.hosts)
    coloured = {end for anomaly in found if len(anomaly.ends) > 1 for end in anomaly.ends}
    pairs = Counter(
        tuple(sorted((cable.a.node, cable.b.node)))
        for cable in fabric.cables
        if cable.a.node in boxes and cable.b.node in boxes and cable.a not in coloured
    )
    if counts := [count for (low, _), count in pairs.items() if low >= hosts]:
        many = plural(max(counts), "cable")
        name = many if len(set(counts)) == 1 else f"{min(counts)} to {many}"
        yield Line([], [], name, REGULAR, 2)
    by_count: dict[int, list[Ends]] = defaultdict(list)
    for (low, high), count in pairs.items():
        ends = _middle(boxes[low], boxes[high]), _middle(boxes[high], boxes[low])
        by_count[count].append(ends)
    for count, ends_of in by_count.items():
        yield Line(*_curves(ends_of), colour=REGULAR, width=min(0.5 + 0.3 * count, 4.0))


def _middle(here: Box, there: Box) -> Touch:
    """Return the end at `here` of the regular cables from box `here` to box `there`."""
    return Touch(here.x, here.y + (0.5 if there.y >= here.y else -0.5) * here.height, 0)


def _curves(cables: Sequence[Ends]) -> tuple[list[float], list[float]]:
    """Return lines for the cables, or upward arcs within a row; NaN separates cables."""
    x: list[float] = []
    y: list[float] = []
    for one, other in cables:
        steps = np.linspace(0, 1, 17) if one.y == other.y else np.array([0.0, 1.0])
        bow = 2 * BOW * steps * (1 - steps) if one.y == other.y else 0.0
        x += [*(one.x + steps * (other.x - one.x)), math.nan]
        y += [*(one.y + steps * (other.y - one.y) + bow), math.nan]
    return x, y


def _irregular(layout: Layout) -> Iterator[Mark]:
    """Yield a coloured line for each kind of irregular cable, dashed for missing ones, and port
    numbers."""
    for kind in dict.fromkeys(wire.kind for wire in layout.wires):
        dash: Dash = "dash" if kind == "missing link" else "solid"
        x, y = _curves([wire.ends for wire in layout.wires if wire.kind == kind])
        yield Line(x, y, kind, COLOURS[kind], 1.5, dash)
    tags: list[tuple[float, float]] = []
    for kind, (one, other) in layout.wires[:MOST_TAGGED]:
        for here, there in (one, other), (other, one):
            at = next((at for at in _along(here, there) if _is_free(at, tags)), None)
            if here.port and at:
                tags.append(at)
                yield Text(*at, [str(here.port)], COLOURS[kind], FONT, ground=1)


def _along(here: Touch, there: Touch) -> Iterator[tuple[float, float]]:
    """Yield positions on a cable for its port number, ever further from the box."""
    for lines in (1.3, 2.5, 3.7, 4.9):
        up = lines * LINE if there.y >= here.y else -lines * LINE
        share = up / (there.y - here.y) if there.y != here.y else 0.0
        yield here.x + share * (there.x - here.x), here.y + up


def _is_free(at: tuple[float, float], tags: list[tuple[float, float]]) -> bool:
    return all(abs(at[0] - x) > 2.8 * LETTER or abs(at[1] - y) > LINE for x, y in tags)


def _boxes(boxes: Sequence[Box]) -> Iterator[Mark]:
    if not boxes:
        return
    x, y, width, height = np.array([(box.x, box.y, box.width, box.height) for box in boxes]).T
    yield Bars(y, width, x - width / 2, height, colour="#eef1f4", edge=style.GREY)
    highest = max(box.y for box in boxes)
    for box in boxes:
        turned = 90.0 if box.turned else 0.0
        yield Text(box.x, box.y, [box.label], size=FONT, turned=turned)
        if box.notes and box.label:
            text = (", " if box.turned else "\n").join(box.notes)
            colour = style.ORANGE if box.irregular else style.GREY
            is_top = box.y == highest > 0
            off, down = (4, "bottom") if is_top else (-4, "top")
            edge = box.y + math.copysign(box.height / 2, off) + off
            look: dict[str, Any] = {"down": down, "turned": turned, "ground": 1}
            yield Text(box.x, edge, [text], colour, FONT, **look)


def _note_height(box: Box) -> float:
    """Return the height of the notes below a box (points)."""
    return LETTER * len(", ".join(box.notes)) if box.turned else LINE * len(box.notes)
