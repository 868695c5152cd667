"""A fabric's scenario in the engine's own terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from daqloom import _engine
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.flows import EVERY, RANDOM
from daqloom.scenario.infiniband import BLOCK_BYTES
from daqloom.topology.routes import trace
from daqloom.topology.schedule import hosts_of
from daqloom.topology.system import check_paths

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario
    from daqloom.scenario.infiniband import InfinibandFabric
    from daqloom.scenario.push import Card, Fragments
    from daqloom.topology.system import FabricSystem


def shift_config(scenario: FabricScenario, system: FabricSystem, seed: int) -> _engine.ShiftConfig:
    """The configuration of the simulated event builder. Attributes carry their unit."""
    nodes, shift, fragments = scenario.nodes, scenario.shift, scenario.fragments
    config = _engine.ShiftConfig()
    _set_cluster(config, scenario, system, seed)
    config.slots = system.readouts.tolist()
    config.builder_slots = system.builders.tolist()
    changes = {"count": _engine.PhaseChange.by_count, "window": _engine.PhaseChange.by_time}
    config.change = changes[shift.change]
    config.barrier = getattr(_engine.ShiftBarrier, shift.barrier)
    config.meps_per_phase = shift.meps_per_phase
    config.phases_per_barrier = shift.phases_per_barrier
    config.phases_under_way = shift.phases_under_way
    config.keeps_dummies = shift.dummy_phases == "kept"
    config.window_s = shift.window
    config.grace_s = shift.grace
    _set_delay(config.phase_jitter, shift.jitter, shift.jitter_mean, shift.jitter_spread)
    config.mfp_bytes = system.mfp_bytes
    config.streams = nodes.streams
    config.is_poissonian = fragments.sizes == "poisson"
    config.mfp_interval_s = _interval_s(fragments)
    config.stream_buffer = nodes.source_buffer
    _set_card(config, nodes.card)
    config.output_buffer = nodes.output_buffer
    _set_delay(config.processing, "fixed", nodes.processing_mean, 0.0)
    return config


def daqpipe_config(
    scenario: FabricScenario, system: FabricSystem, seed: int
) -> _engine.DaqpipeConfig:
    """The configuration of a simulated DAQPIPE. A readout unit's streams are one fragment."""
    daqpipe, streams = scenario.daqpipe, scenario.nodes.streams
    config = _engine.DaqpipeConfig()
    _set_cluster(config, scenario, system, seed)
    config.readouts = hosts_of(system.readouts)
    config.builders = hosts_of(system.builders)
    config.is_push = daqpipe.mode == "push"
    config.credits = daqpipe.credits
    config.parallel_sends = daqpipe.parallel_sends
    config.slot_s = daqpipe.slot
    sizes = system.mfp_bytes
    config.fragment_bytes = [sum(sizes[i : i + streams]) for i in range(0, len(sizes), streams)]
    config.is_poissonian = scenario.fragments.sizes == "poisson"
    config.event_interval_s = _interval_s(scenario.fragments)
    _set_delay(config.processing, "fixed", scenario.nodes.processing_mean, 0.0)
    return config


def flows_config(
    scenario: FabricScenario, system: FabricSystem, seed: int
) -> tuple[_engine.FlowsConfig, dict[str, list[int]]]:
    """The configuration of simulated flows, and the nodes that are sources of each.

    Raises ScenarioError for a host that is not there.
    """
    config = _engine.FlowsConfig()
    _set_cluster(config, scenario, system, seed)
    config.hosts = system.hosts
    named = {system.fabric.hosts[host].name: node for node, host in enumerate(system.hosts)}
    sources: dict[str, list[int]] = {}
    paths = trace(system.fabric, system.routes)
    hosts = np.array(system.hosts)
    for name, given in sorted(scenario.flows.items()):
        flow = _engine.Flow()
        flow.name = name
        flow.destination = _engine.Flow.ANY_OTHER
        if given.destination != RANDOM:
            flow.destination = _node(f"flows.{name}.destination", given.destination, named)
        nodes = list(named.values())
        if given.source != EVERY:
            nodes = [_node(f"flows.{name}.source", given.source, named)]
        nodes = [node for node in nodes if node != flow.destination]
        if not nodes:
            raise ScenarioError(
                f"flows.{name}: {given.source} would write to itself alone; name another host as "
                "source or destination, or take more nodes"
            )
        flow.sources = sources[name] = nodes
        targets = hosts if given.destination == RANDOM else hosts[[flow.destination]]
        check_paths(f"flows.{name}", paths, hosts[nodes], targets)
        if scenario.nodes.connection == "reliable":  # acknowledges go the other way
            check_paths(f"flows.{name}", paths, targets, hosts[nodes])
        flow.service_level = given.service_level
        flow.bytes = given.size
        flow.messages = given.messages
        flow.start_s = given.start
        flow.interval_s = given.interval
        flow.load = given.load
        flow.is_poissonian = given.arrivals == "poisson"
        flow.outstanding = given.outstanding
        config.add(flow)
    return config, sources


