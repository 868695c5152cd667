"""Requirements across the tables of a scenario."""

from collections.abc import Sequence

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import SIZE, TIME
from daqloom.scenario.schema.hosts import UnitPlace
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES
from daqloom.scenario.schema.scheduling import CLASSES
from daqloom.scenario.schema.tables import Tables
from daqloom.scenario.schema.transport import (
    BLOCK_BYTES,
    LARGEST_HEADER_BYTES,
    ROCE_HEADER_BYTES,
    WRITE_BYTES,
)
from daqloom.scenario.validation import value_error


def check(scenario: Tables) -> None:
    """Raise ValueError if tables contradict each other. Each further contradiction is a note of the
    error."""
    checks = [_check_run, _check_units, _check_storage]
    if scenario.network.technology == "ethernet":
        checks += [_check_ethernet, _check_classes]
    else:
        checks += [_check_lanes, _check_buffer]
    checks += [_check_event if scenario.protocol.has_arrivals else _check_groups]
    mistakes: list[str] = []
    has_units = True
    for each in (*checks, _check_flows, _check_mended):
        if has_units or each not in _OF_UNITS:
            try:
                each(scenario)
            except ValueError as error:
                mistakes.append(str(error))
                has_units &= each is not _check_units
    if mistakes:
        raise value_error(*mistakes)


def _check_mended(scenario: Tables) -> None:
    """Check what `routing = "mended"` requires: linear shift, folded units, placement by rule."""
    if scenario.network.routing != "mended":
        return
    rules = {
        "building.protocol": (scenario.protocol.has_phases, True),
        "builders.folded": (scenario.builders.folded, True),
        "hosts.placement": (scenario.hosts.placement != "table", True),
    }
    wrong = [key for key, (value, expected) in rules.items() if value != expected]
    if wrong:
        raise ValueError(
            'network.routing = "mended" orders the units of linear shift: it requires '
            'building.protocol = "shift", builders.folded = true and hosts placed by rule; '
            f"change {wrong[0]}, or take other tables, such as minimal:balanced"
        )


def _check_run(scenario: Tables) -> None:
    run = scenario.run
    if {"warmup", "duration"} <= run.model_fields_set and run.warmup >= run.duration:
        raise ValueError(
            f"run.warmup = {TIME.format(run.warmup)} leaves no time to count of "
            f"run.duration = {TIME.format(run.duration)}; shorten the one or lengthen "
            "the other"
        )


def _check_units(scenario: Tables) -> None:
    readout, builders = scenario.readout.units, scenario.builders.units
    protocol, in_all = scenario.protocol, scenario.all_builders
    if scenario.hosts.placement == "table":
        _check_table(scenario.hosts.in_order, builds=protocol.builds)
        if scenario.network.is_racks:
            _check_table_of_racks(scenario)
        return
    _check_counted(scenario)
    if not protocol.builds:
        return
    if scenario.builders.folded and builders not in (0, readout):
        raise ValueError(
            f"builders.units = {builders} and readout.units = {readout}; folded units are as many "
            "as each other: leave builders.units out, or set builders.folded = false"
        )
    unfolded = protocol.has_schedule and not scenario.builders.folded
    if unfolded and in_all and not 0 <= readout - in_all <= 1:
        raise ValueError(
            f"builders.units = {in_all} and readout.units = {readout}; without pull, "
            "unfolded units alternate: give as many of each, or one builder unit less"
        )


def _check_storage(scenario: Tables) -> None:
    if scenario.storage.units and scenario.regroups:
        raise ValueError(
            f"storage.units = {scenario.storage.units} with faults of units or hosts, after which "
            "units regroup, is not possible yet; break the cable of a host instead, or set "
            "storage.units to 0"
        )


def _check_counted(scenario: Tables) -> None:
    """Check that racks, pull building and a single switch without hosts have numbers of units."""
    protocol, network = scenario.protocol, scenario.network
    needed = {"hosts.count": scenario.hosts.count}
    if protocol.builds:
        needed = {"readout.units": scenario.readout.units}
        if not scenario.is_folded or not protocol.has_schedule:
            needed["builders.units"] = scenario.builders.units
    no_hosts = network.shape == "one-switch" and not (network.hosts or scenario.nodes)
    by_shape = protocol.has_schedule
    subject = f'network.shape = "{network.shape}"' if by_shape else scenario.building.protocol
    instead = ", or network.hosts" if no_hosts and by_shape else ""
    for key, units in needed.items():
        if units == 0 and (network.is_racks or not by_shape or no_hosts):
            raise ValueError(f"{key} = 0; {subject} requires a number of units{instead}")


