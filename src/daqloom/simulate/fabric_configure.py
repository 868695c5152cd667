"""Translates a fabric scenario into the engine's configuration."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

from daqloom import _engine
from daqloom.enumerations import named
from daqloom.rules import set_daqpipe_rules, set_shift_rules
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.flows import EVERY, RANDOM
from daqloom.scenario.transport import BLOCK_BYTES
from daqloom.simulate.delay import set_delay
from daqloom.simulate.graph import set_graph
from daqloom.topology.routes import trace
from daqloom.topology.schedule import hosts_of
from daqloom.topology.system import check_paths

if TYPE_CHECKING:
    from daqloom.scenario.distribution import Distribution
    from daqloom.scenario.event import Event
    from daqloom.scenario.models import Scenario
    from daqloom.scenario.network import Network
    from daqloom.scenario.transport import Transport
    from daqloom.scenario.units import Card
    from daqloom.topology.system import FabricSystem


def shift_config(scenario: Scenario, system: FabricSystem, seed: int) -> _engine.ShiftConfig:
    """Return the configuration of the simulated event builder; attributes have units in their
    names."""
    config = _engine.ShiftConfig()
    _set_cluster(config, scenario, system, seed)
    config.slots = system.readouts.tolist()
    config.builder_slots = system.builders.tolist()
    set_shift_rules(config, scenario.building)
    set_delay(config.phase_jitter, scenario.building.jitter)
    config.mfp_bytes = system.mfp_bytes
    config.streams = scenario.readout.streams
    config.is_poissonian = scenario.event.fragment_sizes == "poisson"
    config.mfp_interval_s = _interval_s(scenario.event)
    config.stream_buffer = scenario.readout.buffer
    _set_card(config, scenario.readout.card)
    config.output_buffer = scenario.builders.buffer
    _set_processing(config.processing, scenario.builders.processing)
    return config


def daqpipe_config(scenario: Scenario, system: FabricSystem, seed: int) -> _engine.DaqpipeConfig:
    """Return the configuration of a simulated DAQPIPE, where a readout unit's streams are one
    fragment."""
    streams = scenario.readout.streams
    config = _engine.DaqpipeConfig()
    _set_cluster(config, scenario, system, seed)
    config.readouts = hosts_of(system.readouts)
    config.builders = hosts_of(system.builders)
    set_daqpipe_rules(config, scenario.building)
    sizes = system.mfp_bytes
    config.fragment_bytes = [sum(sizes[i : i + streams]) for i in range(0, len(sizes), streams)]
    config.is_poissonian = scenario.event.fragment_sizes == "poisson"
    config.event_interval_s = _interval_s(scenario.event)
    _set_processing(config.processing, scenario.builders.processing)
    return config


def flows_config(
    scenario: Scenario, system: FabricSystem, seed: int
) -> tuple[_engine.FlowsConfig, dict[str, list[int]]]:
    """Return the configuration of simulated flows, and the source nodes of each.

    Raises ScenarioError for an unknown host.
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
                f"flows.{name}: {given.source} would write only to itself; name another host as "
                "source or destination, or use more nodes"
            )
        flow.sources = sources[name] = nodes
        targets = hosts if given.destination == RANDOM else hosts[[flow.destination]]
        check_paths(f"flows.{name}", paths, hosts[nodes], targets)
        if scenario.transport.connection == "reliable":  # acknowledges go the other way
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
    """Return the node on a host given by its place or its name."""
    if isinstance(host, int) and host < len(named):
        return host
    if host not in named:
        names = list(named)
        raise ScenarioError(
            f"{key} = {host} is not a node; expected 0 to {len(names) - 1}, or a name from "
            f"{names[0]} to {names[-1]}"
        )
    return named[str(host)]


def _interval_s(event: Event) -> float:
    """Return the time between two MFPs of a source; 0: as fast as they are consumed."""
    return event.packing / event.rate if event.rate else 0.0


def _set_cluster(
    config: _engine.SystemConfig, scenario: Scenario, system: FabricSystem, seed: int
) -> None:
    """Set the part of the configuration that is common to all protocols."""
    hosts, transport = scenario.hosts, scenario.transport
    config.set_network(_infiniband_config(scenario.network, system))
    config.set_transport(_rdma_config(transport))
    config.path.pcie_rate_bps = hosts.pcie_rate
    config.path.memory_rate_bps = hosts.memory_rate
    config.path.memory_passes = hosts.memory_passes
    config.data_service_level = transport.data_service_level
    config.control_service_level = transport.control_service_level
    set_delay(config.latency, hosts.latency)
    config.message_cost_s = hosts.message_cost
    config.polling_delay_s = hosts.polling_delay
    config.control_bytes = scenario.building.control_size
    config.local_rate_bps = hosts.local_rate
    config.clock_offset_s = hosts.clock_offset
    config.clock_drift = hosts.clock_drift
    config.duration_s = scenario.run.duration
    config.warmup_s = scenario.run.warmup
    config.seed = seed


def _set_card(config: _engine.ShiftConfig, card: Card) -> None:
    config.card_buffer = card.buffer
    delay = config.card_acknowledge
    set_delay(delay.usual, card.acknowledge)
    set_delay(delay.spike, card.spike)
    delay.spike_probability = card.spike_probability


def _set_processing(delay: _engine.Delay, stages: Sequence[Distribution]) -> None:
    """Set the one delay that a builder unit has. Raises ScenarioError for a chain of them."""
    if len(stages) > 1:
        raise ScenarioError(
            f"builders.processing has {len(stages)} delays, which linear shifting and DAQPIPE "
            "cannot simulate yet; give one"
        )
    for stage in stages:
        set_delay(delay, stage)


def _rdma_config(transport: Transport) -> _engine.RdmaConfig:
    rdma = _engine.RdmaConfig()
    rdma.mtu = transport.mtu
    rdma.acknowledge = transport.connection == "reliable"
    rdma.retry_timeout_s = transport.retry_timeout
    rdma.retry_count = transport.retry_count
    return rdma


def _infiniband_config(given: Network, system: FabricSystem) -> _engine.InfinibandConfig:
    switch = given.switch
    config = _engine.InfinibandConfig()
    delays_s = repeat(given.links.delay, len(system.fabric.cables))
    set_graph(config, system.fabric, delays_s, system.routes.ports)
    config.lanes = given.lanes.count
    config.service_lanes = list(given.lanes.service_levels)
    config.head_of_queue_lifetime_s = switch.head_of_queue_lifetime
    config.high = list(given.lanes.high)
    config.low = list(given.lanes.low)
    config.high_limit = given.lanes.high_limit
    config.buffer_blocks = switch.buffer // BLOCK_BYTES
    config.input_queue = named(_engine.InputQueue, switch.input_queue)
    config.crossbar_speedup = switch.crossbar_speedup
    config.credit_release = named(_engine.CreditRelease, switch.credit_release)
    config.credit_update_interval_s = switch.credit_update_interval
    config.credit_update_bytes = switch.credit_update_size
    config.switch_latency_s = switch.latency
    return config
