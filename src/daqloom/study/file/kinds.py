"""Properties of the two kinds of systems in studies: racks, and all others ("fabrics")."""

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
from daqloom.scenario.schema.parts import Parts
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
"""Packet hops over InfiniBand that one core simulates per second; see
docs/explanation/infiniband-model.md."""
FABRIC_HOPS_PER_PACKET = 3.0
"""Packet hops per packet: four links between two leaves, at about three quarters of full rate."""
HEADER_BYTES = 26
USUAL_BPS = 200e9
"""Rate of HDR links (b/s), assumed if the scenario gives none."""
RACK_HOPS_PER_S = 20e6
"""Packet hops in a rack that one core simulates per second, roughly."""
RACK_HOPS_PER_PACKET = 4.5
"""Packet hops per packet: three links, and three back for an acknowledgement of two packets."""


@dataclass(frozen=True)
class Kind:
    """Properties of the systems of one kind."""

    versions: Mapping[str, int]
    """Version of the model for each method. A change of results for the same scenario and seed
    needs a new version, with which stored cells are recomputed."""
    analysis_s: float
    """Approximate CPU time of one analysis (s)."""
    courses: Sequence[str]
    """Metrics that simulations record over time."""
    costly: Sequence[str]
    """Keys that determine the CPU time of a simulation."""
    simulation_s: Callable[[Scenario, Mapping[str, Any]], float]
    """Function that estimates the CPU time of simulating `base` with changes, without building
    it."""


def kind_of(base: Scenario) -> Kind:
    """Return the kind of `base`: pull building over TCP in a rack, or any other."""
    return RACK if Parts.INCAST in base.parts else FABRIC


def operating_point(base: Scenario) -> dict[str, float]:
    """Return event rate and size as SI numbers by key, to be marked in figures. On a fabric they
    are results and not inputs, so none are returned."""
    is_incast = Parts.INCAST in base.parts
    return {RATE: base.event.rate, SIZE: base.event.size} if is_incast else {}


def saturation(base: Scenario) -> Saturation | None:
    """Return the object that determines saturated points of `base` with changes. None on a fabric,
    where nodes send at their full rate or at the rate of fragments, and discard the excess."""
    return Saturation(base) if Parts.INCAST in base.parts else None


def _rack_s(base: Scenario, changes: Mapping[str, Any]) -> float:
    """Return the estimated CPU time (s) of a rack's simulation, from the packets of all events."""
    rate_hz, size, sources, duration_s = (number(base, changes, key) for key in RACK.costly)
    uplink = base.network.links.uplink
    carried_hz = uplink.rate * uplink.count / (8 * size)  # at most
    fragment = math.ceil(size / sources / base.mss)  # data packets; a request is added below
    packets_hz = min(rate_hz, carried_hz) * sources * (fragment + 1)
    return packets_hz * RACK_HOPS_PER_PACKET * duration_s / RACK_HOPS_PER_S


def _fabric_s(base: Scenario, changes: Mapping[str, Any]) -> float:
    """Return the estimated CPU time (s) of a fabric's simulation. The packets are limited by the
    nodes' links or by the rate of fragments."""
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
    """Return the number of nodes, which defaults to all hosts of the fabric, and their link rate
    (b/s)."""
    key = functools.partial(number, base, changes)
    shape, rate_bps = value_of(base, changes, "network.shape"), USUAL_BPS
    hosts = key("network.leaves") * key("network.hosts_per_leaf") * max(1, key("network.pods"))
    if shape == "one-switch":
        hosts = key("network.hosts")
    if shape == "imported":
        hosts, rate_bps = _dump_size(str(value_of(base, changes, "network.dumps")))
    if shape == "cables":
        hosts, rate_bps = _list_size(base)
    return _units(base, changes) or hosts, key("network.links.rate") or rate_bps


def _units(base: Scenario, changes: Mapping[str, Any]) -> int:
    """Return the number of hosts with units that the scenario sets; 0 for all hosts."""

    def change(table: str) -> BaseModel:
        keys = [key for key in changes if key.startswith(f"{table}.")]
        values = {key.removeprefix(f"{table}."): changes[key] for key in keys}
        kept: BaseModel = getattr(base, table)
        return kept.model_copy(update=values)

    tables = ("building", "readout", "builders", "hosts")
    return base.model_copy(update={table: change(table) for table in tables}).nodes


def _list_size(base: Scenario) -> tuple[float, float]:
    """Return the number of hosts, and the mean rate (b/s), of a scenario's list of cables."""
    try:
        return _fabric_size(shape.cables(base)[0])
    except TopologyError:
        return 0, 0.0


@functools.lru_cache(maxsize=1000)
def _dump_size(dumps: str) -> tuple[float, float]:
    """Return the number of hosts, and the mean rate (b/s) of cables, of topology dumps. Both are 0
    if the dumps cannot be read; the simulation then reports the error."""
    try:
        fabric, _ = load.load_cabling(shipped_fabrics().get(dumps, Path(dumps)))
    except TopologyError:
        return 0, 0.0
    return _fabric_size(fabric)


def _fabric_size(fabric: Fabric) -> tuple[float, float]:
    rates = [cable.rate_bps for cable in fabric.cables]
    return len(fabric.hosts), statistics.fmean(rates or [0.0])
