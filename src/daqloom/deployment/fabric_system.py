"""A scenario as every method (simulation, model, measurement) uses it: cabled and scheduled."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.check import check_groups
from daqloom.scenario.schema.faults import Faults
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.network import Network
from daqloom.scenario.schema.switches import Switch
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.links import LinkName, link_names, switch_levels
from daqloom.topology.fabric.wiring import Wiring, tree_levels, wire
from daqloom.topology.failures.plan import FaultPlan, fault_plan
from daqloom.topology.failures.repair import UNCHANGED, mend
from daqloom.topology.failures.spares import spare_slots
from daqloom.topology.formats.placement_table import units_by_host
from daqloom.topology.routing.by_name import MENDED
from daqloom.topology.routing.minimal import EqualCost, single
from daqloom.topology.routing.routes import Paths, Routes
from daqloom.topology.schedule.slots import (
    DUMMY,
    Slots,
    Units,
    all_hosts,
    by_port,
    by_role,
    fold,
    hosts_of,
    shuffle,
    slots_of,
    unfold,
)
from daqloom.topology.shapes.shape import CabledNetwork, cable_network


@dataclass(frozen=True)
class FabricSystem:
    """System that a scenario describes, with its cables, routes and schedule."""

    network: Network
    """The scenario's table `network`."""
    fabric: Fabric
    routes: Routes
    ways: EqualCost
    """All paths among which switches choose; the paths of `routes` if they have no choice."""
    slots: Slots
    readouts: Slots
    """Host of the readout unit in each slot; `slots` if folded; pull: all readout hosts."""
    builders: Slots
    """Host of the builder unit in each slot; with mended tables, in other slots than `slots`."""
    spares: Slots
    """Spare host in each slot, in place of dummies or after all nodes; empty without spares."""
    storages: list[int]
    """Host of each storage unit."""
    mfp_bytes: list[int]
    """Mean MFP size by readout unit (in slot order) and stream (bytes); empty for pull building."""
    barrier_groups: list[int]
    """Barrier group of each readout unit in linear shift, by slot; empty: one group for all."""
    warnings: list[str]
    """Assumptions made during the import of dumps, as sentences."""
    faults: Faults

    @cached_property
    def fault_plan(self) -> FaultPlan:
        """All outages during a run. Raises ScenarioError for parts that the system lacks."""
        return fault_plan(self.faults, self.fabric, self.hosts)

    @cached_property
    def links(self) -> list[LinkName]:
        """Names of the directed links, in the order of `fabric.cables`."""
        return link_names(self.network, self.fabric)

    @cached_property
    def levels(self) -> list[str]:
        """Level of each switch."""
        return switch_levels(self.network, self.fabric)

    def switch_at(self, number: int) -> Switch:
        """Return the buffers of an Ethernet switch, by its index in `fabric.switches`."""
        switches, name = self.network.switch, self.fabric.switches[number].name
        single = next((each for each in switches.named if each.name == name), None)
        return single or switches.at_level(self.levels[number])

    def with_rings(self, switch: Switch) -> list[int]:
        """Return the hosts with a separate ring in a software switch."""
        builders = hosts_of(self.builders) if switch.rings == "builders" else []
        return builders or list(range(len(self.fabric.hosts)))

    @cached_property
    def barrier_levels(self) -> list[int]:
        """Levels of switches above the barrier group of each readout unit, by slot."""
        readouts, wiring = np.array(hosts_of(self.readouts)), wire(self.fabric)
        groups = np.array(self.barrier_groups or [0] * len(readouts))
        levels = {
            each: tree_levels(wiring, readouts[groups == each]) for each in set(groups.tolist())
        }
        return [levels[each] for each in groups.tolist()]

    @property
    def hosts(self) -> list[int]:
        """Hosts of the nodes, in the order of slots, followed by the spare hosts."""
        return hosts_of(self.slots) + hosts_of(self.spares)

    @property
    def hosts_in_use(self) -> list[int]:
        """`hosts`, followed by those of storage units."""
        return self.hosts + self.storages

    @property
    def nodes(self) -> int:
        """Number of slots that are not dummies."""
        return len(hosts_of(self.slots))


