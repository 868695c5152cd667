"""Links of a network that are down at present: conflicts and rate of linear shift with the tables
of a subnet manager, and with a mended schedule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from daqloom.deployment.fabric_system import can_mend, fabric_system
from daqloom.faults import FaultsError
from daqloom.faults.logs.change import Change, LogContent
from daqloom.faults.statistics.links import Links
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.broken_cables import between_switches, remove_cables
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import wire
from daqloom.topology.failures.reroute import Order, reroute, swept
from daqloom.topology.routing.minimal import EqualCost
from daqloom.topology.routing.routes import Routes, trace
from daqloom.topology.schedule.shift_check import check_shift
from daqloom.topology.schedule.slots import DUMMY, hosts_of


@dataclass(frozen=True)
class ScheduleCost:
    """Conflicts of a schedule, and its rate."""

    conflicting_phases: int
    flows_lost: int
    """Number of flows without a path."""
    throughput_bps: float | None
    """Closed-form upper bound with a barrier after each phase (b/s); None if flows are lost."""


@dataclass(frozen=True)
class Outage:
    """Schedules of the present network."""

    usual: ScheduleCost
    """Cost of the usual order with the tables of a subnet manager's sweep."""
    mended: ScheduleCost
    fabric: Fabric
    """The network without the cables that are down."""
    routes: Routes
    """Tables of the mended schedule."""
    readouts: tuple[int, ...]
    """Unit of the run whose readout unit is in each slot of the mended schedule; -1: none."""
    builders: tuple[int, ...]


class PresentLinks:
    """Links of a scenario's network, all up at first. `log` names ends of cables as it is read.
    Raises FaultsError if no schedule of the scenario can be mended."""

    def __init__(self, scenario: Scenario, log: LogContent) -> None:
        if not can_mend(scenario):
            raise FaultsError(
                f"{scenario.name} has no schedule to mend; expected linear shift with folded units "
                "(builders.folded) that are placed by rule on a fat tree or an imported network"
            )
        self._system = system = fabric_system(scenario)
        self._links = Links(system.fabric, log.cables, log.names)
        self._places = {cable: place for place, cable in enumerate(system.fabric.cables)}
        self._between = frozenset(between_switches(system.fabric))
        self._units = {host: unit for unit, host in enumerate(system.hosts)} | {DUMMY: -1}
        self.down: set[str] = set()
        """Names of links that are down, as in `Links`."""
        self.unknown = 0
        """Number of changes of ports that the network does not have."""

    def change(self, changes: Iterable[Change]) -> list[tuple[Change, str]]:
        """Take in changes of ports; return those that change the state of a link, with its name."""
        found = []
        for change in changes:
            link = self._links.name(change.port)
            self.unknown += link is None
            if link is None or change.is_up == (link not in self.down):
                continue
            (self.down.discard if change.is_up else self.down.add)(link)
            found.append((change, link))
        return found

    def outage(self) -> Outage:
        """Return the schedules of the present network. The link of a host does not count: a run
        control takes units that cannot be reached out of the schedule by itself."""
        system = self._system
        places = {self._places[self._links.cables[link]] for link in self.down}
        broken = frozenset(places & self._between)
        fabric = remove_cables(system.fabric, broken)
        own = Order(system.readouts, system.builders)
        ways, order = system.ways, own
        usual: EqualCost = system.ways
        if broken:
            usual = swept(system.network, system.fabric, broken)
            ways, order = reroute(system.network, system.fabric, broken, system.readouts)
        readouts, builders = (
            tuple(self._units[host] for host in slots.tolist()) for slots in order
        )
        routes = ways.first(fabric)
        return Outage(
            _cost(fabric, usual.first(fabric), own),
            _cost(fabric, routes, order),
            fabric,
            routes,
            readouts,
            builders,
        )


def _cost(fabric: Fabric, routes: Routes, order: Order) -> ScheduleCost:
    found = check_shift(trace(fabric, routes), order.readouts, builders=order.builders)
    hosts, wiring = hosts_of(order.builders), wire(fabric)
    rate_bps = int(wiring.rate_bps[wiring.uplink[hosts]].min())
    bound_bps = len(hosts) ** 2 * rate_bps / max(1, found.round_time)
    return ScheduleCost(found.conflicting, found.lost, None if found.lost else bound_bps)
