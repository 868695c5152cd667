"""A picture of a fabric: levels above each other, irregular cables in colour with their ports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from daqloom.report import style
from daqloom.report.system.fabric_layout import FONT, LETTER, LINE, Box, Layout, Touch, lay_out
from daqloom.topology.anomalies import Anomaly, anomalies
from daqloom.topology.fabric import Fabric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.path import Path as Curve

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
"""Above the highest row, for the title."""
FOOT = 50.0
"""Below the lowest row and its notes, for the legend."""
BOW = 44.0
MOST_TAGGED = 500
"""Cables with the numbers of their ports; of more, nobody could read them."""


def draw(fabric: Fabric, *, each_host: bool = False) -> Figure:
    """The picture; hosts are a number below their leaf unless `each_host`. A grey line is all
    regular cables between two nodes, the thicker the more. Raises TopologyError where the fabric is
    too large to see."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    found = anomalies(fabric)
    layout = lay_out(fabric, found, each_host=each_host)
    foot = FOOT + max((_note_height(box) for box in layout.boxes.values()), default=0)
    width, height = layout.width + 2 * MARGIN, layout.height + foot + HEAD
    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(width / 72, height / 72))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(-MARGIN, width - MARGIN)
        axes.set_ylim(-foot, height - foot)
        _draw_regular(axes, fabric, found, layout)
        _draw_irregular(axes, layout)
        highest = max((box.y for box in layout.boxes.values()), default=0.0)
        for box in layout.boxes.values():
            _draw_box(axes, box, top=box.y == highest > 0)
        title = (
            f"{fabric.name}: {len(fabric.hosts)} hosts, {len(fabric.switches)} switches, "
            f"{len(fabric.cables)} cables"
        )
        about = "the cabling is regular"
        if found:
            places = "place" if len(found) == 1 else "places"
            about = f"{len(found)} irregular {places}, in colour, with port numbers"
        top = height - foot
        _write(axes, -MARGIN / 2, top - 12, title, fontsize=10.5, weight="bold")
        _write(axes, -MARGIN / 2, top - 28, about, color=style.GREY, fontsize=8.5)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower left", ncols=7, frameon=False, fontsize=8.5)
    return figure


def _draw_regular(axes: Axes, fabric: Fabric, found: Sequence[Anomaly], layout: Layout) -> None:
    from matplotlib.collections import PathCollection

    boxes, hosts = layout.boxes, len(fabric.hosts)
    coloured = {end for anomaly in found if len(anomaly.ends) > 1 for end in anomaly.ends}
    pairs = Counter(
        tuple(sorted((cable.a.node, cable.b.node)))
        for cable in fabric.cables
        if cable.a.node in boxes and cable.b.node in boxes and cable.a not in coloured
    )
    counts = [count for (low, _), count in pairs.items() if low >= hosts]
    if counts:
        many = f"{max(counts)} cable{'s' if max(counts) > 1 else ''}"
        label = many if len(set(counts)) == 1 else f"{min(counts)} to {many}"
        axes.plot([], [], color=REGULAR, linewidth=2, label=label)
    lines = [
        _line(_middle(boxes[low], boxes[high]), _middle(boxes[high], boxes[low]))
        for low, high in pairs
    ]
    widths = [min(0.5 + 0.3 * count, 4.0) for count in pairs.values()]
    axes.add_collection(
        PathCollection(lines, facecolors="none", edgecolors=REGULAR, linewidths=widths, zorder=1)
    )


def _middle(here: Box, there: Box) -> Touch:
    """Where a box's regular cables to another begin."""
    return Touch(here.x, here.y + (0.5 if there.y >= here.y else -0.5) * here.height, 0)


def _line(one: Touch, other: Touch) -> Curve:
    """A straight line, or a bow upwards within a row."""
    from matplotlib.path import Path as Curve

    ends = (one.x, one.y), (other.x, other.y)
    if one.y != other.y:
        return Curve(ends)
    top = (one.x + other.x) / 2, one.y + BOW
    return Curve([ends[0], top, ends[1]], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])


def _draw_irregular(axes: Axes, layout: Layout) -> None:
    """A coloured line per irregular cable; one that is missing is dashed."""
    from matplotlib.collections import PathCollection

    for kind in dict.fromkeys(wire.kind for wire in layout.wires):
        look: dict[str, Any] = {"linestyle": _dashes(kind), "linewidth": 1.5, "zorder": 2}
        lines = [_line(*wire.ends) for wire in layout.wires if wire.kind == kind]
        axes.plot([], [], color=COLOURS[kind], linestyle=_dashes(kind), label=kind)
        axes.add_collection(
            PathCollection(lines, facecolors="none", edgecolors=COLOURS[kind], **look)
        )
    tags: list[tuple[float, float]] = []
    for kind, (one, other) in layout.wires[:MOST_TAGGED]:
        for here, there in (one, other), (other, one):
            at = next((at for at in _beside(here, there) if _free(at, tags)), None)
            if here.port and at:
                tags.append(at)
                _write(axes, *at, str(here.port), color=COLOURS[kind], ha="center", back=0.4)


def _dashes(kind: str) -> tuple[int, tuple[int, ...]] | str:
    return (0, (3, 2)) if kind == "missing link" else "solid"


def _beside(here: Touch, there: Touch) -> Iterator[tuple[float, float]]:
    """Places on a cable for the number of its port, ever further off the box."""
    for lines in (1.3, 2.5, 3.7, 4.9):
        up = lines * LINE if there.y >= here.y else -lines * LINE
        share = up / (there.y - here.y) if there.y != here.y else 0.0
        yield here.x + share * (there.x - here.x), here.y + up


def _free(at: tuple[float, float], tags: list[tuple[float, float]]) -> bool:
    return all(abs(at[0] - x) > 2.8 * LETTER or abs(at[1] - y) > LINE for x, y in tags)


def _draw_box(axes: Axes, box: Box, *, top: bool) -> None:
    from matplotlib.patches import Rectangle

    corner = box.x - box.width / 2, box.y - box.height / 2
    axes.add_patch(
        Rectangle(
            corner, box.width, box.height, facecolor="#eef1f4", edgecolor=style.GREY, zorder=3
        )
    )
    turn = 90 if box.turned else 0
    _write(axes, box.x, box.y, box.label, ha="center", rotation=turn)
    if box.notes and box.label:
        text = (", " if box.turned else "\n").join(box.notes)
        colour = style.ORANGE if box.irregular else style.GREY
        off, va = (4, "bottom") if top else (-4, "top")
        y = box.y + math.copysign(box.height / 2, off) + off
        _write(axes, box.x, y, text, color=colour, ha="center", va=va, rotation=turn, back=1)


def _note_height(box: Box) -> float:
    """What the notes below a box take."""
    if box.turned:
        return LETTER * len(", ".join(box.notes))
    return LINE * len(box.notes)


def _write(
    axes: Axes, x: float, y: float, text: str, *, back: float | None = None, **how: Any
) -> None:
    """Text at a place, on white with so much of a margin if `back`."""
    box = {"facecolor": "white", "edgecolor": "none", "pad": back} if back is not None else None
    look: dict[str, Any] = {"va": "center", "color": style.BLACK, "fontsize": FONT} | how
    axes.text(x, y, text, bbox=box, parse_math=False, zorder=4, **look)
