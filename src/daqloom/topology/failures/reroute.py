"""Other ways around what breaks during a run, and from when on."""

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
    """The host in each slot of a schedule, of readout units and of builder units."""

    readouts: Slots
    builders: Slots


class Rerouting(NamedTuple):
    """Other tables."""

    at_s: float
    """From when on they are in all switches."""
    ways: EqualCost
    order: Order | None = None
    """Order of units, if another one goes with the tables."""


def reroutings(
    plan: FaultPlan,
    network: Network,
    fabric: Fabric,
    ways: EqualCost,
    order: Order | None = None,
) -> Iterator[Rerouting]:
    """Yield the tables that replace `ways`, and orders with mended ones."""
    faults = plan.faults
    if faults.routing == "none":
        return
    after = faults.sweep if faults.routing == "sweep" else 0.0
    known = {frozenset[int](): (ways, order)}  # what flaps has the same tables again and again
    for at, broken in plan.known_broken():
        if broken not in known:
            is_swept = faults.routing == "sweep"
            if is_swept and order:
                known[broken] = mended(network, fabric, broken, order.readouts)
            elif is_swept:
                known[broken] = swept(network, fabric, broken), None
            else:
                known[broken] = locally(fabric, ways, broken), None
        yield Rerouting(at + after, *known[broken])


def mended(
    network: Network, fabric: Fabric, broken: frozenset[int], slots: Slots
) -> tuple[EqualCost, Order]:
    """Return tables and an order for what is left: see `daqloom.topology.failures.repair`."""
    left = remove_cables(fabric, broken)
    routes, readouts, builders = mend(left, swept(network, fabric, broken).first(left), slots)
    return single(routes), Order(readouts, builders)


def swept(network: Network, fabric: Fabric, broken: frozenset[int]) -> EqualCost:
    """Return the tables for what is left: of network.routing, or minimal:balanced (OpenSM's minhop)
    without such tables and before mending; on Ethernet all shortest ways."""
    left = remove_cables(fabric, broken)
    if network.spreads:
        return equal_cost(left)
    return single(routing(left, None, tables_of(network, is_broken=True)))


def locally(fabric: Fabric, ways: EqualCost, broken: frozenset[int]) -> EqualCost:
    """Return the tables after each switch has replaced its ports that are down by the next of its
    ports on a shortest way, if it has one; a group of ports goes on without them."""
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
    """Return the ports of each group of a switch, by the group's number in the tables."""
    found: dict[int, tuple[int, ...]] = {}
    for owner, group in ways.groups:
        if owner == switch:
            ports += 1
            found[ports] = group
    return found
