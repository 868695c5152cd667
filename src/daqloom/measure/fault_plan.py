"""Faults of a measurement: the outages in the fault plan, with the units that they affect."""

from collections.abc import Collection
from dataclasses import dataclass, field
from math import isfinite

from daqloom.deployment.fabric_system import FabricSystem, fabric_system
from daqloom.machine.namespaces import Link, frame_loss
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.faults import Fault
from daqloom.scenario.schema.measure import Measure
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.fabric.wiring import Wiring, wire
from daqloom.topology.failures.plan import Outage


@dataclass(frozen=True, eq=False)
class UnitOutage:
    """An outage and the units that it affects; times count from when units first build."""

    outage: Outage
    units: tuple[int, ...]
    to_units: bool = True
    """For links: whether the direction towards the units breaks."""
    from_units: bool = True
    cut: tuple[str, ...] = ()
    """In a laboratory: names of the links that drop all frames."""

    @property
    def name(self) -> str:
        """NAME in the table [faults.injected.NAME]."""
        return self.outage.name

    @property
    def fault(self) -> Fault:
        """The fault to which this outage belongs."""
        return self.outage.fault

    @property
    def link(self) -> Link:
        """State of the units' links under this outage alone."""
        if self.fault.kind.breaks != "links":
            return Link()
        if self.fault.how == "down":
            return Link(up=False)
        if self.fault.how == "one-way":
            return Link(lost_to_unit=self.to_units, lost_from_unit=self.from_units)
        lost = frame_loss(self.fault.bit_error_rate)
        return Link(lost_to_unit=lost, lost_from_unit=lost, rate_bps=round(self.fault.rate))


@dataclass(frozen=True)
class Condition:
    """Condition of a node under all its present outages."""

    stopped: bool = False
    factor: float = 1.0
    """Factor by which the node's processor is slower."""
    host_down: bool = False
    link: Link = field(default_factory=Link)


def condition(outages: Collection[UnitOutage]) -> Condition:
    """Return the condition of a node; of two faults of one kind, the worse one counts."""
    faults, links = [each.fault for each in outages], [each.link for each in outages]
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


def unit_outages(scenario: Scenario) -> list[UnitOutage]:
    """Return the outages, sorted by begin. Raises ScenarioError for a fault that cannot be
    measured."""
    faults = scenario.faults.injected
    for name, fault in faults.items():
        _check(name, fault, scenario.measure)
    if not faults:
        return []
    system = fabric_system(scenario)
    wiring = wire(system.fabric)
    has_lab = scenario.measure.has_lab
    return [_with_units(outage, system, wiring, has_lab) for outage in system.fault_plan.outages]


def agenda(outages: Collection[UnitOutage]) -> list[tuple[float, bool, UnitOutage]]:
    """Return the changes in time order: time (s), whether the outage begins, and the outage. At
    equal times, outages end before others begin."""
    changes = [(each.outage.begin_s, True, each) for each in outages]
    ends = [(each.outage.end_s, False, each) for each in outages if isfinite(each.outage.end_s)]
    return sorted(changes + ends, key=lambda change: change[:2])


def _check(name: str, fault: Fault, measure: Measure) -> None:
    where = f'faults.injected.{name}: what = "{fault.what}"'
    if fault.kind.unmeasured:
        raise ScenarioError(f"{where} cannot be measured: {fault.kind.unmeasured}")
    if measure.has_lab and fault.how == "degraded":
        raise ScenarioError(
            f"{where} is not degraded in a laboratory, whose links are up or down; use how = "
            '"down" or "one-way", or measure.namespaces = true without measure.lab'
        )
    if fault.kind.breaks == "links" and not (measure.namespaces or measure.has_lab):
        raise ScenarioError(
            f"{where}: the units of this measurement share the network of their machine; give each "
            'a link of its own (measure.namespaces = true, measure.transport = "tcp"), measure in '
            'a laboratory (measure.lab = "namespaces"), or use what = "unit" or "host"'
        )
    if fault.link_retry:
        raise ScenarioError(
            f"faults.injected.{name}: link_retry exists only in simulation; leave it out, and "
            "packets with an error are lost"
        )


def _with_units(outage: Outage, system: FabricSystem, wiring: Wiring, has_lab: bool) -> UnitOutage:
    if outage.node >= 0:
        return UnitOutage(outage, (outage.node,))
    unit_of = {host: unit for unit, host in enumerate(system.hosts)}
    links = list(outage.links)
    to, by = (
        {unit_of[host] for host in ends[links].tolist() if host in unit_of}
        for ends in (wiring.head, wiring.tail)
    )
    if has_lab and outage.fault.kind.breaks == "links":
        cut = tuple(system.links[link].name for link in links)
        return UnitOutage(outage, tuple(sorted(to | by)), bool(to), bool(by), cut)
    if not to | by:
        host = system.fabric.hosts[system.hosts[0]].name
        raise ScenarioError(
            f"faults.injected.{outage.name}: {outage.fault.what} {outage.which} has no units, and "
            "those of a measurement are on one bridge; set which to one at a host such as "
            f'"{host}", or measure in a laboratory (measure.lab = "namespaces")'
        )
    return UnitOutage(outage, tuple(sorted(to | by)), bool(to), bool(by))
