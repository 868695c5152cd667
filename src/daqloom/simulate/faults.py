"""Faults of a simulation: changes of links, tables and nodes in the engine's configuration."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from daqloom import _engine
from daqloom.configuration.rules import run_plan
from daqloom.configuration.settings import named
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import is_mended, regroups
from daqloom.topology import TopologyError
from daqloom.topology.fabric.fabric import Fabric
from daqloom.topology.fabric.wiring import wire
from daqloom.topology.failures.plan import FaultPlan, Outage
from daqloom.topology.failures.reroute import Order, Rerouting, reroutings
from daqloom.topology.schedule.slots import hosts_of
from daqloom.topology.system.system import FabricSystem

NetworkConfig = _engine.EthernetConfig | _engine.InfinibandConfig


class Change(NamedTuple):
    """Change of a directed link."""

    at_s: float
    link: int
    what: str
    """dark, down, up (see the engine's LinkState), rate or errors."""
    rate_bps: int = 0
    bit_errors: float = 0.0
    link_retry_s: float = 0.0


def set_link_faults(
    config: NetworkConfig, scenario: Scenario, system: FabricSystem
) -> list[Rerouting]:
    """Set changes of links and tables; return the latter. Raises ScenarioError for a fault that the
    network cannot have, or that is not simulated."""
    duration_s = scenario.run.duration
    if not scenario.faults.injected:
        return []
    _check(scenario)
    plan = system.fault_plan
    try:
        order = Order(system.readouts, system.builders) if is_mended(scenario) else None
        tables = [
            each
            for each in reroutings(plan, system.network, system.fabric, system.ways, order)
            if each.at_s < duration_s
        ]
    except TopologyError as error:
        raise ScenarioError(f"{scenario.name}: {error}") from None
    hosts, begins_at = len(system.fabric.hosts), wire(system.fabric).tail
    for change in link_changes(plan, system.fabric):
        if change.at_s < duration_s:
            _add(config, change, bool(begins_at[change.link] < hosts))
    for at_s, ways, _ in tables:
        groups = [(hosts + switch, list(ports)) for switch, ports in ways.groups]
        config.add_rerouting(at_s, np.ascontiguousarray(ways.ports, np.uint16), groups)
    return tables


def link_changes(plan: FaultPlan, fabric: Fabric) -> list[Change]:
    """Return the changes of all links in the order of time: a broken link is dark until the
    detection; then both links of its cable are down until the last break is over."""
    changes = [
        change
        for outage in plan.outages
        if outage.fault.how == "degraded"
        for change in _degraded(outage, fabric)
    ]
    cables = {cable for each in plan.outages for cable in each.cables}
    for link in sorted(2 * cable + way for cable in cables for way in (0, 1)):
        changes += _states([each for each in plan.outages if link // 2 in each.cables], link)
    return sorted(changes, key=lambda change: (change.at_s, change.link))


def _degraded(outage: Outage, fabric: Fabric) -> Iterator[Change]:
    fault = outage.fault
    for link in outage.links:
        usual = fabric.cables[link // 2].rate_bps
        for at_s, is_over in ((outage.begin_s, False), (outage.end_s, True)):
            if fault.rate:
                yield Change(at_s, link, "rate", usual if is_over else fault.rate)
            if fault.bit_error_rate:
                errors = 0.0 if is_over else fault.bit_error_rate
                yield Change(at_s, link, "errors", 0, errors, fault.link_retry)


def _states(found: Sequence[Outage], link: int) -> Iterator[Change]:
    """Return the changes of a link's state, where its cable has these outages."""
    broken = [each for each in found if each.fault.how != "degraded"]
    dark = [(each.begin_s, each.end_s) for each in broken if link in each.links]
    down = [(each.detected_s, each.end_s) for each in broken if each.detected_s is not None]
    state = "up"
    for at_s in sorted({at_s for span in (*dark, *down) for at_s in span}):
        is_down = any(begin_s <= at_s < end_s for begin_s, end_s in down)
        is_dark = any(begin_s <= at_s < end_s for begin_s, end_s in dark)
        now = "down" if is_down else "dark" if is_dark else "up"
        if now != state:
            state = now
            yield Change(at_s, link, now)


def _add(config: NetworkConfig, change: Change, begins_at_host: bool) -> None:
    if isinstance(config, _engine.InfinibandConfig):
        kind = named(_engine.InfinibandLinkChange, change.what)
        config.add_change(change.at_s, change.link, kind, *change[3:])
        return
    what = "down" if change.what == "dark" else change.what
    config.add_change(
        change.at_s,
        change.link,
        named(_engine.LinkChange, what),
        change.rate_bps,
        drops=change.what == "down" and not begins_at_host,
        bit_errors=change.bit_errors,
    )


def set_node_faults(config: _engine.SystemConfig, scenario: Scenario, system: FabricSystem) -> None:
    """Set the times at which processors stop or are slow, units are killed, hosts fail, and cards
    of readout units send no acknowledgements. Raises ScenarioError."""
    duration_s = scenario.run.duration
    for outage in system.fault_plan.outages:
        fault, end_s = outage.fault, min(outage.end_s, 2 * duration_s)
        is_hosts = fault.what == "host" and regroups(scenario)
        if outage.node < 0 or outage.begin_s >= duration_s:
            continue
        host = system.hosts[outage.node]
        if fault.what == "card":
            _stop_card(config, hosts_of(system.readouts), host, outage.begin_s, end_s)
        elif fault.what != "unit" and not is_hosts:
            continue
        elif fault.how == "down":
            kill = named(_engine.NodeChange, "kill")
            config.add_node_change(outage.begin_s, host, kill, end_s if is_hosts else 0.0)
        elif fault.how == "stopped":
            stop = named(_engine.NodeChange, "stop")
            config.add_node_change(outage.begin_s, host, stop, end_s)
        else:
            slow = named(_engine.NodeChange, "slow")
            config.add_node_change(outage.begin_s, host, slow, factor=fault.factor)
            config.add_node_change(end_s, host, slow)


def _stop_card(
    config: _engine.SystemConfig, readouts: list[int], host: int, begin_s: float, end_s: float
) -> None:
    if isinstance(config, _engine.ShiftConfig) and host in readouts:
        config.add_card_stop(readouts.index(host), begin_s, end_s)


def set_run_control(
    config: _engine.ShiftConfig | _engine.DaqpipeConfig | _engine.PullConfig,
    scenario: Scenario,
    system: FabricSystem,
) -> None:
    """Set the run control under which units regroup without lost ones, if any can be lost."""
    if not regroups(scenario):
        return
    config.set_run(run_plan(scenario))
    config.launch_s = scenario.measure.join_time
    config.spare_slots = system.spares.tolist()
    config.keeps_lost_slots = scenario.building.dummies != "none"


def set_schedules(config: _engine.ShiftConfig, tables: Sequence[Rerouting]) -> None:
    """Set the orders of units for new tables, each from the end of an epoch on."""
    for at_s, _, order in tables:
        if order:
            config.add_schedule(at_s, order.readouts.tolist(), order.builders.tolist())


def _check(scenario: Scenario) -> None:
    """Raise ScenarioError for a fault that is not simulated, or has no effect."""
    for name, fault in scenario.faults.injected.items():
        where = f"{scenario.name}: faults.injected.{name}"
        if fault.what == "unit" and fault.how == "down" and not regroups(scenario):
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
        has_card = scenario.building.protocol == "shift" and scenario.readout.card.buffer
        if fault.what == "card" and not has_card:
            raise ScenarioError(
                f'{where}: what = "card" requires building.protocol = "shift" and '
                'readout.card.buffer, such as "1 MB"; without it no card waits for anything'
            )
        if fault.link_retry and scenario.network.technology == "ethernet":
            raise ScenarioError(
                f"{where}.link_retry means nothing on Ethernet, where links do not send a frame "
                "again; leave it out"
            )
