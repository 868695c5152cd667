"""Links of a scenario's network, and the units that each host link cuts off when it is down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from daqloom.deployment.fabric_system import node_slots, unit_slots
from daqloom.deployment.scenarios import override
from daqloom.faults import FaultsError
from daqloom.faults.statistics.links import Links
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.fabric import Cable, Fabric
from daqloom.topology.fabric.levels import HOST, level_name, node_levels
from daqloom.topology.schedule.slots import hosts_of
from daqloom.topology.shapes.shape import cables

HOST_LINK = "host link"
CABLED = ("fat-tree", "imported", "cables")
"""Values of `network.shape` for which `faults.cables` can break cables."""


@dataclass(frozen=True)
class Network:
    """Kind and share of units for each link of a network, by its name in `links`."""

    links: Links
    kind: Mapping[str, str]
    """Kind of each link: `host link`, or the levels that it connects, such as `leaf - spine`."""
    share: Mapping[str, float]
    """Share of all units behind a host link, as the larger of two: readout units, which are then
    missing in every event, and builder units, which then build no events."""

    @property
    def counts(self) -> Counter[str]:
        """Number of links by kind."""
        return Counter(self.kind.values())

    @property
    def between_switches(self) -> int:
        """Number of cables between switches."""
        return len(self.kind) - self.counts[HOST_LINK]


def network_of(scenario: Scenario) -> Network:
    """Return the network of a scenario without broken cables. Raises ScenarioError, and FaultsError
    if no cable between switches can fail or no events are built."""
    given = scenario.network
    if given.shape not in CABLED:
        raise FaultsError(
            f'{scenario.name} has network.shape = "{given.shape}", whose cables between switches '
            f"are not simulated as broken; expected one of {', '.join(CABLED)}"
        )
    if not scenario.protocol.builds:
        raise FaultsError(
            f'{scenario.name} has building.protocol = "none": it builds no events whose rate a '
            "failure could lower; give a scenario that builds events"
        )
    fabric, _ = cables(override(scenario, {"faults.cables": 0}))
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
    """Return the kind of each link: host link, or the names of two levels."""
    level = node_levels(fabric)
    found = {}
    for name, cable in cables.items():
        low, high = sorted((level[cable.a.node], level[cable.b.node]))
        found[name] = HOST_LINK if low == HOST else f"{level_name(low)} - {level_name(high)}"
    return found


def _shares(scenario: Scenario, fabric: Fabric, cables: Mapping[str, Cable]) -> dict[str, float]:
    units = unit_slots(scenario, node_slots(scenario, fabric))  # readout, builder
    counts = [Counter(hosts_of(slots)) for slots in units]
    found = {}
    for name, cable in cables.items():
        host = min(cable.a.node, cable.b.node)
        if host < len(fabric.hosts):
            found[name] = max(count[host] / count.total() for count in counts)
    return found
