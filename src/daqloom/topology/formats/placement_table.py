"""Reader of `hosts.units`, the table of units and their hosts."""

from collections.abc import Container

from daqloom.base.words import did_you_mean
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.hosts import UnitPlace
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.schedule.slots import Slots


def units_by_host(scenario: Scenario, fabric: Fabric, hosts: Slots) -> dict[int, UnitPlace]:
    """Return the units of `hosts.units` by host, in the order of unit numbers; `hosts`: all hosts
    by port. Raises ScenarioError for a host that the network does not have."""
    known = {fabric.hosts[host].name: host for host in hosts.tolist()}
    table, units = scenario.hosts.in_order, dict[int, UnitPlace]()
    if lists_machines(scenario, known):
        if len(table) > len(hosts):
            raise ScenarioError(
                f"{scenario.name}: hosts.units has {len(table)} units, and the network has "
                f"{len(hosts)} hosts; use fewer units, {scenario.network.more_hosts}"
            )
        return dict(zip(hosts.tolist(), table, strict=False))
    for unit in table:
        host = _slot(scenario, unit, known, hosts)
        if (other := units.setdefault(host, unit)) != unit:
            raise ScenarioError(
                f"{scenario.name}: hosts.units has units {other.unit} and {unit.unit} on "
                f'{fabric.hosts[host].name}; give one unit of role = "both", or another host or '
                "adapter"
            )
    return units


def lists_machines(scenario: Scenario, known: Container[str]) -> bool:
    """Return whether `hosts.units` names machines instead of hosts of the network, whose names are
    `known`. Machines take the hosts of a network that daqloom makes, in the order of ports."""
    is_made = scenario.network.shape not in ("imported", "cables")
    units = scenario.hosts.units
    return is_made and all(u.machine and not u.adapter and u.host not in known for u in units)


def _slot(scenario: Scenario, unit: UnitPlace, known: dict[str, int], hosts: Slots) -> int:
    where = f"{scenario.name}: unit {unit.unit} of hosts.units is on {str(unit)[:80]}"
    if isinstance(unit.host, int) and not unit.adapter:
        if unit.host < len(hosts):
            return int(hosts[unit.host])
        count = len(hosts)
        problem = f"the network has {count} hosts; expected 0 to {count - 1}"
        raise ScenarioError(f"{where}, and {problem}")
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
