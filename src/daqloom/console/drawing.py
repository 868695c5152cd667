"""Drawing of a fabric as data for a browser: boxes, cables, and their loads and states over time.

Lengths are in points, and y points downwards. A cable stands for all cables between two nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daqloom.base.output import OutputError
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.report.system.fabric_layout import lay_out
from daqloom.report.system.link_load import loads
from daqloom.results.result import Result
from daqloom.topology.fabric.anomalies import Anomaly, anomalies
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import NONE
from daqloom.topology.routing.routes import trace

MOST_HOSTS = 128
"""Hosts that are drawn one by one."""
MOMENTS = 120
"""Moments of a simulation."""
MOST_SENTENCES = 50
Drawing = dict[str, Any]


def draw(fabric: Fabric) -> Drawing:
    """Return the drawing of a fabric, hosts included if there are at most `MOST_HOSTS`. Raises
    TopologyError for a fabric that is too large."""
    found = anomalies(fabric)
    layout = lay_out(fabric, found, each_host=len(fabric.hosts) <= MOST_HOSTS)
    boxes = [
        {
            "name": fabric.nodes[node].name,
            "x": box.x,
            "y": layout.height - box.y,
            "width": box.width,
            "height": box.height,
            "label": box.label,
            "turned": box.turned,
            "notes": box.notes,
            "odd": box.irregular,
            "host": node < len(fabric.hosts),
        }
        for node, box in layout.boxes.items()
    ]
    place = {node: index for index, node in enumerate(layout.boxes)}
    cables = [
        {"a": place[a], "b": place[b], "count": len(indices), "kind": _kind(fabric, indices, found)}
        for (a, b), indices in _pairs(fabric).items()
        if a in place and b in place
    ]
    return {
        "title": f"{fabric.name}: {len(fabric.hosts)} hosts, {len(fabric.switches)} switches, "
        f"{len(fabric.cables)} cables",
        "about": [each.sentence for each in found[:MOST_SENTENCES]],
        "width": layout.width,
        "height": layout.height,
        "boxes": boxes,
        "cables": cables,
    }


def with_run(drawing: Drawing, system: FabricSystem, result: Result, counted_s: float) -> Drawing:
    """Return the drawing with the loads of its cables in a simulation, and with what each host does
    at `MOMENTS` moments, as far as `result` has them."""
    fabric = system.fabric
    place = {box["name"]: index for index, box in enumerate(drawing["boxes"])}
    pairs = [
        indices
        for (a, b), indices in _pairs(fabric).items()
        if fabric.nodes[a].name in place and fabric.nodes[b].name in place
    ]
    cables = drawing["cables"]
    try:
        loaded = loads(fabric, result, counted_s)
    except OutputError:
        loaded = None
    if loaded is not None:
        for cable, indices in zip(cables, pairs, strict=True):
            links = [link for index in indices for link in (2 * index, 2 * index + 1)]
            cable["busy"] = round(float(loaded.busy[links].max()), 4)
            cable["waiting"] = round(float(loaded.waiting[links].max()), 4)
    if (phases := result.series.get("phases")) and phases.get("node"):
        drawing = {**drawing, "cables": cables, "moments": _moments(system, phases, place, pairs)}
    return drawing


def _pairs(fabric: Fabric) -> Mapping[tuple[int, int], list[int]]:
    """Return the indices of the cables between each two nodes."""
    pairs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for index, cable in enumerate(fabric.cables):
        low, high = sorted((cable.a.node, cable.b.node))
        pairs[low, high].append(index)
    return pairs


def _kind(fabric: Fabric, indices: list[int], found: tuple[Anomaly, ...]) -> str:
    """Return the kind of the irregularity of one of some cables, empty without one."""
    ends = {end for index in indices for end in (fabric.cables[index].a, fabric.cables[index].b)}
    return next((each.kind for each in found if len(each.ends) > 1 and ends & {*each.ends}), "")


def _moments(
    system: FabricSystem,
    phases: Mapping[str, Any],
    place: Mapping[str, int],
    pairs: list[list[int]],
) -> Drawing:
    """Return times (s), and for each time the activity of hosts by box, and the writes under way
    over the cables in their busier direction."""
    fabric = system.fabric
    host = {node.name: index for index, node in enumerate(fabric.hosts)}
    source = np.array([host[name] for name in phases["node"]])
    to = np.array([host.get(name, -1) for name in phases["to"]])
    begin_s, end_s = (np.asarray(phases[name], float) for name in ("begin_s", "end_s"))
    links = trace(fabric, system.routes).links(source, to)
    sends = np.array([each == "sending" for each in phases["what"]])
    times_s = np.linspace(begin_s.min(), end_s.max(), MOMENTS, endpoint=False)
    activities, writes = [], []
    for time_s in times_s:
        now = np.flatnonzero((begin_s <= time_s) & (time_s < end_s))
        activities.append(
            {str(place[n]): phases["what"][i] for i in now if (n := phases["node"][i]) in place}
        )
        writes.append(_counts(links[:, now[sends[now]]], pairs, len(fabric.cables)))
    times = [round(float(each), 9) for each in times_s]
    return {"times_s": times, "hosts": activities, "cables": writes}


def _counts(links: NDArray[np.int32], pairs: list[list[int]], cables: int) -> list[int]:
    count = np.bincount(links[links != NONE], minlength=2 * cables).reshape(cables, 2)
    return [int(count[indices].sum(axis=0).max()) for indices in pairs]
