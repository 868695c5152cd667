"""What a scenario says, as every method takes it: cabled, routed and scheduled."""

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from daqloom.scenario.check import check_groups
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.hosts import UnitPlace
from daqloom.scenario.models import Scenario
from daqloom.scenario.network import Network
from daqloom.topology.cabled import Cabled, cabled
from daqloom.topology.fabric import Fabric
from daqloom.topology.links import LinkName, link_names, switch_levels
from daqloom.topology.mended import mend
from daqloom.topology.minimal import EqualCost, single
from daqloom.topology.routes import Paths, Routes
from daqloom.topology.routing import MENDED
from daqloom.topology.schedule import (
    DUMMY,
    Slots,
    by_port,
    by_role,
    hosts_of,
    shuffled,
    slots_of,
    unfolded,
)
from daqloom.topology.wiring import NONE, Wiring, wire
from daqloom.words import did_you_mean


@dataclass(frozen=True)
class FabricSystem:
    """The system that a scenario describes: cabled, routed and scheduled."""

    network: Network
    """What the scenario says of it."""
    fabric: Fabric
    routes: Routes
    ways: EqualCost
    """All ways of which switches choose; where there is one, that of `routes`."""
    slots: Slots
    readouts: Slots
    """Host of the readout unit in each slot of the schedule; folded, `slots`. Pull building has no
    schedule: the hosts of its readout units."""
    builders: Slots
    """Host of the builder unit in each slot; as many as `readouts`, but of pull building. Folded,
    `slots`, unless tables are mended."""
    mfp_bytes: list[int]
    """Mean size of an MFP by readout unit, in the order of the slots, and stream; empty of pull
    building."""
    barrier_groups: list[int]
    """Of linear shifting, the number of the group of each readout unit, in the order of the slots:
    a barrier keeps a group in step; empty: all are one group."""
    warnings: list[str]
    """Assumptions that the import of dumps had to make, as sentences."""

    @cached_property
    def links(self) -> list[LinkName]:
        """Names of the directed links, in the order of cables."""
        return link_names(self.network, self.fabric)

    @cached_property
    def levels(self) -> list[str]:
        """Level of each switch."""
        return switch_levels(self.network, self.fabric)

    @property
    def hosts(self) -> list[int]:
        """Hosts of the nodes, in the order of the slots."""
        return hosts_of(self.slots)

    @property
    def nodes(self) -> int:
        """Slots that are no dummies."""
        return len(self.hosts)


