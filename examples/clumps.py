"""Draw how nodes of an event builder clump together at builders, and how that dissolves.

Run it as `python examples/clumps.py clumps.png`. Linear shifting of 40 nodes that begin each phase
late by a random delay of 20 us on average: above, builder units receive from all who write; below,
they let one node write at a time. Each row is a node; the colour is how long its transfer to the
builder unit of a phase takes, waiting for it included, in transfers that have the builder unit for
themselves.
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import daqloom

PACES = {
    "schedule": "without a barrier: a builder receives from all who write",
    "builder": "builder-paced: a builder lets one node write at a time",
}
ALONE_S = 3 * 30_000 * 160 * 8 / 200e9
"""Time on the wire of the three packets of a phase, with 30 000 fragments of 160 B each."""
SHARED = {
    "readout.units": 40,
    "network.leaves": 2,
    "network.hosts_per_leaf": 20,
    "building.barrier": "none",
    "building.jitter.kind": "exponential",
    "building.jitter.mean": "20 us",
    "transport.control_service_level": 1,
    "run.duration": "60 ms",
}


def transfers(pace: str) -> dict[str, list[tuple[float, float]]]:
    """Begin and end (s) of each phase of each node, from the end of the last one on."""
    system = daqloom.load("lhcb-run3-test-160", SHARED | {"building.pace": pace})
    phases = system.simulate(timeline=True).series["phases"]
    spans: dict[str, dict[int, tuple[float, float]]] = {}
    columns = (phases[name] for name in ("node", "step", "what", "begin_s", "end_s"))
    for node, step, what, begin_s, end_s in zip(*columns, strict=True):
        if what in ("sending", "asking"):
            first, last = spans.setdefault(node, {}).get(step, (begin_s, end_s))
            spans[node][step] = min(first, begin_s), max(last, end_s)
    return {node: list(of_node.values()) for node, of_node in spans.items()}


def draw(axes: Axes, pace: str) -> None:
    """Draw one bar for each phase of each node."""
    found = transfers(pace)
    for row, spans in enumerate(found.values()):
        begin, end = np.array(spans).T
        colours = plt.colormaps["magma_r"](np.clip((end - begin) / ALONE_S - 1, 0, 2) / 2)
        axes.barh(row, 1e3 * (end - begin), left=1e3 * begin, height=1.0, color=colours)
    axes.set(title=PACES[pace], ylabel="node", xlim=(0, 60), ylim=(len(found) - 0.5, -0.5))


def main() -> None:
    """Draw both."""
    figure, panels = plt.subplots(2, 1, figsize=(10, 7), sharex=True, layout="constrained")
    for axes, pace in zip(panels, PACES, strict=True):
        draw(axes, pace)
    panels[-1].set_xlabel("time since the start of the run (ms)")
    colours = plt.cm.ScalarMappable(plt.Normalize(1, 3), "magma_r")
    figure.colorbar(colours, ax=panels, label="time of a transfer, in transfers alone")
    figure.savefig(sys.argv[1], dpi=110)


if __name__ == "__main__":
    main()
