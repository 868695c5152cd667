"""What a study has to know of the kind of its system: a rack, or any other."""

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from daqloom.results.metrics import Parts
from daqloom.scenario import Scenario
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.scenario.schema.parts import parts_of
from daqloom.simulate.course import COURSES
from daqloom.study.file.axis import number, value_of
from daqloom.study.file.points import RATE, SIZE
from daqloom.study.file.saturation import Saturation
from daqloom.topology.fabric.fabric import Fabric

FABRIC_HOPS_PER_S = 2.5e6
"""Packet hops of event building over InfiniBand that one core simulates per second, see
docs/explanation/infiniband-model.md."""
FABRIC_HOPS_PER_PACKET = 3.0
"""Four links between two leaves, at about three quarters of what a node's link carries."""
HEADER_BYTES = 26
USUAL_BPS = 200e9
"""Rate of HDR links (b/s), where a switch that the study changes decides."""
RACK_HOPS_PER_S = 20e6
"""Packet hops that one core simulates per second, roughly."""
RACK_HOPS_PER_PACKET = 4.5
"""Three links there, and an acknowledgement of every second packet three links back."""


@dataclass(frozen=True)
class Kind:
    """What a study has to know of systems of one kind."""

    versions: Mapping[str, int]
    """Of the models, by method: raised when the same scenario and seed give another result, so that
    cells of before are computed anew."""
    analysis_s: float
    """Time on one core of an analysis, roughly."""
    courses: Sequence[str]
    """Metrics of a simulation whose course over time is recorded."""
    costly: Sequence[str]
    """Keys that decide what a run costs."""
    simulation_s: Callable[[Scenario, Mapping[str, Any]], float]
    """Estimated time on one core of a simulation of a system with changes; builds no scenario."""


def kind_of(base: Scenario) -> Kind:
    """The kind of `base`: pull building over TCP in a rack, or any other."""
    return RACK if Parts.INCAST in parts_of(base) else FABRIC


def operating_point(base: Scenario) -> dict[str, float]:
    """Event rate and size, SI numbers by key, which figures mark; on a fabric none, as these are
    what comes out, not what is given."""
    is_incast = Parts.INCAST in parts_of(base)
    return {RATE: base.event.rate, SIZE: base.event.size} if is_incast else {}


def saturation(base: Scenario) -> Saturation | None:
    """What tells saturated points of `base` with changes by the bound of the event rate. None on a
    fabric, as nodes push as fast as they can, or as the fragments come, and what has no room is
    discarded at once."""
    return Saturation(base) if Parts.INCAST in parts_of(base) else None


def _rack_s(base: Scenario, changes: Mapping[str, Any]) -> float:
    """From the packets of all events."""
    rate_hz, size, sources, duration_s = (number(base, changes, key) for key in RACK.costly)
    uplink = base.network.links.uplink
    carried_hz = uplink.rate * uplink.count / (8 * size)  # at most
    fragment = math.ceil(size / sources / base.mss)  # packets, and one that requests them
    packets_hz = min(rate_hz, carried_hz) * sources * (fragment + 1)
    return packets_hz * RACK_HOPS_PER_PACKET * duration_s / RACK_HOPS_PER_S


def _fabric_s(base: Scenario, changes: Mapping[str, Any]) -> float:
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
    return packets * FABRIC_HOPS_PER_PACKET / FABRIC_HOPS_PER_S


RACK = Kind(
    versions={"analyse": 2, "simulate": 3, "measure": 1},
    analysis_s=2e-3,
    courses=COURSES,
    costly=(RATE, SIZE, "readout.units", "run.duration"),
    simulation_s=_rack_s,
)
FABRIC = Kind(
    versions={"simulate": 3, "analyse": 2, "measure": 1},
    analysis_s=0.1,
    courses=(),
    costly=(
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
    ),
    simulation_s=_fabric_s,
)


def _nodes(base: Scenario, changes: Mapping[str, Any]) -> tuple[float, float]:
    """How many: as told, or all hosts of the fabric; and the rate of their links (b/s)."""
    of = functools.partial(number, base, changes)
    hosts = of("network.leaves") * of("network.hosts_per_leaf") * max(1, of("network.pods"))
    rate_bps = USUAL_BPS
    if value_of(base, changes, "network.shape") == "one-switch":
        hosts = of("network.hosts")
    if value_of(base, changes, "network.shape") == "imported":
        hosts, rate_bps = _imported(str(value_of(base, changes, "network.dumps")))
    if value_of(base, changes, "network.shape") == "cables":
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
    from daqloom.topology import TopologyError
    from daqloom.topology.shapes.shape import cables

    try:
        return _counted(cables(base)[0])
    except TopologyError:
        return 0, 0.0


@functools.lru_cache(maxsize=1000)
def _imported(dumps: str) -> tuple[float, float]:
    """Hosts, and the mean rate of cables; none where the dumps cannot be read, as their simulation
    will say."""
    from daqloom.topology import TopologyError
    from daqloom.topology.formats.load import load_cabling

    try:
        fabric, _ = load_cabling(shipped_fabrics().get(dumps, Path(dumps)))
    except TopologyError:
        return 0, 0.0
    return _counted(fabric)


def _counted(fabric: Fabric) -> tuple[float, float]:
    rates = [cable.rate_bps for cable in fabric.cables]
    return len(fabric.hosts), statistics.fmean(rates or [0.0])