def barrier_groups(group: str | int, readouts: list[int], wiring: Wiring) -> list[int]:
    """Return `FabricSystem.barrier_groups`; `group`: a value of `building.barrier_group`;
    `readouts`: the hosts of the readout units."""
    if group == "all":
        return []
    if group == "leaf":
        leaf: list[int] = wiring.leaf[readouts].tolist()
        return leaf
    return [unit // int(group) for unit in range(len(readouts))]


class ScheduledNetwork(NamedTuple):
    """A network, and the hosts in the slots of a schedule."""

    network: CabledNetwork
    slots: Slots
    readouts: Slots
    builders: Slots


def schedule_network(scenario: Scenario) -> ScheduledNetwork:
    """Return fabric, tables, and slots of nodes and units; raises ScenarioError."""
    network = cable_network(scenario)
    slots = node_slots(scenario, network.fabric)
    if scenario.network.routing != MENDED:
        return ScheduledNetwork(network, slots, *unit_slots(scenario, slots))
    routes, readouts, builders = mend(network.fabric, network.routes, slots)
    unchanged = routes is network.routes and not scenario.faults.injected
    warnings = [*network.warnings, *([UNCHANGED] if unchanged else [])]
    network = network._replace(routes=routes, ways=single(routes), warnings=warnings)
    return ScheduledNetwork(network, readouts, readouts, builders)


def fabric_system(scenario: Scenario) -> FabricSystem:
    """Return the cabled, routed, scheduled system. Raises ScenarioError if parts do not fit."""
    (fabric, routes, ways, notes), slots, readouts, builders = schedule_network(scenario)
    sizes: list[int] = []
    if scenario.protocol.packs:
        sizes = mfp_bytes(scenario, int((slots != DUMMY).sum()))
    groups: list[int] = []
    if scenario.protocol.has_phases:
        groups = barrier_groups(scenario.building.barrier_group, hosts_of(readouts), wire(fabric))
    network, faults = scenario.network, scenario.faults
    spares = spare_slots(scenario, fabric, slots, len(readouts))
    return FabricSystem(
        network,
        fabric,
        routes,
        ways,
        slots,
        readouts,
        builders,
        spares,
        storage_hosts(scenario, fabric, hosts_of(slots) + hosts_of(spares)),
        sizes,
        groups,
        notes,
        faults,
    )


def node_slots(scenario: Scenario, fabric: Fabric) -> Slots:
    """Return the host in each slot. Raises ScenarioError if the network has too few hosts."""
    hosts, dummies = scenario.hosts, scenario.building.dummies
    if scenario.network.is_racks:  # readout units first, then rack after rack
        return slots_of(range(len(fabric.hosts) - scenario.storage.units))
    in_turn = not scenario.protocol.has_schedule
    wiring = wire(fabric)
    hosts_by_port = all_hosts(fabric, wiring)
    if hosts.placement == "table":
        units = units_by_host(scenario, fabric, hosts_by_port)
        return slots_of(host for host, unit in units.items() if unit.role != "spare")
    count = scenario.nodes or len(hosts_by_port)
    if count > len(hosts_by_port):
        raise ScenarioError(
            f"{scenario.name}: {_host_count(scenario)} {count} hosts, and the network has "
            f"{len(hosts_by_port)}; use fewer units, {scenario.network.more_hosts}"
        )
    taken = hosts_by_port[:count]
    if hosts.placement == "spread":  # pull building: readout units evenly, then builder units
        taken = _spread(hosts_by_port, wiring, count, in_turn=in_turn)
    if in_turn:
        slots = taken
    elif dummies == "all-ports":
        slots = np.where(np.isin(hosts_by_port, taken), hosts_by_port, DUMMY).astype(np.int32)
    else:
        slots = by_port(fabric, wiring, taken, dummies=dummies == "used-ports")
    return shuffle(slots, scenario.run.seed) if hosts.order == "shuffled" else slots


def storage_hosts(scenario: Scenario, fabric: Fabric, taken: list[int]) -> list[int]:
    """Return the hosts of storage units: the first by port that are not `taken` by other units.
    Raises ScenarioError if the network has too few hosts."""
    if not (count := scenario.storage.units):
        return []
    cabled = all_hosts(fabric, wire(fabric))
    left: list[int] = cabled[~np.isin(cabled, taken)].tolist()
    if count > len(left):
        raise ScenarioError(
            f"{scenario.name}: storage.units = {count}, and the network has {len(left)} hosts "
            f"without other units; use fewer storage units, {scenario.network.more_hosts}"
        )
    return left[:count]


def unit_slots(scenario: Scenario, slots: Slots) -> tuple[Slots, Slots]:
    """Return the slots of readout units and equally many of builder units, for nodes' slots."""
    if scenario.is_folded:
        return slots, slots
    has_schedule = scenario.protocol.has_schedule
    if scenario.hosts.placement == "table":
        units = [unit for unit in scenario.hosts.in_order if unit.role != "spare"]
        reads, builds = [unit.reads for unit in units], [unit.builds for unit in units]
        if has_schedule:
            return by_role(slots, reads, builds)
        return slots[reads], slots[builds]
    if has_schedule and not scenario.network.is_racks:
        return unfold(slots)
    readouts, builders = np.split(slots, [scenario.readout.units])
    if not has_schedule:
        return readouts, builders
    missing = len(readouts) - len(builders)  # at most one
    return readouts, np.append(builders, np.full(missing, DUMMY, np.int32))


def can_mend(scenario: Scenario) -> bool:
    """Return whether `network.routing = mended` is possible for a scenario."""
    by_rule = scenario.hosts.placement != "table" and not scenario.network.is_racks
    return scenario.protocol.has_phases and scenario.is_folded and by_rule


def units_of(scenario: Scenario, own: ScheduledNetwork) -> Units:
    """Return the function from another order of the same nodes to slots of units. Only linear shift
    has separate slots for builder units."""
    if scenario.is_folded or not scenario.protocol.has_phases:
        return fold
    if scenario.hosts.placement != "table" and not scenario.network.is_racks:
        return unfold
    read, build = (set(hosts_of(slots)) for slots in (own.readouts, own.builders))

    def units_of_order(slots: Slots) -> tuple[Slots, Slots]:
        hosts = hosts_of(slots)
        return by_role(slots_of(hosts), [h in read for h in hosts], [h in build for h in hosts])

    return units_of_order


def _host_count(scenario: Scenario) -> str:
    """Return the beginning of a sentence about the number of hosts."""
    if not scenario.protocol.builds:
        return "hosts.count takes"
    if scenario.is_folded:
        return f"readout.units = {scenario.readout.units} takes"
    units = scenario.all_builders or scenario.readout.units
    return f"readout.units = {scenario.readout.units} and {units} builder units take"


def check_paths(name: str, paths: Paths, sources: ArrayLike, destinations: ArrayLike) -> None:
    """Raise ScenarioError if the tables do not lead from every source to every destination."""
    targets = np.asarray(destinations)
    broken = paths.are_broken(np.asarray(sources)[:, None], targets[None, :])
    if not (lost := int(broken.sum())):
        return
    unreached = set(targets[broken.any(axis=0)].tolist())
    where = next((d.sentence for d in paths.defects if unreached & set(d.destinations)), "")
    raise ScenarioError(
        f"{name}: {lost} {'pairs of nodes have' if lost > 1 else 'pair of nodes has'} no path: "
        f"{where or 'they are not cabled'}; `daqloom topology check` lists all such places"
    )


def _spread(hosts_by_port: Slots, wiring: Wiring, count: int, *, in_turn: bool) -> Slots:
    """Return the first host of each leaf, then the second of each, …; in that order, or by port."""
    leaf = wiring.leaf[hosts_by_port]
    place = np.zeros(len(hosts_by_port), int)
    for each in np.unique(leaf):
        place[leaf == each] = np.arange((leaf == each).sum())
    order = np.lexsort((np.arange(len(hosts_by_port)), place))[:count]
    spread: Slots = hosts_by_port[order if in_turn else np.sort(order)]
    return spread


def mfp_bytes(scenario: Scenario, nodes: int) -> list[int]:
    """Return the mean size (B) of each source's MFP; over sources, it is `event.fragment_size`.
    Raises ScenarioError if the groups do not have as many sources as `nodes` nodes."""
    try:
        check_groups(scenario, nodes)
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    event, sources = scenario.event, scenario.readouts(nodes) * scenario.readout.streams
    mean = event.fragment_size * event.packing
    if not event.groups:
        return [mean] * sources
    shares = sum(group.share for group in event.groups)
    sizes = [round(mean * sources * each.share / shares / each.sources) for each in event.groups]
    return [
        size for each, size in zip(event.groups, sizes, strict=True) for _ in range(each.sources)
    ]