def barrier_groups(group: str | int, readouts: list[int], wiring: Wiring) -> list[int]:
    """See `FabricSystem.barrier_groups`; `group` is a value of `building.barrier_group`, and
    `readouts` are the hosts of the readout units."""
    if group == "all":
        return []
    if group == "leaf":
        leaf: list[int] = wiring.leaf[readouts].tolist()
        return leaf
    return [unit // int(group) for unit in range(len(readouts))]


class Scheduled(NamedTuple):
    """A network, and the host in each slot of a schedule."""

    network: Cabled
    slots: Slots
    readouts: Slots
    builders: Slots


def scheduled(scenario: Scenario) -> Scheduled:
    """Cables, tables, and the slots of nodes, readout units and builder units. Raises ScenarioError
    where they do not fit together."""
    network = cabled(scenario)
    slots = node_slots(scenario, network.fabric)
    if scenario.network.routing != MENDED:
        return Scheduled(network, slots, *unit_slots(scenario, slots))
    routes, readouts, builders = mend(network.fabric, network.routes, slots)
    network = network._replace(routes=routes, ways=single(routes))
    return Scheduled(network, readouts, readouts, builders)


def fabric_system(scenario: Scenario) -> FabricSystem:
    """Cables, routes, schedule. Raises ScenarioError where they do not fit together."""
    (fabric, routes, ways, warnings), slots, readouts, builders = scheduled(scenario)
    sizes: list[int] = []
    if scenario.building.protocol != "pull":
        sizes = mfp_bytes(scenario, int((slots != DUMMY).sum()))
    groups: list[int] = []
    if scenario.building.protocol == "shift":
        groups = barrier_groups(scenario.building.barrier_group, hosts_of(readouts), wire(fabric))
    given = scenario.network
    return FabricSystem(
        given, fabric, routes, ways, slots, readouts, builders, sizes, groups, warnings
    )


def node_slots(scenario: Scenario, fabric: Fabric) -> Slots:
    """Which host has which slot. Raises ScenarioError where there are too few hosts."""
    hosts, dummies = scenario.hosts, scenario.building.dummies
    if scenario.network.is_racks:  # readout units first, then rack after rack
        return slots_of(range(len(fabric.hosts)))
    pulls = scenario.building.protocol == "pull"
    wiring = wire(fabric)
    everyone = by_port(fabric, wiring, slots_of(np.flatnonzero(wiring.leaf != NONE)), dummies=False)
    if hosts.placement == "table":
        return _as_told(scenario, fabric, everyone)
    count = scenario.nodes or len(everyone)
    if count > len(everyone):
        raise ScenarioError(
            f"{scenario.name}: {_counted(scenario)} {count} hosts, and the network has "
            f"{len(everyone)}; use "
            "fewer units, more leaves or more hosts_per_leaf"
        )
    taken = everyone[:count]
    if hosts.placement == "spread":  # pull building: readout units evenly, then builder units
        taken = _spread(everyone, wiring, count, in_turn=pulls)
    if pulls:
        slots = taken
    elif dummies == "all-ports":
        slots = np.where(np.isin(everyone, taken), everyone, DUMMY).astype(np.int32)
    else:
        slots = by_port(fabric, wiring, taken, dummies=dummies == "used-ports")
    return shuffled(slots, scenario.run.seed) if hosts.order == "shuffled" else slots


def unit_slots(scenario: Scenario, slots: Slots) -> tuple[Slots, Slots]:
    """Of the nodes' slots, those of readout units and those of builder units, as many."""
    if scenario.folded:
        return slots, slots
    pulls = scenario.building.protocol == "pull"
    if scenario.hosts.placement == "table":
        units = _in_order(scenario)
        reads, builds = [unit.reads for unit in units], [unit.builds for unit in units]
        return (slots[reads], slots[builds]) if pulls else by_role(slots, reads, builds)
    if not pulls and not scenario.network.is_racks:
        return unfolded(slots)
    readouts, builders = np.split(slots, [scenario.readout.units])
    if pulls:
        return readouts, builders
    missing = len(readouts) - len(builders)  # at most one
    return readouts, np.append(builders, np.full(missing, DUMMY, np.int32))


def _in_order(scenario: Scenario) -> list[UnitPlace]:
    return sorted(scenario.hosts.units, key=attrgetter("unit"))


def _as_told(scenario: Scenario, fabric: Fabric, everyone: Slots) -> Slots:
    """The hosts of the units in `hosts.units`. Raises ScenarioError for one that is not there."""
    known = {fabric.hosts[host].name: host for host in everyone.tolist()}
    units: dict[int, int] = {}
    for unit in _in_order(scenario):
        host = _found(scenario, unit, known, everyone)
        if (other := units.setdefault(host, unit.unit)) != unit.unit:
            raise ScenarioError(
                f"{scenario.name}: hosts.units has units {other} and {unit.unit} on "
                f'{fabric.hosts[host].name}; give one unit of role = "both", or another host'
            )
    return slots_of(units)


def _found(scenario: Scenario, unit: UnitPlace, known: dict[str, int], everyone: Slots) -> int:
    where = f"{scenario.name}: unit {unit.unit} of hosts.units is on {str(unit)[:80]}"
    if isinstance(unit.host, int) and not unit.adapter:
        if unit.host < len(everyone):
            return int(everyone[unit.host])
        raise ScenarioError(
            f"{where}, and the network has {len(everyone)} hosts; expected 0 to {len(everyone) - 1}"
        )
    if (host := known.get(str(unit))) is not None:
        return host
    adapters = [name for name in known if name.startswith(f"{unit.host} ")]
    if adapters and (unit.adapter or len(adapters) > 1):
        own = ", ".join(sorted(name.removeprefix(f"{unit.host} ") for name in adapters)[:4])
        raise ScenarioError(f"{where}, whose adapters are {own}; give one of them as adapter")
    if not adapters:
        hint = did_you_mean(str(unit.host), known, "give the name of a host of the network")
        raise ScenarioError(f"{where}, which is not in the network; {hint}")
    return known[adapters[0]]


def _counted(scenario: Scenario) -> str:
    """Return the beginning of a sentence on the number of hosts."""
    if scenario.building.protocol == "none":
        return "hosts.count takes"
    if scenario.folded:
        return f"readout.units = {scenario.readout.units} takes"
    units = scenario.all_builders or scenario.readout.units
    return f"readout.units = {scenario.readout.units} and {units} builder units take"


def check_paths(name: str, paths: Paths, sources: ArrayLike, destinations: ArrayLike) -> None:
    """Raises ScenarioError where the tables do not lead from every source to every destination."""
    targets = np.asarray(destinations)
    broken = paths.broken(np.asarray(sources)[:, None], targets[None, :])
    if not (lost := int(broken.sum())):
        return
    unreached = set(targets[broken.any(axis=0)].tolist())
    where = next((d.sentence for d in paths.defects if unreached & set(d.destinations)), "")
    raise ScenarioError(
        f"{name}: {lost} {'pairs of nodes have' if lost > 1 else 'pair of nodes has'} no path: "
        f"{where or 'they are not cabled'}; `daqloom topology check` lists all such places"
    )


def _spread(everyone: Slots, wiring: Wiring, count: int, *, in_turn: bool) -> Slots:
    """The first host of each leaf, the second of each, …; in that order, or by port."""
    leaf = wiring.leaf[everyone]
    place = np.zeros(len(everyone), int)
    for each in np.unique(leaf):
        place[leaf == each] = np.arange((leaf == each).sum())
    order = np.lexsort((np.arange(len(everyone)), place))[:count]
    spread: Slots = everyone[order if in_turn else np.sort(order)]
    return spread


def mfp_bytes(scenario: Scenario, nodes: int) -> list[int]:
    """Mean size (B) of each source's MFP; over all, the mean is that of `event.fragment_size`.
    Raises ScenarioError where the groups have other sources than so many nodes."""
    try:
        check_groups(scenario, nodes)
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    event, sources = scenario.event, scenario.readouts(nodes) * scenario.readout.streams
    mean = event.fragment_size * event.packing
    if not event.groups:
        return [mean] * sources
    shares = sum(group.share for group in event.groups)
    return [
        round(mean * sources * group.share / shares / group.sources)
        for group in event.groups
        for _ in range(group.sources)
    ]
