"""New forwarding tables after faults during a run, and the times from which they apply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from daqloom.scenario.schema.network import Network
from daqloom.topology.fabric.broken_cables import remove_cables
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.failures.plan import FaultPlan
from daqloom.topology.failures.repair import mend
from daqloom.topology.routing.by_name import routing
from daqloom.topology.routing.minimal import EqualCost, equal_cost, single
from daqloom.topology.schedule.slots import Slots
from daqloom.topology.shapes.shape import tables_of


class Order(NamedTuple):
    """The hosts of a schedule: of the readout unit and of the builder unit in each slot."""

    readouts: Slots
    builders: Slots


class Rerouting(NamedTuple):
    """New forwarding tables, and a new order of units if there is one."""

    at_s: float
    """Time (s) from which all switches use the tables."""
    ways: EqualCost
    order: Order | None = None
    """New order of units that belongs to the tables, if any."""


def reroutings(
    plan: FaultPlan,
    network: Network,
    fabric: Fabric,
    ways: EqualCost,
    order: Order | None = None,
) -> Iterator[Rerouting]:
    """Yield the tables that replace `ways`; mended tables come with a new order of units."""
    faults = plan.faults
    if faults.routing == "none":
        return
    after = faults.sweep if faults.routing == "sweep" else 0.0
    known = {frozenset[int](): (ways, order)}  # what flaps has the same tables again and again
    for at, broken in plan.known_broken():
        if broken not in known:
            is_swept = faults.routing == "sweep"
            if is_swept and order:
                known[broken] = reroute(network, fabric, broken, order.readouts)
            elif is_swept:
                known[broken] = swept(network, fabric, broken), None
            else:
                known[broken] = locally(fabric, ways, broken), None
        yield Rerouting(at + after, *known[broken])


def reroute(
    network: Network, fabric: Fabric, broken: frozenset[int], slots: Slots
) -> tuple[EqualCost, Order]:
    """Return tables and order for the remaining cables: see `daqloom.topology.failures.repair`."""
    left = remove_cables(fabric, broken)
    routes, readouts, builders = mend(left, swept(network, fabric, broken).first(left), slots)
    return single(routes), Order(readouts, builders)


def swept(network: Network, fabric: Fabric, broken: frozenset[int]) -> EqualCost:
    """Return the tables for the remaining cables. They follow network.routing; minimal:balanced
    (OpenSM's minhop) if it is unset or mended; on Ethernet, all shortest paths."""
    left = remove_cables(fabric, broken)
    if network.spreads:
        return equal_cost(left)
    return single(routing(left, None, tables_of(network, is_broken=True)))


def locally(fabric: Fabric, ways: EqualCost, broken: frozenset[int]) -> EqualCost:
    """Return the tables after local repairs. Each switch replaces a port that is down by its next
    port on a shortest path, if it has one; a group of ports goes on without its dead ports."""
    hosts, everywhere = len(fabric.hosts), equal_cost(fabric)
    cables = [fabric.cables[place] for place in sorted(broken)]
    down: dict[int, set[int]] = {}
    for end in (end for cable in cables for end in (cable.a, cable.b)):
        if end.node >= hosts:
            down.setdefault(end.node - hosts, set()).add(end.port)
    ports, groups = ways.ports.copy(), list(ways.groups)
    sizes = [node.ports for node in fabric.switches]
    for place, (switch, group) in enumerate(groups):
        left = tuple(port for port in group if port not in down.get(switch, ()))
        groups[place] = (switch, left or group)
    for switch, dead in down.items():
        others = _alternatives(everywhere, switch, sizes[switch])
        for host in np.flatnonzero(np.isin(ports[switch], list(dead))).tolist():
            old = int(ports[switch, host])
            group = others.get(int(everywhere.ports[switch, host]), ())
            alive = [port for port in group if port not in dead]
            if alive:
                ports[switch, host] = next((p for p in alive if p > old), alive[0])
    return EqualCost(ports, tuple(groups))


def _alternatives(ways: EqualCost, switch: int, ports: int) -> dict[int, tuple[int, ...]]:
    """Return the ports of each group of a switch, by the number of the group in the tables."""
    found: dict[int, tuple[int, ...]] = {}
    for owner, group in ways.groups:
        if owner == switch:
            ports += 1
            found[ports] = group
    return found
