"""A fabric's scenario in the engine's own terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from daqloom import _engine
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.infiniband import BLOCK_BYTES
from daqloom.topology.clos import folded_clos
from daqloom.topology.fabric import Fabric, with_rate
from daqloom.topology.load import load_fabric
from daqloom.topology.routes import Routes
from daqloom.topology.routing import routing
from daqloom.topology.schedule import DUMMY, Slots, by_port, shuffled, slots_of
from daqloom.topology.wiring import NONE, Wiring, wire

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario
    from daqloom.scenario.infiniband import InfinibandFabric
    from daqloom.scenario.push import Card, Fragments, Nodes


@dataclass(frozen=True)
class FabricSystem:
    """What a scenario says, cabled, routed and scheduled."""

    fabric: Fabric
    routes: Routes
    slots: Slots
    mfp_bytes: list[int]
    """Mean size of an MFP by readout unit, in the order of the slots, and stream."""

    @property
    def hosts(self) -> list[int]:
        """Of the nodes, in the order of the slots."""
        hosts: list[int] = self.slots[self.slots != DUMMY].tolist()
        return hosts

    @property
    def nodes(self) -> int:
        """Slots that are no dummies."""
        return len(self.hosts)


def fabric_system(scenario: FabricScenario) -> FabricSystem:
    """Cables, routes, schedule. Raises ScenarioError where they do not fit together."""
    fabric, routes = _cabled(scenario.fabric)
    slots = _slots(scenario.nodes, fabric, scenario.run.seed)
    nodes = int((slots != DUMMY).sum())
    try:
        scenario.check_groups(nodes)
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    sizes = _mfp_bytes(scenario.fragments, scenario.readouts(nodes) * scenario.nodes.streams)
    return FabricSystem(fabric, routes, slots, sizes)


def _cabled(given: InfinibandFabric) -> tuple[Fabric, Routes]:
    if given.shape == "imported":
        fabric, tables, _ = load_fabric(given.folder)
    else:
        tables = None
        fabric = folded_clos(
            "fat-tree",
            leaves=given.leaves,
            spines=given.spines,
            hosts_per_leaf=given.hosts_per_leaf,
            links=given.links,
            pods=given.pods or None,
            cores=given.cores or None,
            radix=given.radix,
            rate_bps=given.rate,
        )
    return with_rate(fabric, given.rate), routing(fabric, tables, given.routing or None)


def _slots(nodes: Nodes, fabric: Fabric, seed: int) -> Slots:
    wiring = wire(fabric)
    everyone = by_port(fabric, wiring, slots_of(np.flatnonzero(wiring.leaf != NONE)), dummies=False)
    count = nodes.count or len(everyone)
    if count > len(everyone):
        raise ScenarioError(
            f"nodes.count = {count} is more than the {len(everyone)} hosts of the fabric; take "
            "fewer nodes, more leaves or more hosts_per_leaf"
        )
    taken = everyone[:count] if nodes.placement == "fill" else _spread(everyone, wiring, count)
    if nodes.dummies == "all-ports":
        slots = np.where(np.isin(everyone, taken), everyone, DUMMY).astype(np.int32)
    else:
        slots = by_port(fabric, wiring, taken, dummies=nodes.dummies == "used-ports")
    return shuffled(slots, seed) if nodes.order == "shuffled" else slots


def _spread(everyone: Slots, wiring: Wiring, count: int) -> Slots:
    """The first host of each leaf, the second of each, …"""
    leaf = wiring.leaf[everyone]
    place = np.zeros(len(everyone), int)
    for each in np.unique(leaf):
        place[leaf == each] = np.arange((leaf == each).sum())
    order = np.lexsort((np.arange(len(everyone)), place))
    spread: Slots = everyone[np.sort(order[:count])]
    return spread


def _mfp_bytes(fragments: Fragments, sources: int) -> list[int]:
    """Mean size of each source's MFP; over all sources the mean is that of `fragments.size`."""
    mean = fragments.size * fragments.packing
    if not fragments.groups:
        return [mean] * sources
    shares = sum(group.share for group in fragments.groups)
    return [
        round(mean * sources * group.share / shares / group.sources)
        for group in fragments.groups
        for _ in range(group.sources)
    ]


def shift_config(scenario: FabricScenario, system: FabricSystem, seed: int) -> _engine.ShiftConfig:
    """The configuration of the simulated event builder. Attributes carry their unit."""
    nodes, shift, fragments = scenario.nodes, scenario.shift, scenario.fragments
    config = _engine.ShiftConfig()
    _set_cluster(config, scenario, system, seed)
    config.slots = system.slots.tolist()
    changes = {"count": _engine.PhaseChange.by_count, "window": _engine.PhaseChange.by_time}
    config.change = changes[shift.change]
    config.barrier = getattr(_engine.ShiftBarrier, shift.barrier)
    config.phases_per_barrier = shift.phases_per_barrier
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
    hosts = system.hosts
    config.readouts = hosts if daqpipe.folded else hosts[0::2]
    config.builders = hosts if daqpipe.folded else hosts[1::2]
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
