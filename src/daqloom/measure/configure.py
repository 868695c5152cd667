"""Configuration of a unit's process from a scenario: its places in the schedule, its node, and its
processor cores."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from daqloom import _engine
from daqloom.configuration.rules import processing_delays, rules_of
from daqloom.configuration.settings import settings
from daqloom.control.protocol.messages import Configure
from daqloom.data.generator import check_packets
from daqloom.deployment.fabric_system import fabric_system
from daqloom.machine.addresses import own_address
from daqloom.machine.machine import Machine
from daqloom.machine.namespace import NETWORK
from daqloom.machine.open_files import check_open_files
from daqloom.machine.placement import Placement, apply, placement_of
from daqloom.results.errors import MeasureError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.hosts import UnitPlace
from daqloom.scenario.schema.measure import cores
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.schedule.slots import DUMMY


@dataclass(frozen=True)
class Places:
    """Assignment of units to the slots of a schedule, with the fragments that they read. A unit's
    number is that of its slot."""

    readouts: list[int]
    """Unit with the readout unit of each slot; -1: no readout unit in this slot."""
    builders: list[int]
    fragment_bytes: list[int]
    """Mean fragment size (bytes), by readout unit and stream."""
    streams: int
    """Streams of a readout unit; 1 if builder units request fragments of all its streams
    together."""
    barrier_groups: list[int]
    """Barrier group of each readout unit, as in `FabricSystem.barrier_groups`."""
    spares: list[int]
    """Spare unit in each slot; -1: none. Empty without spares, else as long as readouts or
    longer."""

    @property
    def units(self) -> int:
        """Number of processes in a run, including spares."""
        return len({unit for unit in (*self.readouts, *self.builders, *self.spares) if unit >= 0})


def places(scenario: Scenario) -> Places:
    """Return the places of units. Raises ScenarioError for a scenario that cannot be measured."""
    building, event = scenario.building, scenario.event
    if building.barrier == "ideal":
        raise ScenarioError(
            'building.barrier = "ideal" exists only in simulation; use "tournament" or another '
            "barrier"
        )
    if building.barrier == "network" and not scenario.measure.transport.startswith("libfabric:"):
        raise ScenarioError(
            f'building.barrier = "network": measure.transport = "{scenario.measure.transport}" has '
            "no barrier of the network; use a provider with collective operations, such as "
            '"libfabric:tcp;ofi_rxm", or another barrier'
        )
    system = fabric_system(scenario)
    units = {host: unit for unit, host in enumerate(system.hosts)} | {DUMMY: -1}
    readouts, builders, spares = (
        [units[host] for host in hosts.tolist()]
        for hosts in (system.readouts, system.builders, system.spares)
    )
    if not scenario.protocol.has_schedule:  # slots only list the units
        slots = max(len(readouts), len(builders))
        shares = [1.0] * len(readouts) if event.share == "equal" else list(event.share)
        return Places(
            readouts + [-1] * (slots - len(readouts)),
            builders + [-1] * (slots - len(builders)),
            [round(event.size * share / sum(shares)) for share in shares],
            1,
            [],
            spares,
        )
    streams = scenario.readout.streams
    together = streams if scenario.protocol.requests else 1
    means = system.mfp_bytes
    sizes = [
        round(sum(means[first : first + together]) / event.packing)
        for first in range(0, len(means), together)
    ]
    check_packets(event.packing, sizes)
    return Places(readouts, builders, sizes, streams // together, system.barrier_groups, spares)


def slots_of_run(scenario: Scenario, where: Places) -> _engine.RunSlots:
    """Return the slots of a run's schedule in the engine's format."""
    return _engine.RunSlots(
        readouts=where.readouts,
        builders=where.builders,
        spares=where.spares,
        keeps_lost=scenario.building.dummies != "none",
    )


def files_of_a_unit(scenario: Scenario) -> int:
    """Return the number of files that a unit opens, from the counts in `open_files`. Raises
    ScenarioError for a scenario that cannot be measured."""
    where = places(scenario)
    within, _, between = scenario.measure.transport.rpartition("+")
    own, each_unit = {"shm": (24, 8), "tcp": (28, 2)}.get(between, (48, 2))
    if within:  # a unit is reached by one of both
        own, each_unit = own + 24, max(each_unit, 8)
    return own + each_unit * where.units + 6 * where.streams


def check_live(scenario: Scenario) -> None:
    """Raise ScenarioError for a configuration that units would refuse, before they are started."""
    measure = scenario.measure
    if measure.congestion and not measure.over_tcp:
        raise ScenarioError(
            f'measure.congestion = "{measure.congestion}" applies to TCP connections only, and '
            f'measure.transport = "{measure.transport}" has none; use "tcp" or "libfabric:tcp", '
            "or leave congestion out"
        )
    order = Configure(order=1, unit=0, run="check", units=1, heartbeat_s=1.0, scenario={})
    config = _config(scenario, order, bytes(16))
    try:
        config.check()
    except ValueError as error:
        raise ScenarioError(f"measure: {error}") from None


KERNEL_CONGESTION = {"newreno": "reno", "static": "reno"}
"""Linux's names for congestion controls with other names in a scenario. For static congestion
control, the receiver limits the window, to a value that any control without losses exceeds."""


def kernel_congestion(scenario: Scenario) -> str:
    """Return Linux's name for the congestion control of the run's sockets; empty: the kernel's
    default."""
    measure, transport = scenario.measure, scenario.transport
    follows = measure.has_sockets and transport.kind == "tcp"
    simulated = KERNEL_CONGESTION.get(transport.congestion, transport.congestion)
    return measure.congestion or (simulated if follows else "")


def _tcp_config(scenario: Scenario) -> _engine.LiveTcpConfig:
    """Return the socket settings of `[measure]` and, over TCP, of `[transport]`."""
    measure, transport = scenario.measure, scenario.transport
    follows = measure.has_sockets and transport.kind == "tcp"
    return settings(
        _engine.LiveTcpConfig,
        measure,
        congestion_control=kernel_congestion(scenario),
        checksums=measure.has_checksums,
        first_source_port=measure.source_port,
        window=transport.static_window if follows and transport.congestion == "static" else 0,
    )


def live_config(
    scenario: Scenario, order: Configure, token: bytes, control: str = "127.0.0.1:0"
) -> _engine.LiveConfig:
    """Return the configuration of a unit's process. Raises ScenarioError for a scenario that cannot
    be measured, MeasureError if this machine is not in the scenario's network."""
    measure = scenario.measure
    config = _config(scenario, order, token)
    network = NETWORK if measure.is_apart else measure.network
    config.bind = own_address(control, network, for_others=measure.spans_machines)
    device = unit_placement(scenario, order.unit, order.units).device
    if device and measure.over_tcp and not device.interfaces:
        raise MeasureError(f"hosts.units: {device.name} has no interface, and TCP requires one")
    if device and device.interfaces:  # the engine finds its address
        config.bind = device.interfaces[0]
    if device and not measure.over_tcp:
        config.domain = (device.rdma or device.interfaces or (device.name,))[0]
    return config