def _node(key: str, host: int | str, named: dict[str, int]) -> int:
    """The node on a host that is given by its place or its name."""
    if isinstance(host, int) and host < len(named):
        return host
    if host not in named:
        names = list(named)
        raise ScenarioError(
            f"{key} = {host} is no node; expected 0 to {len(names) - 1}, or a name of "
            f"{names[0]} to {names[-1]}"
        )
    return named[str(host)]


def _interval_s(fragments: Fragments) -> float:
    """Between two MFPs of a source; 0: as fast as they are taken."""
    return fragments.packing / fragments.rate if fragments.rate else 0.0


def _set_cluster(
    config: _engine.ClusterConfig, scenario: FabricScenario, system: FabricSystem, seed: int
) -> None:
    """What all protocols have in common."""
    nodes = scenario.nodes
    config.fabric = _fabric_config(scenario.fabric, system)
    config.host.mtu = scenario.fabric.mtu
    config.host.pcie_rate_bps = nodes.pcie_rate
    config.host.memory_rate_bps = nodes.memory_rate
    config.host.memory_passes = nodes.memory_passes
    config.host.acknowledge = nodes.connection == "reliable"
    config.host.retry_timeout_s = nodes.retry_timeout
    config.host.retry_count = nodes.retry_count
    config.data_service_level = nodes.data_service_level
    config.control_service_level = nodes.control_service_level
    if nodes.latencies:
        config.latency.set_measured(*nodes.latencies)
    else:
        _set_delay(config.latency, nodes.latency, nodes.latency_mean, nodes.latency_spread)
    config.message_cost_s = nodes.message_cost
    config.polling_delay_s = nodes.polling_delay
    config.control_bytes = nodes.control_size
    config.local_rate_bps = nodes.local_rate
    config.clock_offset_s = nodes.clock_offset
    config.clock_drift = nodes.clock_drift
    config.duration_s = scenario.run.duration
    config.warmup_s = scenario.run.warmup
    config.seed = seed


def _set_card(config: _engine.ShiftConfig, card: Card) -> None:
    config.card_buffer = card.buffer
    delay = config.card_acknowledge
    _set_delay(delay.usual, card.kind, card.mean, card.spread)
    _set_delay(delay.spike, card.spike_kind, card.spike_mean, card.spike_spread)
    delay.spike_probability = card.spike_probability


def _set_delay(delay: _engine.Delay, kind: str, mean_s: float, spread_s: float) -> None:
    delay.kind = getattr(_engine.DelayKind, kind)
    delay.mean_s = mean_s
    delay.spread_s = spread_s


def _fabric_config(given: InfinibandFabric, system: FabricSystem) -> _engine.FabricConfig:
    config = _engine.FabricConfig()
    config.hosts = len(system.fabric.hosts)
    config.switch_ports = [switch.ports for switch in system.fabric.switches]
    for cable in system.fabric.cables:
        config.add_cable(*cable.a, *cable.b, cable.rate_bps, given.delay)
    config.set_routes(np.ascontiguousarray(system.routes.ports, np.int16))
    config.lanes = given.lanes.count
    config.service_lanes = list(given.lanes.service_levels)
    config.head_of_queue_lifetime_s = given.head_of_queue_lifetime
    config.high = list(given.lanes.high)
    config.low = list(given.lanes.low)
    config.high_limit = given.lanes.high_limit
    config.buffer_blocks = given.buffer // BLOCK_BYTES
    config.input_queue = getattr(_engine.InputQueue, given.input_queue.replace("-", "_"))
    config.crossbar_speedup = given.crossbar_speedup
    config.credit_release = getattr(_engine.CreditRelease, given.credit_release.replace("-", "_"))
    config.credit_update_interval_s = given.credit_update_interval
    config.credit_update_bytes = given.credit_update_size
    config.switch_latency_s = given.switch_latency
    return config
