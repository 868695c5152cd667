"""Network of a scenario: racks, a regular tree, imported dumps, or a list of cables."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.network import Network
from daqloom.topology import TopologyError
from daqloom.topology.fabric.broken_cables import with_broken
from daqloom.topology.fabric.fabric import MOST_PORTS, Fabric, with_rate
from daqloom.topology.fabric.links import with_rates
from daqloom.topology.formats.load import load_cabling, load_tables
from daqloom.topology.routing.by_name import IMPORTED, MENDED, MINIMAL, routing
from daqloom.topology.routing.minimal import EqualCost, equal_cost, single
from daqloom.topology.routing.routes import Routes
from daqloom.topology.shapes.cable_list import fabric_of_cables
from daqloom.topology.shapes.clos import folded_clos
from daqloom.topology.shapes.racks import racks


class CabledNetwork(NamedTuple):
    """A network, cabled and routed."""

    fabric: Fabric
    routes: Routes
    """One path to each host, the first if there are several."""
    ways: EqualCost
    warnings: list[str]
    """Assumptions made during the import of dumps, as sentences."""


def cable_network(scenario: Scenario) -> CabledNetwork:
    """Return fabric, forwarding tables and import warnings; for mended tables, the tables from
    which they are made. Raises TopologyError if the network cannot have these tables."""
    network = scenario.network
    fabric, warnings = cables(scenario)
    broken = scenario.faults.cables
    if network.spreads:
        ways = equal_cost(fabric)
        return CabledNetwork(fabric, ways.first(fabric), ways, warnings)
    tables: NDArray[np.int16] | None = None
    if network.shape == "imported" and not broken:
        read: dict[str, Mapping[str, int]] = {}
        tables, more = load_tables(network.folder, fabric, read)
        fabric, warnings = replace(fabric, lines={**fabric.lines, **read}), warnings + more
    routes = routing(fabric, tables, tables_of(network, is_broken=broken > 0))
    return CabledNetwork(fabric, routes, single(routes), warnings)


def tables_of(network: Network, *, is_broken: bool) -> str | None:
    """Return the name of the tables of a network, or of one with broken cables; for mended tables,
    of the tables from which they are made. None: the default ones."""
    usual = MINIMAL if network.shape in ("cables", "one-switch") or is_broken else None
    if network.routing == MENDED or (is_broken and network.routing == IMPORTED):
        return usual
    return network.routing or usual


def cables(scenario: Scenario) -> tuple[Fabric, list[str]]:
    """Return hosts, switches and cables, and warnings of the import. Raises TopologyError."""
    network = scenario.network
    if network.is_racks:
        return _racks(scenario), []
    try:
        fabric, warnings = _cables(scenario)
        fabric = with_rates(network, fabric)
        faults = scenario.faults
        return with_broken(fabric, faults.cables, faults.seed), warnings
    except TopologyError as error:
        if network.shape == "imported":
            raise
        raise TopologyError(f"{scenario.name}: {error}") from None


def _cables(scenario: Scenario) -> tuple[Fabric, list[str]]:
    network = scenario.network
    if network.shape == "one-switch":
        hosts = network.hosts or _hosts(scenario)
        if hosts > MOST_PORTS:
            refusal = f"one switch has at most {MOST_PORTS} ports, and the units take {hosts} hosts"
            raise TopologyError(f'{refusal}; take network.shape = "fat-tree"')
        sizes = {"leaves": 1, "spines": 0, "hosts_per_leaf": hosts}
        return folded_clos(network.shape, **sizes, rate_bps=network.links.rate), []
    if network.shape == "fat-tree":
        return _regular(network), []
    if network.shape == "cables":
        return fabric_of_cables(network.switches, network.cables, network.links.rate), []
    fabric, warnings = load_cabling(network.folder, network.links.rate)
    return with_rate(fabric, network.links.rate) if network.links.rate else fabric, warnings


def _hosts(scenario: Scenario) -> int:
    """Return the number of hosts with units, including spares."""
    hosts = scenario.hosts
    others = len(hosts.units) if hosts.placement == "table" else scenario.nodes + hosts.spares
    return others + scenario.storage.units


def _racks(scenario: Scenario) -> Fabric:
    links = scenario.network.links
    return racks(
        readouts=scenario.hosts_at_core,
        builders=scenario.hosts_in_rack,
        storages=scenario.storage.units,
        racks=scenario.racks,
        routers=scenario.routers,
        uplinks=links.uplink.count,
        readout_bps=links.source.rate,
        storage_bps=links.storage.rate,
        uplink_bps=links.uplink.rate,
        access_bps=links.access.rate,
    )


def _regular(network: Network) -> Fabric:
    return folded_clos(
        "fat-tree",
        leaves=network.leaves,
        spines=network.spines,
        hosts_per_leaf=network.hosts_per_leaf,
        links=network.spine_links,
        pods=network.pods or None,
        cores=network.cores or None,
        core_links=network.core_links if network.pods else None,
        radix=network.switch.radix,
        rate_bps=network.links.rate,
    )