def _config(scenario: Scenario, order: Configure, token: bytes) -> _engine.LiveConfig:
    """Return the configuration, except for the address of the unit's machine."""
    measure, building, card = scenario.measure, scenario.building, scenario.readout.card
    where = places(scenario)
    return settings(
        _engine.LiveConfig,
        measure,
        building,
        unit=order.unit,
        run=order.run,
        token=token,
        slots=slots_of_run(scenario, where),
        tcp=_tcp_config(scenario),
        **rules_of(scenario, where.barrier_groups),
        phase_jitter=building.jitter,
        mep_processing=[] if scenario.protocol.has_arrivals else processing_delays(scenario),
        delivers_incomplete=measure.incomplete == "deliver",
        streams=where.streams,
        packing=scenario.packing,
        fragment_sizes=scenario.event.fragment_sizes,
        fragment_bytes=where.fragment_bytes,
        # Pull: events arrive at the event manager at this rate; sources are ahead of it.
        event_rate_hz=0.0 if scenario.protocol.has_arrivals else scenario.event.rate,
        seed=scenario.run.seed,
        stream_buffer=min(scenario.readout.buffer, measure.stream_buffer),
        output_buffer=min(scenario.builders.buffer, measure.output_buffer),
        card_buffer=card.buffer,
        card_acknowledge=settings(_engine.SpikyDelay, card, usual=card.acknowledge),
        replay=measure.source_files,
        output=measure.sink_files,
        domain="",  # that of the address, unless a device is given
        trace_stages=order.trace_stages,
        trace_arrivals=order.trace_arrivals,
        counters_folder=order.counters if os.path.isdir(order.counters) else "",
        control_grace_s=order.grace_s,
    )


