"""What a study has to know of InfiniBand fabrics."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from daqloom.metrics import OF_RACKS
from daqloom.scenario import FabricScenario
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.study.changes import number, value

HOPS_PER_S = 2.5e6
"""Packet hops of event building that one core simulates per second, see
docs/explanation/infiniband-model.md."""
HOPS_PER_PACKET = 3.0
"""Four links between two leaves, at about three quarters of what a node's link carries."""
HEADER_BYTES = 26
USUAL_BPS = 200e9
"""Of HDR, where a switch that is changed decides."""


class Fabrics:
    """See `daqloom.study.kinds.Traits`."""

    versions: Mapping[str, int] = {"simulate": 1, "analyse": 1, "measure": 1}
    analysis_s = 0.1
    foreign: Collection[str] = OF_RACKS
    courses: Sequence[str] = ()
    costly: Sequence[str] = (
        "nodes.count",
        "fabric.leaves",
        "fabric.hosts_per_leaf",
        "fabric.rate",
        "fabric.mtu",
        "fragments.size",
        "fragments.packing",
        "fragments.rate",
        "run.duration",
    )

    def operating_point(self, base: FabricScenario) -> dict[str, float]:
        """None: event rate and size are what comes out, not what is given."""
        return {}

    def saturation(self, base: FabricScenario) -> Never:
        """Never: nodes push as fast as they can, or as the fragments come, and what has no room is
        discarded at once."""
        return Never()

    def simulation_s(self, base: FabricScenario, changes: Mapping[str, Any]) -> float:
        """From the packets that the nodes' links carry, or those that fragments come in."""
        of = functools.partial(number, base, changes)
        message = of("fragments.size") * of("fragments.packing")
        payload = message / math.ceil(message / of("fabric.mtu"))
        nodes, rate_bps = _nodes(base, changes)
        node_hz = rate_bps / (8 * (payload + HEADER_BYTES))
        if of("fragments.rate"):
            pushed_bytes = of("fragments.size") * of("nodes.streams")
            node_hz = min(node_hz, of("fragments.rate") * pushed_bytes / payload)
        packets = nodes * node_hz * of("run.duration")
        return packets * HOPS_PER_PACKET / HOPS_PER_S


class Never:
    """A system that is at no point offered more than it carries."""

    def excess_hz(self, changes: Mapping[str, Any]) -> float:
        """Less than none."""
        return -math.inf

    def bounded(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """As they are."""
        return dict(changes)


def _nodes(base: FabricScenario, changes: Mapping[str, Any]) -> tuple[float, float]:
    """How many: as told, or all hosts of the fabric; and the rate of their links (b/s)."""
    of = functools.partial(number, base, changes)
    hosts = of("fabric.leaves") * of("fabric.hosts_per_leaf") * max(1, of("fabric.pods"))
    rate_bps = USUAL_BPS
    if value(base, changes, "fabric.shape") == "imported":
        hosts, rate_bps = _imported(str(value(base, changes, "fabric.dumps")))
    return of("nodes.count") or hosts, of("fabric.rate") or rate_bps


@functools.lru_cache(maxsize=1000)
def _imported(dumps: str) -> tuple[float, float]:
    """Hosts, and the mean rate of cables; none where the dumps cannot be read, as their simulation
    will say."""
    from daqloom.topology.errors import TopologyError
    from daqloom.topology.load import load_cabling

    try:
        fabric, _ = load_cabling(shipped_fabrics().get(dumps, Path(dumps)))
    except TopologyError:
        return 0, 0.0
    rates = [cable.rate_bps for cable in fabric.cables]
    return len(fabric.hosts), statistics.fmean(rates or [0.0])
