"""InfiniBand fabric of a simulation: configuration of the engine, and metrics."""

import math
from collections.abc import Sequence
from typing import Any

from daqloom import _engine
from daqloom.configuration.settings import settings
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.transport import BLOCK_BYTES
from daqloom.simulate.graph import graph_fields
from daqloom.topology.fabric.fabric import End
from daqloom.topology.fabric.links import means_by_kind


def infiniband_config(
    system: FabricSystem,
    seed: int,
    changes: Sequence[_engine.InfinibandLinkChange] = (),
    reroutings: Sequence[_engine.Rerouting] = (),
) -> _engine.InfinibandConfig:
    """Return the configuration of the network, with its changes during the run."""
    lanes, switch = system.network.lanes, system.network.switch
    return settings(
        _engine.InfinibandConfig,
        switch,
        **graph_fields(system),
        lanes=lanes.count,
        service_lanes=lanes.service_levels,
        arbitration=settings(_engine.LaneArbitration, lanes),
        buffer_blocks=switch.buffer // BLOCK_BYTES,
        credit_update_bytes=switch.credit_update_size,
        switch_latency_s=switch.latency,
        seed=seed,
        changes=changes,
        reroutings=reroutings,
    )


def infiniband_metrics(
    scenario: Scenario, system: FabricSystem, report: _engine.RunReport, end_s: float
) -> dict[str, Any]:
    """Return metrics of the fabric over the whole run, up to its end at `end_s`."""
    ports = report.ports
    busy = (
        8 * nbytes / (system.fabric.cables[index // 2].rate_bps * end_s)
        for index, nbytes in enumerate(ports.bytes.tolist())
    )
    metrics: dict[str, Any] = {
        "xmit_wait_s": {
            "credits": math.fsum(ports.wait_credits_s.tolist()),
            "crossbar": math.fsum(ports.wait_crossbar_s.tolist()),
        },
        "link_utilisation": means_by_kind(system.links, busy),
        "packet_hops": report.packet_hops,
    }
    if scenario.network.switch.head_of_queue_lifetime or scenario.transport.retry_timeout:
        metrics["packets_discarded"] = discards(report)
    return metrics


def discards(report: _engine.RunReport) -> int:
    """Return the number of packets discarded because their head-of-queue lifetime ended."""
    return sum(report.ports.discards.tolist())


def infiniband_ports(system: FabricSystem, report: _engine.RunReport) -> dict[str, list[Any]]:
    """Return names and counters of all output ports."""
    ports, lanes = report.ports, report.lanes
    ends = zip(ports.node.tolist(), ports.port.tolist(), strict=True)
    return {
        "name": [system.fabric.end_name(End(*end)) for end in ends],
        **{
            name: getattr(ports, name).tolist()
            for name in ("bytes", "wait_credits_s", "wait_crossbar_s", "discards")
        },
        "lane_bytes": lanes.bytes.tolist(),
        "lane_wait_s": lanes.wait_s.tolist(),
    }
