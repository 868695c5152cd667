"""The network of a scenario: a regular tree, imported dumps, or a list of cables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from daqloom.topology.cable_list import fabric_of_cables
from daqloom.topology.clos import folded_clos
from daqloom.topology.errors import TopologyError
from daqloom.topology.fabric import Fabric, with_rate
from daqloom.topology.load import load_cabling, load_tables
from daqloom.topology.routes import Routes
from daqloom.topology.routing import MINIMAL, routing

if TYPE_CHECKING:
    from daqloom.scenario.models import Scenario
    from daqloom.scenario.network import Network


def cabled(scenario: Scenario) -> tuple[Fabric, Routes, list[str]]:
    """Cables, forwarding tables, and warnings of the import. Raises TopologyError where there are
    none such."""
    given = scenario.network
    fabric, warnings = cables(scenario)
    tables: NDArray[np.int16] | None = None
    if given.shape == "imported":
        tables, more = load_tables(given.folder, fabric)
        warnings = warnings + more
    regular = given.technology == "infiniband" and given.shape != "cables"
    usual = None if regular else MINIMAL
    return fabric, routing(fabric, tables, given.routing or usual), warnings


def cables(scenario: Scenario) -> tuple[Fabric, list[str]]:
    """Hosts, switches and cables, and warnings of the import. Raises TopologyError."""
    given = scenario.network
    if given.shape == "fat-tree":
        return _regular(given), []
    if given.shape == "cables":
        try:
            return fabric_of_cables(given.switches, given.cables, given.links.rate), []
        except TopologyError as error:
            raise TopologyError(f"{scenario.name}: {error}") from None
    fabric, warnings = load_cabling(given.folder, given.links.rate)
    return with_rate(fabric, given.links.rate) if given.links.rate else fabric, warnings


def _regular(given: Network) -> Fabric:
    return folded_clos(
        "fat-tree",
        leaves=given.leaves,
        spines=given.spines,
        hosts_per_leaf=given.hosts_per_leaf,
        links=given.spine_links,
        pods=given.pods or None,
        cores=given.cores or None,
        core_links=given.core_links if given.pods else None,
        radix=given.switch.radix,
        rate_bps=given.links.rate,
    )
