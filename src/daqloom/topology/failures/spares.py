"""Spare hosts, and the schedule slots that they take when units of lost hosts move there."""

import numpy as np

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import Wiring, wire
from daqloom.topology.formats.placement_table import units_by_host
from daqloom.topology.schedule.slots import DUMMY, Slots, all_hosts, by_port, slots_of


def spare_slots(scenario: Scenario, fabric: Fabric, slots: Slots, readouts: int) -> Slots:
    """Return the spare host in each slot: spares replace dummies, or follow the `readouts` slots of
    the nodes. Empty without spares. Raises ScenarioError if the network has too few hosts."""
    wiring = wire(fabric)
    cabled = all_hosts(fabric, wiring)
    if scenario.hosts.placement == "table":
        units = units_by_host(scenario, fabric, cabled).items()
        return _behind([host for host, unit in units if unit.role == "spare"], readouts)
    left = cabled[~np.isin(cabled, slots)]
    count = scenario.hosts.spares
    if count > len(left):
        raise ScenarioError(
            f"{scenario.name}: hosts.spares = {count}, and the network has {len(left)} hosts "
            f"without units; use fewer spares, {scenario.network.more_hosts}"
        )
    place: dict[int, int] = {}
    if scenario.is_folded and len(slots) == readouts and scenario.hosts.order == "by-port":
        place = _dummies(fabric, wiring, slots, cabled)
    hosts = sorted(left.tolist(), key=lambda host: host not in place)[:count]
    found = _behind([host for host in hosts if host not in place], readouts)
    if hosts and not len(found):
        found = np.full(readouts, DUMMY, np.int32)
    for host in hosts:
        if host in place:
            found[place[host]] = host
    return found


def _behind(hosts: list[int], slots: int) -> Slots:
    """Return `slots` empty slots followed by these hosts; an empty array without hosts."""
    return slots_of([DUMMY] * slots + hosts if hosts else [])


def _dummies(fabric: Fabric, wiring: Wiring, slots: Slots, cabled: Slots) -> dict[int, int]:
    """Return the dummy slots of an order by port, by the host that the port really has."""
    if len(slots) == len(cabled):
        grid = cabled
    else:
        taken = slots[slots != DUMMY]
        leaf, port = wiring.leaf, wiring.leaf_port
        is_in_grid = np.isin(leaf[cabled], leaf[taken]) & np.isin(port[cabled], port[taken])
        grid = by_port(fabric, wiring, cabled[is_in_grid], dummies=True)
    if len(grid) != len(slots):  # without dummies
        return {}
    return {
        host: slot
        for slot, (host, unit) in enumerate(zip(grid.tolist(), slots.tolist(), strict=True))
        if unit == DUMMY and host != DUMMY
    }
