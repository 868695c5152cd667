"""An InfiniBand fabric, as the engine is told of it, and what it has counted."""

from typing import Any

from daqloom import _engine
from daqloom.rules import named
from daqloom.scenario.models import Scenario
from daqloom.scenario.transport import BLOCK_BYTES
from daqloom.simulate.graph import set_graph
from daqloom.topology.fabric import End
from daqloom.topology.links import means_by_kind
from daqloom.topology.system import FabricSystem


def infiniband_config(system: FabricSystem) -> _engine.InfinibandConfig:
    """Return the network."""
    given, switch = system.network, system.network.switch
    config = _engine.InfinibandConfig()
    set_graph(config, system)
    config.lanes = given.lanes.count
    config.service_lanes = list(given.lanes.service_levels)
    config.head_of_queue_lifetime_s = switch.head_of_queue_lifetime
    config.arbitration.high = list(given.lanes.high)
    config.arbitration.low = list(given.lanes.low)
    config.arbitration.high_limit = given.lanes.high_limit
    config.buffer_blocks = switch.buffer // BLOCK_BYTES
    config.input_queue = named(_engine.InputQueue, switch.input_queue)
    config.crossbar_speedup = switch.crossbar_speedup
    config.crossbar_arbiter = named(_engine.CrossbarArbiter, switch.crossbar_arbiter)
    config.crossbar_iterations = switch.crossbar_iterations
    config.credit_release = named(_engine.CreditRelease, switch.credit_release)
    config.credit_update_interval_s = switch.credit_update_interval
    config.credit_update_bytes = switch.credit_update_size
    config.switch_latency_s = switch.latency
    return config


def infiniband_metrics(
    scenario: Scenario, system: FabricSystem, counted: _engine.RunReport, end_s: float
) -> dict[str, Any]:
    """Return the metrics of the fabric over the whole run, which ended at `end_s`."""
    ports = counted.ports
    busy = (
        8 * nbytes / (system.fabric.cables[index // 2].rate_bps * end_s)
        for index, nbytes in enumerate(ports.bytes.tolist())
    )
    metrics: dict[str, Any] = {
        "xmit_wait_s": {
            "credits": sum(ports.wait_credits_s.tolist()),
            "crossbar": sum(ports.wait_crossbar_s.tolist()),
        },
        "link_utilisation": means_by_kind(system.links, busy),
        "packet_hops": counted.packet_hops,
    }
    if scenario.network.switch.head_of_queue_lifetime or scenario.transport.retry_timeout:
        metrics["packets_discarded"] = discarded(counted)
    return metrics


def discarded(counted: _engine.RunReport) -> int:
    """Return the number of packets discarded after the head-of-queue lifetime."""
    return sum(counted.ports.discards.tolist())


def infiniband_ports(system: FabricSystem, counted: _engine.RunReport) -> dict[str, list[Any]]:
    """Return what each output has counted, by its name."""
    ports, lanes = counted.ports, counted.lanes
    ends = zip(ports.node.tolist(), ports.port.tolist(), strict=True)
    return {
        "name": [system.fabric.end_name(End(*end)) for end in ends],
        "bytes": ports.bytes.tolist(),
        "wait_credits_s": ports.wait_credits_s.tolist(),
        "wait_crossbar_s": ports.wait_crossbar_s.tolist(),
        "discards": ports.discards.tolist(),
        "lane_bytes": lanes.bytes.tolist(),
        "lane_wait_s": lanes.wait_s.tolist(),
    }
