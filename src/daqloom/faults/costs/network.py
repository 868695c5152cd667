"""Links of a scenario's network, and the units that each host link cuts off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daqloom.base import lazy
from daqloom.faults import FaultsError
from daqloom.faults.statistics.links import Links

with lazy.imports():
    from daqloom.topology.fabric import levels
    from daqloom.topology.schedule import slots
    from daqloom.topology.shapes import shape
    from daqloom.topology.system import scenarios, system

if TYPE_CHECKING:
    from daqloom.scenario.schema.models import Scenario
    from daqloom.topology.fabric.fabric import Cable, Fabric

HOST_LINK = "host link"
CABLED = ("fat-tree", "imported", "cables")
"""Shapes of a network whose cables `faults.cables` breaks."""


@dataclass(frozen=True)
class Network:
    """Kind and share of each link, by its name in `links`."""

    links: Links
    kind: Mapping[str, str]
    """`host link`, or the levels that it connects, `leaf - spine`."""
    share: Mapping[str, float]
    """Share of all units behind a host link: of readout units, which are then missing in every
    event, or of builder units, which then build none, whichever is larger."""

    @property
    def counts(self) -> Counter[str]:
        """Number of links by kind."""
        return Counter(self.kind.values())

    @property
    def between_switches(self) -> int:
        """Number of cables between switches."""
        return len(self.kind) - self.counts[HOST_LINK]


def network_of(scenario: Scenario) -> Network:
    """Return the network of a scenario, with nothing broken. Raises ScenarioError, and FaultsError
    where no cable between switches can fail or no events are built."""
    given = scenario.network
    if given.shape not in CABLED:
        raise FaultsError(
            f'{scenario.name} has network.shape = "{given.shape}", whose cables between switches '
            f"are not simulated as broken; expected one of {', '.join(CABLED)}"
        )
    if scenario.building.protocol == "none":
        raise FaultsError(
            f'{scenario.name} has building.protocol = "none": it builds no events whose rate a '
            "failure could lower; give a scenario that builds events"
        )
    fabric, _ = shape.cables(scenarios.override(scenario, {"faults.cables": 0}))
    links = Links(fabric)
    kind = kinds(fabric, links.cables)
    found = Network(links, kind, _shares(scenario, fabric, links.cables))
    if not found.between_switches:
        raise FaultsError(
            f"{scenario.name} has no cables between switches that could fail; give a scenario "
            "with more than one switch"
        )
    return found


def kinds(fabric: Fabric, cables: Mapping[str, Cable]) -> dict[str, str]:
    """Return the kind of each link."""
    level = levels.node_levels(fabric)
    found = {}
    for name, cable in cables.items():
        low, high = sorted((level[cable.a.node], level[cable.b.node]))
        between = f"{levels.level_name(low)} - {levels.level_name(high)}"
        found[name] = HOST_LINK if low == levels.HOST else between
    return found


def _shares(scenario: Scenario, fabric: Fabric, cables: Mapping[str, Cable]) -> dict[str, float]:
    units = system.unit_slots(scenario, system.node_slots(scenario, fabric))  # readout, builder
    counts = [Counter(slots.hosts_of(places)) for places in units]
    found = {}
    for name, cable in cables.items():
        host = min(cable.a.node, cable.b.node)
        if host < len(fabric.hosts):
            found[name] = max(count[host] / count.total() for count in counts)
    return found
