"""What a measurement breaks, and when: [faults.injected] as a plan, without processes."""

from collections.abc import Collection
from dataclasses import dataclass
from math import isfinite

from daqloom.machine.namespaces import Link, frame_loss
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.faults import Fault
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.wiring import Wiring, wire
from daqloom.topology.failures.plan import Outage
from daqloom.topology.system.system import FabricSystem, fabric_system

SOUND = Link()
"""A link of which nothing is broken."""


@dataclass(frozen=True)
class Thing:
    """A thing that can break, and which nodes it concerns."""

    which: str
    units: tuple[int, ...]
    to_units: bool = True
    """Of links: whether the direction towards the units breaks."""
    from_units: bool = True


@dataclass(frozen=True, eq=False)
class Planned:
    """A thing that breaks once; times are seconds from when units first build."""

    name: str
    """That of its [faults.injected.NAME]."""
    fault: Fault
    thing: Thing
    begin_s: float
    end_s: float
    """Infinity: it is not mended."""


@dataclass(frozen=True)
class Change:
    """A thing breaks or is mended."""

    time_s: float
    begins: bool
    planned: Planned


@dataclass(frozen=True)
class Condition:
    """What is broken of a node."""

    stopped: bool = False
    factor: float = 1.0
    """How many times longer its processor takes."""
    host_down: bool = False
    link: Link = SOUND


def condition(broken: Collection[Planned]) -> Condition:
    """Return the condition of a node of which all that is broken now; of two faults of a kind the
    worse one counts."""
    faults = [each.fault for each in broken]
    links = [_link(each) for each in broken if each.fault.kind.breaks == "links"]
    return Condition(
        stopped=any(fault.how == "stopped" for fault in faults),
        factor=max((fault.factor for fault in faults if fault.how == "slow"), default=1.0),
        host_down=any(fault.kind.breaks == "host" for fault in faults),
        link=Link(
            up=all(link.up for link in links),
            lost_to_unit=max((link.lost_to_unit for link in links), default=0.0),
            lost_from_unit=max((link.lost_from_unit for link in links), default=0.0),
            rate_bps=min((link.rate_bps for link in links if link.rate_bps), default=0),
        ),
    )


def planned(scenario: Scenario) -> list[Planned]:
    """Return all that breaks, in the order of its beginning. Raises ScenarioError for what a
    measurement cannot break."""
    faults = scenario.faults
    if not faults.injected:
        return []
    for name, fault in faults.injected.items():
        _check(name, fault, scenario.measure.namespaces)
    system = fabric_system(scenario)
    wiring = wire(system.fabric)
    return [
        Planned(each.name, each.fault, _thing(each, system, wiring), each.begin_s, each.end_s)
        for each in system.fault_plan.outages
    ]


def agenda(plan: Collection[Planned]) -> list[Change]:
    """Return what happens, in the order of time; what is mended comes before what breaks then."""
    changes = [Change(each.begin_s, True, each) for each in plan]
    changes += [Change(each.end_s, False, each) for each in plan if isfinite(each.end_s)]
    return sorted(changes, key=lambda change: (change.time_s, change.begins))


def _check(name: str, fault: Fault, namespaces: bool) -> None:
    where = f'faults.injected.{name}: what = "{fault.what}"'
    if fault.kind.unmeasured:
        raise ScenarioError(f"{where} cannot be measured: {fault.kind.unmeasured}")
    if fault.kind.breaks == "links" and not namespaces:
        raise ScenarioError(
            f"{where}: the units of this measurement share the network of their machine; give each "
            'a link of its own (measure.namespaces = true, measure.transport = "tcp"), '
            'or use what = "unit" or "host"'
        )
    if fault.link_retry:
        raise ScenarioError(
            f"faults.injected.{name}: link_retry exists only in simulation; leave it out, and "
            "packets with an error are lost"
        )


def _thing(outage: Outage, system: FabricSystem, wiring: Wiring) -> Thing:
    if outage.node >= 0:
        return Thing(outage.which, (outage.node,))
    unit_of = {host: unit for unit, host in enumerate(system.hosts)}
    links = list(outage.links)
    units, to_units, from_units = set(), False, False
    for begin, end in zip(wiring.tail[links].tolist(), wiring.head[links].tolist(), strict=True):
        if end in unit_of:
            units.add(unit_of[end])
            to_units = True
        elif begin in unit_of:
            units.add(unit_of[begin])
            from_units = True
    if not units:
        host = system.fabric.hosts[system.hosts[0]].name
        raise ScenarioError(
            f"faults.injected.{outage.name}: {outage.fault.what} {outage.which} has no units, and "
            "those of a measurement are on one bridge; set which to one at a host such as "
            f'"{host}", or simulate the system'
        )
    return Thing(outage.which, tuple(sorted(units)), to_units, from_units)


def _link(planned: Planned) -> Link:
    fault = planned.fault
    if fault.how == "down":
        return Link(up=False)
    if fault.how == "one-way":
        thing = planned.thing
        return Link(lost_to_unit=float(thing.to_units), lost_from_unit=float(thing.from_units))
    lost = frame_loss(fault.bit_error_rate)
    return Link(lost_to_unit=lost, lost_from_unit=lost, rate_bps=round(fault.rate))
