"""Faults of a simulation, as changes of links, tables and nodes for the engine."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from daqloom import _engine
from daqloom.configuration.rules import run_plan
from daqloom.configuration.settings import enumerator, settings
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate.graph import table_fields
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import wire
from daqloom.topology.failures.plan import FaultPlan, Outage
from daqloom.topology.failures.reroute import Order, Rerouting, reroutings
from daqloom.topology.schedule.slots import hosts_of


class Change(NamedTuple):
    """Change of a directed link."""

    at_s: float
    link: int
    what: str
    """Kind of change: dark, down, up (see the engine's LinkState), rate or errors."""
    rate_bps: int = 0
    bit_errors: float = 0.0
    link_retry_s: float = 0.0


def later_tables(scenario: Scenario, system: FabricSystem) -> list[Rerouting]:
    """Return the forwarding tables that replace the initial ones. Raises ScenarioError for faults
    that the network cannot have, or that are not simulated."""
    if not scenario.faults.injected:
        return []
    _check(scenario)
    try:
        order = Order(system.readouts, system.builders) if scenario.is_mended else None
        return [
            each
            for each in reroutings(
                system.fault_plan, system.network, system.fabric, system.ways, order
            )
            if each.at_s < scenario.run.duration
        ]
    except TopologyError as error:
        raise ScenarioError(f"{scenario.name}: {error}") from None


def engine_tables(tables: Sequence[Rerouting], fabric: Fabric) -> list[_engine.Rerouting]:
    """Return tables that apply later, in the engine's format."""
    hosts = len(fabric.hosts)
    return [
        settings(_engine.Rerouting, at_s=at_s, **table_fields(ways, hosts))
        for at_s, ways, _ in tables
    ]


def infiniband_changes(
    scenario: Scenario, system: FabricSystem
) -> list[_engine.InfinibandLinkChange]:
    """Return all changes of links in an InfiniBand fabric during the run."""
    return [
        settings(_engine.InfinibandLinkChange, **change._asdict())
        for change in _link_changes(scenario, system)
    ]


def ethernet_changes(scenario: Scenario, system: FabricSystem) -> list[_engine.LinkChange]:
    """Return all changes of links in an Ethernet network; a dark link counts as down."""
    hosts, begins_at = len(system.fabric.hosts), wire(system.fabric).tail
    return [
        settings(
            _engine.LinkChange,
            at_s=change.at_s,
            link=change.link,
            what="down" if change.what == "dark" else change.what,
            rate_bps=change.rate_bps,
            traffic_class=0,
            drops=change.what in ("dark", "down") and bool(begins_at[change.link] >= hosts),
            bit_errors=change.bit_errors,
        )
        for change in _link_changes(scenario, system)
    ]


def _link_changes(scenario: Scenario, system: FabricSystem) -> list[Change]:
    changes = link_changes(system.fault_plan, system.fabric)
    return [change for change in changes if change.at_s < scenario.run.duration]


def link_changes(plan: FaultPlan, fabric: Fabric) -> list[Change]:
    """Return the changes of all links, sorted by time. A broken link is dark until the break is
    detected; then both links of its cable are down until the last break is over."""
    changes = [
        change
        for outage in plan.outages
        if outage.fault.how == "degraded"
        for change in _degrade(outage, fabric)
    ]
    cables = {cable for each in plan.outages for cable in each.cables}
    for link in sorted(2 * cable + way for cable in cables for way in (0, 1)):
        changes += _states(plan, link)
    return sorted(changes, key=lambda change: (change.at_s, change.link))


def _degrade(outage: Outage, fabric: Fabric) -> Iterator[Change]:
    fault = outage.fault
    for link in outage.links:
        usual = fabric.cables[link // 2].rate_bps
        for at_s, is_over in ((outage.begin_s, False), (outage.end_s, True)):
            if fault.rate:
                yield Change(at_s, link, "rate", usual if is_over else fault.rate)
            if fault.bit_error_rate:
                errors = 0.0 if is_over else fault.bit_error_rate
                yield Change(at_s, link, "errors", 0, errors, fault.link_retry)


def _states(plan: FaultPlan, link: int) -> Iterator[Change]:
    """Yield the changes of a link's state: dark, down or up."""
    of_cable = [each for each in plan.outages if link // 2 in each.cables]
    broken = [each for each in of_cable if each.fault.how != "degraded"]
    dark = [(each.begin_s, each.end_s) for each in broken if link in each.links]
    detected = [(plan.detected_s(each), each.end_s) for each in broken]
    down = [(begin_s, end_s) for begin_s, end_s in detected if begin_s is not None]
    state = "up"
    for at_s in sorted({at_s for span in (*dark, *down) for at_s in span}):
        is_down = any(begin_s <= at_s < end_s for begin_s, end_s in down)
        is_dark = any(begin_s <= at_s < end_s for begin_s, end_s in dark)
        now = "down" if is_down else "dark" if is_dark else "up"
        if now != state:
            state = now
            yield Change(at_s, link, now)


def _node_changes(scenario: Scenario, system: FabricSystem) -> list[_engine.NodeChange]:
    """Return the times when processors stop or are slow, units are killed, or hosts fail."""
    changes = []

    def add(at_s: float, host: int, what: str, until_s: float = 0.0, factor: float = 1.0) -> None:
        kind = enumerator(_engine.NodeChangeKind, what)
        changes.append(
            _engine.NodeChange(at_s=at_s, host=host, what=kind, until_s=until_s, factor=factor)
        )

    for outage, host, end_s in _broken_nodes(scenario, system):
        fault = outage.fault
        is_hosts = fault.what == "host" and scenario.regroups
        if fault.what != "unit" and not is_hosts:
            continue
        if fault.how == "down":
            add(outage.begin_s, host, "kill", end_s if is_hosts else 0.0)
        elif fault.how == "stopped":
            add(outage.begin_s, host, "stop", end_s)
        else:
            add(outage.begin_s, host, "slow", factor=fault.factor)
            add(end_s, host, "slow")
    return changes


def _card_stops(scenario: Scenario, system: FabricSystem) -> list[_engine.CardStop]:
    """Return the times when the cards of readout units send no acknowledgements."""
    readouts = hosts_of(system.readouts)
    return [
        _engine.CardStop(unit=readouts.index(host), begin_s=outage.begin_s, end_s=end_s)
        for outage, host, end_s in _broken_nodes(scenario, system)
        if outage.fault.what == "card" and host in readouts
    ]


def _broken_nodes(scenario: Scenario, system: FabricSystem) -> Iterator[tuple[Outage, int, float]]:
    """Yield the outages of nodes that begin during the run, with their host and end (s)."""
    duration_s = scenario.run.duration
    for outage in system.fault_plan.outages:
        if outage.node >= 0 and outage.begin_s < duration_s:
            yield outage, system.hosts[outage.node], min(outage.end_s, 2 * duration_s)


def fault_fields(
    scenario: Scenario, system: FabricSystem, tables: Sequence[Rerouting]
) -> dict[str, object]:
    """Return the faults of nodes as fields of system configurations. If units can be lost, `run` is
    the plan by which the run control regroups them. Mended tables change the order of units at the
    next epoch."""
    is_on = scenario.regroups
    orders = [(at_s, order) for at_s, _, order in tables if order]
    return {
        "node_changes": _node_changes(scenario, system),
        "card_stops": _card_stops(scenario, system),
        "run": run_plan(scenario) if is_on else None,
        "launch_s": scenario.measure.join_time,
        "spare_slots": system.spares.tolist() if is_on else [],
        "keeps_lost_slots": scenario.building.dummies != "none",
        "schedule_changes": [
            _engine.ScheduleChange(
                at_s=at_s,
                slots=order.readouts.tolist(),
                builder_slots=order.builders.tolist(),
            )
            for at_s, order in orders
            if scenario.protocol.has_phases
        ],
    }


def _check(scenario: Scenario) -> None:
    """Raise ScenarioError for a fault that cannot be simulated or has no effect."""
    for name, fault in scenario.faults.injected.items():
        where = f"{scenario.name}: faults.injected.{name}"
        if fault.what == "unit" and fault.how == "down" and not scenario.regroups:
            raise ScenarioError(
                f'{where}: how = "down" of what = "unit" is simulated without [flows] and '
                'readout.card.buffer; otherwise it is only measured; expected "stopped" or "slow"'
            )
        hosts = scenario.hosts
        takes_time = hosts.message_cost or hosts.send_rate or hosts.receive_rate
        if fault.how == "slow" and not takes_time:
            raise ScenarioError(
                f'{where}: how = "slow" has no effect on hosts that take no time; set '
                'hosts.message_cost, such as "1 us", or send_rate or receive_rate'
            )
        if fault.what == "card" and not scenario.readout.card.buffer:
            raise ScenarioError(
                f'{where}: what = "card" requires building.protocol = "shift" and '
                'readout.card.buffer, such as "1 MB"; without it no card waits for anything'
            )
        if fault.link_retry and scenario.network.technology == "ethernet":
            raise ScenarioError(
                f"{where}.link_retry means nothing on Ethernet, where links do not send a frame "
                "again; leave it out"
            )
