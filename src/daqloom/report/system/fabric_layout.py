"""Layout of a fabric's figure: positions of switches and of the ends of irregular cables.

Lengths are in points (1/72 inch), and y points upwards. Each switch level is a row of boxes.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from daqloom.base.words import plural
from daqloom.topology import TopologyError
from daqloom.topology.fabric.anomalies import Anomaly
from daqloom.topology.fabric.fabric import End, Fabric
from daqloom.topology.fabric.levels import tree_levels

FONT = 7.5
LETTER = 0.64 * FONT
LONGEST_LABEL = 24
MOST_ROWS = 12
MOST_IN_A_ROW = 1000
NARROWEST, WIDEST = 540.0, 5000.0
LINE = 1.35 * FONT
"""Distance between lines of text, or between rotated names (points)."""
PITCH = 14.0
"""Distance between the ends of cables at a box (points)."""


@dataclass(frozen=True)
class Box:
    """Switch or host: its centre, size, and name, which is empty if there is no space for it."""

    x: float
    y: float
    width: float
    height: float
    label: str
    turned: bool
    notes: tuple[str, ...]
    """Texts below the box, such as the numbers of hosts and missing hosts."""
    irregular: bool
    """Whether `notes` name an irregularity, not only a number of hosts."""


class Touch(NamedTuple):
    """Position where a cable meets a box in the figure."""

    x: float
    y: float
    port: int
    """Port number, or 0 if unknown."""


class Wire(NamedTuple):
    """Irregular cable between two boxes."""

    kind: str
    ends: tuple[Touch, Touch]


@dataclass(frozen=True)
class Layout:
    """Boxes by index in `fabric.nodes`, irregular cables, and size of the figure."""

    width: float
    height: float
    boxes: dict[int, Box]
    wires: list[Wire]


def lay_out(fabric: Fabric, anomalies: Sequence[Anomaly], *, each_host: bool = False) -> Layout:
    """Return positions of all switches, and of hosts if `each_host`. `anomalies` has the fabric's
    `anomalies`. Raises TopologyError if the fabric has too many levels or switches."""
    rows = _rows(fabric, each_host)
    if len(rows) > MOST_ROWS or max(map(len, rows), default=0) > MOST_IN_A_ROW:
        raise TopologyError(
            f"{fabric.name} is too large for a figure of at most {MOST_ROWS} levels with "
            f"{MOST_IN_A_ROW} nodes each; write .dot or .json"
        )

    def label_of(node: int) -> str:
        return shorten(fabric.nodes[node].name)

    notes, irregular = _notes(fabric, anomalies, each_host)
    longest = [
        10 + LETTER * max(len(text) for node in row for text in (label_of(node), *notes[node]))
        for row in rows
    ]
    lying = max((len(row) * each for row, each in zip(rows, longest, strict=True)), default=0)
    standing = max((len(row) for row in rows), default=0) * LINE * 1.1
    width = min(max(lying if lying < WIDEST / 3 else standing, NARROWEST), WIDEST)
    gap = min(max(0.22 * width, 190.0), 420.0)
    boxes: dict[int, Box] = {}
    y = 0.0
    for row, name in zip(rows, longest, strict=True):
        room = width / len(row)
        turned = room < name
        thick = LINE + 3
        long = 6 + LETTER * max(len(label_of(node)) for node in row)
        height = long if turned else thick
        across = min(thick if turned else long, 0.8 * room)
        y += height / 2
        for place, node in enumerate(row):
            label = label_of(node) if room >= LINE or not turned else ""
            text = label, turned, tuple(notes[node]), node in irregular
            boxes[node] = Box((place + 0.5) * room, y, across, height, *text)
        y += height / 2 + gap
    return Layout(width, max(y - gap, 0.0), boxes, _wires(anomalies, boxes, width))


def _rows(fabric: Fabric, each_host: bool) -> list[list[int]]:
    """Return the nodes of each level, from the bottom level up."""
    rows: dict[int, list[int]] = defaultdict(list)
    for place, level in enumerate(tree_levels(fabric)):
        rows[level].append(len(fabric.hosts) + place)
    if each_host:
        hosts = range(len(fabric.hosts))
        below = sorted((fabric.peers.get(End(host, 1), End(-1, 0)), host) for host in hosts)
        rows[0] = [host for _, host in below] + rows[0]
    return [nodes for _, nodes in sorted(rows.items()) if nodes]


def shorten(name: str) -> str:
    """Return the name, or only its last letters if it is longer than `LONGEST_LABEL`."""
    return name if len(name) <= LONGEST_LABEL else "…" + name[1 - LONGEST_LABEL :]


def _notes(
    fabric: Fabric, found: Sequence[Anomaly], each_host: bool
) -> tuple[dict[int, list[str]], set[int]]:
    """Return the notes below each switch, and the switches whose notes name an irregularity."""
    hosts = len(fabric.hosts)
    words = {
        "missing host": "missing",
        "unexpected host": "unexpected",
        "other rate": "other rate",
        "no pattern": "odd cabling",
        "separate part": "apart",
    }
    odd: dict[int, Counter[str]] = defaultdict(Counter)
    for anomaly in found:
        switches = [end.node for end in anomaly.ends if end.node >= hosts]
        if len(switches) == 1 and anomaly.kind in words:
            odd[switches[0]][words[anomaly.kind]] += 1
    notes: dict[int, list[str]] = defaultdict(list)
    for node, count in fabric.host_counts.items():
        if not each_host:
            notes[node].append(plural(count, "host"))
    for node, kinds in odd.items():
        notes[node] += [f"{count} {word}" for word, count in kinds.items()]
    return notes, set(odd)


def _wires(found: Sequence[Anomaly], boxes: dict[int, Box], width: float) -> list[Wire]:
    """Return the irregular cables between switches; ends at the same box are side by side."""
    cables = [
        (anomaly.kind, pair)
        for anomaly in found
        for pair in zip(anomaly.ends[::2], anomaly.ends[1::2], strict=False)
        if all(end.node in boxes for end in pair)
    ]
    # By (box, is upper edge): for each cable end, x of the far end, index of the cable, and side.
    edges: dict[tuple[int, bool], list[tuple[float, int, int]]] = defaultdict(list)
    for index, (_, pair) in enumerate(cables):
        for side in (0, 1):
            here, there = boxes[pair[side].node], boxes[pair[1 - side].node]
            edges[pair[side].node, there.y >= here.y].append((there.x, index, side))
    in_row = Counter(box.y for box in boxes.values())
    touches: dict[tuple[int, int], Touch] = {}
    for (node, upper), ends in edges.items():
        box = boxes[node]
        pitch = min(PITCH, width / in_row[box.y] / len(ends))
        for place, (_, index, side) in enumerate(sorted(ends)):
            x = box.x + (place - (len(ends) - 1) / 2) * pitch
            y = box.y + (0.5 if upper else -0.5) * box.height
            touches[index, side] = Touch(x, y, cables[index][1][side].port)
    return [
        Wire(kind, (touches[index, 0], touches[index, 1])) for index, (kind, _) in enumerate(cables)
    ]
