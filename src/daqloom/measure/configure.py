"""A scenario in the terms of a unit's process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from daqloom import _engine
from daqloom.measure.interface import own_address
from daqloom.measure.node import RunInfo
from daqloom.scenario.errors import ScenarioError
from daqloom.topology.schedule import DUMMY
from daqloom.topology.system import fabric_system

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario

MOST_PACKED = 65_535
"""Fragments of an MFP: their count is a 16-bit number."""
LARGEST_FRAGMENT_BYTES = 60_000


@dataclass(frozen=True)
class Places:
    """Who is where: units are the nodes, in the order of their slots."""

    readouts: list[int]
    """Unit in each slot of the schedule that has a readout unit there; -1: nobody."""
    builders: list[int]
    fragment_bytes: list[int]
    """Mean size of a fragment, by readout unit and stream."""
    streams: int
    """Of a readout unit. In DAQPIPE these travel as one fragment."""

    @property
    def units(self) -> int:
        """Processes of a run."""
        return len({unit for unit in (*self.readouts, *self.builders) if unit >= 0})


def places(scenario: FabricScenario) -> Places:
    """Raises ScenarioError for what cannot be run live."""
    if scenario.nodes.protocol == "flows":
        raise ScenarioError(
            'nodes.protocol = "flows" is no event building; `daqloom measure` runs "shift" and '
            '"daqpipe"'
        )
    if scenario.fragments.packing > MOST_PACKED:
        raise ScenarioError(
            f"fragments.packing = {scenario.fragments.packing} is more than the {MOST_PACKED} "
            "fragments that a multi-fragment packet can count"
        )
    if scenario.shift.barrier == "ideal":
        raise ScenarioError(
            'shift.barrier = "ideal" exists in simulation only; take "tournament" or another one'
        )
    system = fabric_system(scenario)
    together = scenario.nodes.streams if scenario.nodes.protocol == "daqpipe" else 1
    sizes = [
        round(sum(means) / scenario.fragments.packing)
        for means in _in_groups(system.mfp_bytes, together)
    ]
    if max(sizes) > LARGEST_FRAGMENT_BYTES:
        raise ScenarioError(
            f"fragments of {max(sizes)} bytes; a multi-fragment packet holds fragments of up to "
            f"{LARGEST_FRAGMENT_BYTES} bytes on average: take more and smaller ones"
        )
    units = {host: unit for unit, host in enumerate(system.hosts)}
    units[DUMMY] = -1
    return Places(
        [units[host] for host in system.readouts.tolist()],
        [units[host] for host in system.builders.tolist()],
        sizes,
        scenario.nodes.streams // together,
    )


def _in_groups(sizes: list[int], length: int) -> list[list[int]]:
    return [sizes[i : i + length] for i in range(0, len(sizes), length)]


def check_live(scenario: FabricScenario) -> None:
    """Raises ScenarioError for what no unit could run, before any is started."""
    measure = scenario.measure
    if measure.congestion and not measure.over_tcp:
        raise ScenarioError(
            f'measure.congestion = "{measure.congestion}" is of TCP connections, and '
            f'measure.transport = "{measure.transport}" has none; use "libfabric:tcp", or leave '
            "congestion out"
        )
    config = _config(scenario, 0, RunInfo("check", bytes(16), 0))
    try:
        config.check()
    except ValueError as error:
        raise ScenarioError(f"measure: {error}") from None


def live_config(scenario: FabricScenario, unit: int, run: RunInfo) -> _engine.LiveConfig:
    """What the process of `unit` is to do in this run.

    Raises ScenarioError for what cannot be run live, MeasureError where this machine is not in the
    network that the scenario names.
    """
    measure = scenario.measure
    config = _config(scenario, unit, run)
    config.bind = own_address(run.control, measure.network, for_others=measure.spans_machines)
    return config


def _config(scenario: FabricScenario, unit: int, run: RunInfo) -> _engine.LiveConfig:
    """Without the address of its machine."""
    nodes, shift, fragments = scenario.nodes, scenario.shift, scenario.fragments
    measure = scenario.measure
    where = places(scenario)
    config = _engine.LiveConfig()
    config.unit, config.run, config.token = unit, run.name, run.token
    config.readout_slots, config.builder_slots = where.readouts, where.builders
    config.keeps_lost_slots = nodes.dummies != "none"
    config.transport, config.waiting = measure.transport, measure.waiting
    config.congestion_control = measure.congestion
    config.protocol = nodes.protocol
    changes = {"count": _engine.PhaseChange.by_count, "window": _engine.PhaseChange.by_time}
    config.change = changes[shift.change]
    config.barrier = getattr(_engine.ShiftBarrier, shift.barrier)
    config.meps_per_phase = shift.meps_per_phase
    config.phases_per_barrier = shift.phases_per_barrier
    config.phases_under_way = shift.phases_under_way
    config.keeps_dummies = shift.dummy_phases == "kept"
    config.window_s, config.grace_s = shift.window, shift.grace
    config.discards_when_full = measure.when_full == "discard"
    config.delivers_incomplete = measure.incomplete == "deliver"
    config.is_push = scenario.daqpipe.mode == "push"
    config.credits = scenario.daqpipe.credits
    config.parallel_sends = scenario.daqpipe.parallel_sends
    config.slot_s = scenario.daqpipe.slot
    config.streams, config.packing = where.streams, fragments.packing
    config.is_poissonian = fragments.sizes == "poisson"
    config.fragment_bytes = where.fragment_bytes
    config.event_rate_hz = fragments.rate
    config.seed = scenario.run.seed
    config.stream_buffer = min(nodes.source_buffer, measure.stream_buffer)
    config.output_buffer = min(nodes.output_buffer, measure.output_buffer)
    config.source, config.content = measure.source, measure.content
    config.replay, config.sink, config.output = (
        measure.source_files,
        measure.sink,
        measure.sink_files,
    )
    config.trace_stages = run.trace_stages
    return config