def _check_table(units: Sequence[UnitPlace], *, builds: bool) -> None:
    if not units:
        refusal = 'hosts.placement = "table" requires hosts.units'
        raise ValueError(f'{refusal}, such as [{{unit = 0, role = "both", host = "r5n0020"}}]')
    for expected, unit in enumerate(units):
        if unit.unit != expected:
            refusal = f"hosts.units has no unit {expected}, or one twice"
            raise ValueError(f"{refusal}; give each unit from 0 to {len(units) - 1} once")
        if unit.role != "spare" and expected > 0 and units[expected - 1].role == "spare":
            refusal = f"hosts.units has unit {expected} behind a spare"
            raise ValueError(f"{refusal}; give spares the last numbers")
    if not builds:
        if any(unit.role != "both" for unit in units):
            raise ValueError(
                'a role in hosts.units means nothing with building.protocol = "none"; leave it out'
            )
    elif not (any(unit.reads for unit in units) and any(unit.builds for unit in units)):
        kind = "readout" if any(unit.builds for unit in units) else "builder"
        raise ValueError(
            f'hosts.units has no {kind} unit; give one with role = "{kind}" or role = "both"'
        )


def _check_table_of_racks(scenario: Tables) -> None:
    units, shape = scenario.hosts.in_order, scenario.network.shape
    roles = [unit.role for unit in units]
    readouts = roles.count("readout")
    is_split = roles == ["readout"] * readouts + ["builder"] * (len(roles) - readouts)
    has_order = is_split or set(roles) == {"both"}
    has_names = all(unit.machine and not unit.adapter for unit in units)
    if not (has_order and has_names) or (len(roles) - readouts) % scenario.racks:
        raise ValueError(
            f'hosts.units does not fit network.shape = "{shape}": give machines by name, first the '
            "readout units, then as many builder units for each rack, or units that all are both"
        )


