"""Routes and linear-shift schedule that `daqloom topology check` examines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from daqloom.deployment.fabric_system import can_mend, units_of
from daqloom.scenario.errors import ScenarioError
from daqloom.topology import TopologyError
from daqloom.topology.fabric.wiring import wire
from daqloom.topology.failures.repair import UNCHANGED, mend
from daqloom.topology.routing.by_name import MENDED
from daqloom.topology.schedule.slots import (
    DUMMY,
    Slots,
    Units,
    alike,
    by_name,
    by_port,
    fold,
    hosts_of,
    read_order,
    shuffle,
)
from daqloom.topology.shapes.shape import cable_network

if TYPE_CHECKING:
    from daqloom.cli.fabric_options import NamedFabric
    from daqloom.topology.routing.routes import Routes

OF_SCENARIO = "units of the scenario"


class FabricPlan(NamedTuple):
    """Routes and schedule, with their names."""

    routing: str
    routes: Routes
    what: str
    readouts: Slots
    builders: Slots
    units: Units
    """Function that returns the slots of readout and builder units for an order of nodes."""
    mends: bool
    """Whether tables with another order of builder units ("mended") may be suggested."""
    notes: list[str]


def fabric_plan(
    given: NamedFabric, routing: str | None, order: str | None, *, dummies: bool
) -> FabricPlan:
    """Return the plan for `--routing`, `--order` and `--dummies`. Raises TopologyError."""
    scenario, own, fabric = given.scenario, given.own, given.fabric
    units: Units = fold
    mends = True
    if scenario and own:
        units, mends = units_of(scenario, own), can_mend(scenario)
        if (routing, order, dummies) == (None, None, False):
            shifts = scenario.protocol.has_phases
            readouts, builders = (own.readouts, own.builders) if shifts else (own.slots, own.slots)
            what = OF_SCENARIO if shifts else f"{OF_SCENARIO}, as if they shifted"
            mends = mends and scenario.network.routing != MENDED
            return FabricPlan(*given.routes(None), what, readouts, builders, units, mends, [])
    slots, what = _slots(given, order, dummies=dummies)
    if routing != MENDED:
        name, routes = given.routes(routing)
        return FabricPlan(name, routes, what, *units(slots), units, mends, [])
    if not mends:
        raise TopologyError(
            f"routing {MENDED} orders the folded units of linear shift, which {fabric.name} does "
            "not have; take another routing, such as minimal:balanced"
        )
    routes = cable_network(scenario).routes if scenario else given.routes(None)[1]
    mended = mend(fabric, routes, slots)
    notes = [UNCHANGED] if mended.routes is routes else []
    what += ", mended"
    return FabricPlan(
        MENDED, mended.routes, what, mended.readouts, mended.builders, units, False, notes
    )


def _slots(given: NamedFabric, order: str | None, *, dummies: bool) -> tuple[Slots, str]:
    """Return the slots for an order of nodes, and the order's name. Orders on a scenario's network
    contain only the scenario's hosts, except an order read from a file."""
    fabric, own = given.fabric, given.own and given.own.slots
    wiring = wire(fabric)
    everyone = by_name(fabric, wiring)
    if own is not None:
        everyone = everyone[np.isin(everyone, hosts_of(own))]
    seed = re.fullmatch(r"shuffle:([0-9]{1,18})", order or "")
    if order is None and own is not None:
        slots, what = own, OF_SCENARIO
    elif seed:
        slots, what = shuffle(everyone, int(seed[1])), f"order {order}"
    elif order in (None, "natural"):
        slots, what = everyone, "natural order"
    elif order and order.startswith("shuffle:"):
        raise ScenarioError(f"--order {order}: expected a whole number, such as shuffle:1")
    else:
        slots, what = read_order(Path(str(order)), fabric, wiring), f"order of {order}"
    if not dummies:
        return slots, what
    if order in (None, "natural"):
        slots = by_port(fabric, wiring, slots[slots != DUMMY], dummies=True)
    else:
        slots = alike(wiring, slots, dummies=True)
    return slots, f"{what} with dummies"
