"""Properties of the two kinds of system that a study has: a rack, or any other."""

import functools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from daqloom.base import lazy
from daqloom.scenario import Scenario
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.scenario.schema.parts import Parts, parts_of
from daqloom.simulate.slices import SLICE_METRICS
from daqloom.study.file.axis import number, value_of
from daqloom.study.file.points import RATE, SIZE
from daqloom.study.file.saturation import Saturation
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric

with lazy.imports():
    from daqloom.topology.formats import load
    from daqloom.topology.shapes import shape

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
    """Properties of the systems of one kind."""

    versions: Mapping[str, int]
    """Versions of the models, by method; a new one, for other results of the same scenario and
    seed, makes cells be computed anew."""
    analysis_s: float
    """Time on one core of an analysis, roughly (s)."""
    courses: Sequence[str]
    """Metrics of a simulation whose course over time is recorded."""
    costly: Sequence[str]
    """Keys that decide the cost of a run."""
    simulation_s: Callable[[Scenario, Mapping[str, Any]], float]
    """Estimated time on one core of a simulation of a system with changes; builds no scenario."""


def kind_of(base: Scenario) -> Kind:
    """Return the kind of `base`: pull building over TCP in a rack, or any other."""
    return RACK if Parts.INCAST in parts_of(base) else FABRIC


def operating_point(base: Scenario) -> dict[str, float]:
    """Return event rate and size, SI numbers by key, which figures mark; none on a fabric, where
    they are results, not inputs."""
    is_incast = Parts.INCAST in parts_of(base)
    return {RATE: base.event.rate, SIZE: base.event.size} if is_incast else {}


def saturation(base: Scenario) -> Saturation | None:
    """Return the saturation of `base` with changes, by the bound of the event rate. None on a
    fabric: nodes push at their full rate or at that of the fragments, and discard the excess."""
    return Saturation(base) if Parts.INCAST in parts_of(base) else None


def _rack_s(base: Scenario, changes: Mapping[str, Any]) -> float:
    """Estimate a simulation from the packets of all events (s)."""
    rate_hz, size, sources, duration_s = (number(base, changes, key) for key in RACK.costly)
    uplink = base.network.links.uplink
    carried_hz = uplink.rate * uplink.count / (8 * size)  # at most
    fragment = math.ceil(size / sources / base.mss)  # packets, and one that requests them
    packets_hz = min(rate_hz, carried_hz) * sources * (fragment + 1)
    return packets_hz * RACK_HOPS_PER_PACKET * duration_s / RACK_HOPS_PER_S


def _fabric_s(base: Scenario, changes: Mapping[str, Any]) -> float:
    """Estimate a simulation from the packets that nodes' links carry or fragments need (s)."""
    key = functools.partial(number, base, changes)
    message = key("event.fragment_size") * key("event.packing")
    payload = message / math.ceil(message / key("transport.mtu"))
    nodes, rate_bps = _nodes(base, changes)
    node_hz = rate_bps / (8 * (payload + HEADER_BYTES))
    if key("event.rate"):
        pushed_bytes = key("event.fragment_size") * key("readout.streams")
        node_hz = min(node_hz, key("event.rate") * pushed_bytes / payload)
    packets = nodes * node_hz * key("run.duration")
    return packets * FABRIC_HOPS_PER_PACKET / FABRIC_HOPS_PER_S


RACK = Kind(
    versions={"analyse": 2, "simulate": 3, "measure": 1},
    analysis_s=2e-3,
    courses=SLICE_METRICS,
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
    """Return the number of nodes, by the scenario or all hosts of the fabric, and the rate of their
    links (b/s)."""
    key = functools.partial(number, base, changes)
    shape, rate_bps = value_of(base, changes, "network.shape"), USUAL_BPS
    hosts = key("network.leaves") * key("network.hosts_per_leaf") * max(1, key("network.pods"))
    if shape == "one-switch":
        hosts = key("network.hosts")
    if shape == "imported":
        hosts, rate_bps = _imported(str(value_of(base, changes, "network.dumps")))
    if shape == "cables":
        hosts, rate_bps = _listed(base)
    return _units(base, changes) or hosts, key("network.links.rate") or rate_bps


def _units(base: Scenario, changes: Mapping[str, Any]) -> int:
    """Return the number of hosts with units by the scenario; 0 for all."""

    def changed(table: str) -> BaseModel:
        keys = [key for key in changes if key.startswith(f"{table}.")]
        values = {key.removeprefix(f"{table}."): changes[key] for key in keys}
        kept: BaseModel = getattr(base, table)
        return kept.model_copy(update=values)

    tables = ("building", "readout", "builders", "hosts")
    return base.model_copy(update={table: changed(table) for table in tables}).nodes


def _listed(base: Scenario) -> tuple[float, float]:
    """Return hosts and mean rate of a list of cables, as `_imported`."""
    try:
        return _counted(shape.cables(base)[0])
    except TopologyError:
        return 0, 0.0


@functools.lru_cache(maxsize=1000)
def _imported(dumps: str) -> tuple[float, float]:
    """Return hosts, and the mean rate of cables; 0 where the dumps cannot be read, which their
    simulation reports."""
    try:
        fabric, _ = load.load_cabling(shipped_fabrics().get(dumps, Path(dumps)))
    except TopologyError:
        return 0, 0.0
    return _counted(fabric)


def _counted(fabric: Fabric) -> tuple[float, float]:
    rates = [cable.rate_bps for cable in fabric.cables]
    return len(fabric.hosts), statistics.fmean(rates or [0.0])
