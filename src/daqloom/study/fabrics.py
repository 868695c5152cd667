"""What a study has to know of InfiniBand fabrics."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom.scenario import Scenario
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.study.changes import number, value

if TYPE_CHECKING:
    from pydantic import BaseModel

    from daqloom.topology.fabric import Fabric

HOPS_PER_S = 2.5e6
"""Packet hops of event building that one core simulates per second, see
docs/explanation/infiniband-model.md."""
HOPS_PER_PACKET = 3.0
"""Four links between two leaves, at about three quarters of what a node's link carries."""
HEADER_BYTES = 26
USUAL_BPS = 200e9
"""Rate of HDR links (b/s), where a switch that the study changes decides."""


class Fabrics:
    """See `daqloom.study.kinds.Traits`."""

    versions: Mapping[str, int] = {"simulate": 3, "analyse": 2, "measure": 1}
    analysis_s = 0.1
    courses: Sequence[str] = ()
    costly: Sequence[str] = (
        "readout.units",
        "builders.units",
        "hosts.count",
        "network.leaves",
        "network.hosts_per_leaf",
        "network.links.rate",
        "transport.mtu",
        "event.fragment_size",
        "event.packing",
        "event.rate",
        "run.duration",
    )

    def operating_point(self, base: Scenario) -> dict[str, float]:
        """None: event rate and size are what comes out, not what is given."""
        return {}

    def saturation(self, base: Scenario) -> Never:
        """Never: nodes push as fast as they can, or as the fragments come, and what has no room is
        discarded at once."""
        return Never()

    def simulation_s(self, base: Scenario, changes: Mapping[str, Any]) -> float:
        """From the packets that the nodes' links carry, or those that fragments come in."""
        of = functools.partial(number, base, changes)
        message = of("event.fragment_size") * of("event.packing")
        payload = message / math.ceil(message / of("transport.mtu"))
        nodes, rate_bps = _nodes(base, changes)
        node_hz = rate_bps / (8 * (payload + HEADER_BYTES))
        if of("event.rate"):
            pushed_bytes = of("event.fragment_size") * of("readout.streams")
            node_hz = min(node_hz, of("event.rate") * pushed_bytes / payload)
        packets = nodes * node_hz * of("run.duration")
        return packets * HOPS_PER_PACKET / HOPS_PER_S


class Never:
    """A system that is at no point offered more than it carries."""

    def excess_hz(self, changes: Mapping[str, Any]) -> float:
        """Return minus infinity: no point of a fabric is taken to be saturated."""
        return -math.inf

    def bounded(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changes as they are."""
        return dict(changes)


def _nodes(base: Scenario, changes: Mapping[str, Any]) -> tuple[float, float]:
    """How many: as told, or all hosts of the fabric; and the rate of their links (b/s)."""
    of = functools.partial(number, base, changes)
    hosts = of("network.leaves") * of("network.hosts_per_leaf") * max(1, of("network.pods"))
    rate_bps = USUAL_BPS
    if value(base, changes, "network.shape") == "imported":
        hosts, rate_bps = _imported(str(value(base, changes, "network.dumps")))
    if value(base, changes, "network.shape") == "cables":
        hosts, rate_bps = _listed(base)
    return _units(base, changes) or hosts, of("network.links.rate") or rate_bps


def _units(base: Scenario, changes: Mapping[str, Any]) -> int:
    """How many hosts have units, as told; 0: all."""

    def changed(table: str) -> BaseModel:
        keys = [key for key in changes if key.startswith(f"{table}.")]
        values = {key.removeprefix(f"{table}."): changes[key] for key in keys}
        kept: BaseModel = getattr(base, table)
        return kept.model_copy(update=values)

    tables = ("building", "readout", "builders", "hosts")
    return base.model_copy(update={table: changed(table) for table in tables}).nodes


def _listed(base: Scenario) -> tuple[float, float]:
    """Hosts and mean rate of a list of cables, as `_imported`."""
    from daqloom.topology.cabled import cables
    from daqloom.topology.errors import TopologyError

    try:
        return _counted(cables(base)[0])
    except TopologyError:
        return 0, 0.0


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
    return _counted(fabric)


def _counted(fabric: Fabric) -> tuple[float, float]:
    rates = [cable.rate_bps for cable in fabric.cables]
    return len(fabric.hosts), statistics.fmean(rates or [0.0])