def _check_ethernet(scenario: Tables) -> None:
    network = scenario.network
    if scenario.protocol.has_phases and scenario.building.barrier == "network":
        raise ValueError(
            'building.barrier = "network" requires network.technology = "infiniband", whose '
            'switches combine messages; use "tournament" or another barrier'
        )
    if network.is_racks:
        uplinks = network.links.uplink.count
        at_core = scenario.hosts_at_core + scenario.storage.units
        core = -(-at_core // scenario.routers) + scenario.racks * uplinks
        _check_switch(scenario, "core", core)
        _check_switch(scenario, "tor", uplinks * scenario.routers + scenario.hosts_in_rack)
    else:
        for level in levels(scenario):
            _check_switch(scenario, level, 1)
    switches = [network.switch.at_level(level) for level in levels(scenario)]
    if scenario.transport.kind == "rdma":
        _check_roce(scenario)
        return
    if scenario.transport.congestion == "dctcp" and not any(s.ecn_threshold for s in switches):
        raise ValueError(
            'transport.congestion = "dctcp" requires a switch that marks packets; set '
            f'network.switch.{levels(scenario)[1]}.ecn_threshold, such as "100 kB"'
        )
    _check_windows(scenario)


def levels(scenario: Tables) -> tuple[str, ...]:
    """Return the levels of switches in an Ethernet network."""
    return ("core", "tor") if scenario.network.is_racks else ("core", "leaf", "spine")


def _check_roce(scenario: Tables) -> None:
    packet = scenario.transport.mtu + WRITE_BYTES + ROCE_HEADER_BYTES
    if packet > scenario.network.mtu:
        raise ValueError(
            f"transport.mtu = {SIZE.format(scenario.transport.mtu)} makes IP packets of {packet} "
            f"B, and network.mtu = {SIZE.format(scenario.network.mtu)}; reduce the one (to 1024 B "
            'for 1500 B) or raise the other, such as "9000 B"'
        )


def _check_windows(scenario: Tables) -> None:
    transport = scenario.transport
    windows = {"receive_window": transport.receive_window}
    if transport.congestion == "static":
        windows["static_window"] = transport.static_window
    if transport.tso_burst:
        windows["tso_burst"] = transport.tso_burst
    for key, window in windows.items():
        if window < scenario.mss:
            raise ValueError(
                f"transport.{key} = {SIZE.format(window)} is smaller than one segment of "
                f"{SIZE.format(scenario.mss)} (network.mtu less headers)"
            )


def _check_switch(scenario: Tables, level: str, connected: int) -> None:
    """Check one switch; `connected` is a lower bound of the number of cabled ports."""
    name, switch = f"network.switch.{level}", scenario.network.switch.at_level(level)
    frame = scenario.network.mtu + FRAME_OVERHEAD_BYTES
    limits = {"buffer": switch.buffer, "port_limit": switch.port_limit}
    for key, limit in limits.items():
        if 0 < limit < frame:
            raise ValueError(
                f"{name}.{key} = {SIZE.format(limit)} is smaller than one frame of "
                f"{SIZE.format(frame)}; every full packet would be dropped"
            )
    if 0 < switch.ports < connected:
        raise ValueError(
            f"{name}.ports = {switch.ports} is less than the {connected} ports that the "
            "scenario connects to that switch; set it to at least that number, or to 0 for "
            "exactly those"
        )
    if switch.architecture == "shared-memory" and not switch.holds(frame, connected):
        raise ValueError(
            f"{name} is too small for a full frame of {SIZE.format(frame)} at one output, in "
            "whole cells and with the shared pool free; enlarge buffer, dedicated or "
            "port_limit"
        )


def _check_classes(scenario: Tables) -> None:
    for key, level in scenario.service_levels.items():
        if level >= CLASSES:
            raise ValueError(
                f"{key} = {level}; the service level of a message on Ethernet is the class of its "
                f"frames, 0 to {CLASSES - 1}"
            )


def _check_lanes(scenario: Tables) -> None:
    lanes = scenario.network.lanes
    for key, level in scenario.service_levels.items():
        lane = lanes.lane_of(level)
        if not lanes.serves(lane):
            raise ValueError(
                f"{key} = {level} is on lane {lane}, which has no weight in "
                "network.lanes.high or low; no packet would be sent on it"
            )


def _check_buffer(scenario: Tables) -> None:
    blocks = -(-(scenario.transport.mtu + LARGEST_HEADER_BYTES) // BLOCK_BYTES)
    if scenario.network.switch.buffer < blocks * BLOCK_BYTES:
        raise ValueError(
            f"network.switch.buffer = {scenario.network.switch.buffer} B is smaller than a full "
            f"packet of {blocks} blocks of 64 B; no such packet could be sent"
        )


def _check_event(scenario: Tables) -> None:
    event, units = scenario.event, scenario.readout.units
    if event.rate == 0:
        raise ValueError('event.rate = "0 Hz"; pull requires a rate, such as "12 kHz"')
    if event.size < units:
        raise ValueError(
            f"event.size = {SIZE.format(event.size)} is less than one byte for each of "
            f"readout.units = {units} units"
        )
    if event.share != "equal" and len(event.share) != units:
        weights = f"event.share has {len(event.share)} weights"
        raise ValueError(f"{weights}; expected one for each of readout.units = {units} units")


def _check_groups(scenario: Tables) -> None:
    if scenario.readout.card.buffer and not scenario.event.rate:
        raise ValueError("readout.card.buffer requires event.rate, at which a card fills")
    check_groups(scenario, scenario.nodes)
    groups = scenario.event.groups
    if groups and not any(group.share for group in groups):
        raise ValueError("event.groups have no size; give a share above 0")


def check_groups(scenario: Tables, nodes: int) -> None:
    """Raise ValueError if `nodes` hosts do not have as many sources as `event.groups`."""
    listed = sum(group.sources for group in scenario.event.groups)
    readouts, streams = scenario.readouts(nodes), scenario.readout.streams
    if listed and nodes and listed != readouts * streams:
        raise ValueError(
            f"event.groups have {listed} sources; expected one for each of the {streams} streams "
            f"of {readouts} readout units, {readouts * streams}"
        )


def _check_flows(scenario: Tables) -> None:
    if not scenario.protocol.builds and not scenario.flows:
        example = "[flows.a] with source = 0 and destination = 1"
        raise ValueError(f'building.protocol = "none" requires a flow, such as {example}')
    for name, flow in scenario.flows.items():
        if flow.transport == "udp" and scenario.network.technology != "ethernet":
            raise ValueError(
                f'flows.{name}.transport = "udp" means nothing with network.technology = '
                '"infiniband"; leave it out, or set network.technology to "ethernet"'
            )
        if flow.start >= scenario.run.duration and "duration" in scenario.run.model_fields_set:
            raise ValueError(
                f"flows.{name}.start = {TIME.format(flow.start)} is not before the end of the "
                f"run, run.duration = {TIME.format(scenario.run.duration)}"
            )


_OF_UNITS = (_check_ethernet, _check_event, _check_groups)
"""Checks that are skipped if `_check_units` has failed."""


def check_possible(scenario: Tables) -> None:
    """Raise ScenarioError for a combination of keys that no method supports yet."""
    if choices := impossible(scenario):
        raise ScenarioError(f"{scenario.name}: {choices}")


def impossible(scenario: Tables) -> str:
    """Return a sentence on a combination of keys that no method supports yet, "" if supported."""
    network = scenario.network
    if network.technology != "infiniband":
        return ""
    if network.is_racks:
        return (
            f'network.shape = "{network.shape}" with network.technology = "infiniband" is not '
            "possible yet; expected one-switch (all hosts on it), fat-tree, imported or cables"
        )
    if scenario.transport.kind == "tcp":
        over = 'transport.kind = "tcp" over network.technology = "infiniband"'
        return f"{over} is not possible yet; expected rdma"
    return ""