class PlacedNode(_engine.LiveNode):
    """Node of a unit that is placed on its machine."""

    warnings: tuple[str, ...] = ()
    """See `Placement`."""


def live_node(order: Configure, token: bytes, control: str) -> PlacedNode:
    """Return the engine's node, placed as listed. Raises ValueError, with one sentence, for an
    impossible configuration, and MeasureError for limits of this machine."""
    scenario = Scenario.model_validate(order.scenario)
    check_open_files(files_of_a_unit(scenario), f"unit {order.unit}")
    placement = unit_placement(scenario, order.unit, order.units)
    apply(placement)
    node = PlacedNode(live_config(scenario, order, token, control))
    node.warnings = placement.warnings
    return node


def machines(scenario: Scenario, units: int) -> list[str]:
    """Return the name of each unit's machine, as in `hosts.units` or `measure.hosts`; empty for
    units of this machine, or on hosts that Slurm, mpirun or the user chooses."""
    measure, table = scenario.measure, scenario.hosts.placement == "table"
    in_turn = measure.launch == "ssh" or (measure.launch == "mpirun" and measure.hosts)
    if measure.launch == "local" or not (table or in_turn):
        return [""] * units
    if not table:
        return [measure.hosts[unit % len(measure.hosts)] for unit in range(units)]
    names = [place.machine for place in scenario.hosts.in_order]
    if "" in names:  # numbers of hosts of the network
        system = fabric_system(scenario)
        names = [system.fabric.hosts[host].name.partition(" ")[0] for host in system.hosts]
    return names


@cache
def _allowed_cores() -> list[int]:
    """Return the cores that this process might use before it was pinned."""
    return sorted(os.sched_getaffinity(0))


def unit_placement(scenario: Scenario, unit: int, units: int) -> Placement:
    """Return the placement of a unit on this machine, by `hosts.units`, or on its part of
    `measure.cores`. Raises MeasureError for what this machine lacks."""
    is_listed, given = scenario.hosts.placement == "table", scenario.measure.cores
    place = scenario.hosts.in_order[unit] if is_listed else UnitPlace(unit=unit, host=0)
    if given and not place.is_pinned:
        where = machines(scenario, units)
        here = [other for other in range(units) if where[other] == where[unit]]
        required = _allowed_cores() if given == "auto" else cores(given)
        part = share(required, here.index(unit), len(here))
        place = place.model_copy(update={"cores": ",".join(map(str, part))})
    return placement_of(Machine(), place, _allowed_cores())


def share(required: Sequence[int], index: int, sharers: int) -> list[int]:
    """Return the cores for one of `sharers`: equally many neighbouring cores for each, or one core
    each, in turn, if cores are fewer than sharers."""
    if len(required) < sharers:
        return [required[index % len(required)]]
    each = len(required) // sharers
    return list(required[index * each : (index + 1) * each])
