"""TCP and RDMA in a simulation: their configurations in the engine, and their metrics."""

from typing import Any

from daqloom import _engine
from daqloom.configuration.settings import settings
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.transport import Transport


def tcp_config(scenario: Scenario) -> _engine.TcpConfig:
    """Return the engine's TCP settings, which apply to both ends of every connection."""
    return settings(
        _engine.TcpConfig,
        scenario.transport,
        mss=scenario.mss,
        packet_latency=scenario.hosts.packet_latency,
    )


def rdma_config(transport: Transport, seed: int) -> _engine.RdmaConfig:
    """Return the settings of RDMA connections."""
    reliable = transport.connection == "reliable"
    return settings(_engine.RdmaConfig, transport, acknowledge=reliable, seed=seed)


def transport_metrics(scenario: Scenario, report: _engine.RunReport) -> dict[str, Any]:
    """Return the metrics of the transport: retransmissions and timeouts."""
    if (tcp := report.tcp) is not None:
        return {
            "retransmission_timeouts": (
                tcp.timeouts_whole_window + tcp.timeouts_tail + tcp.timeouts_retransmission
            ),
            "timeouts_by_cause": {
                "whole_window": tcp.timeouts_whole_window,
                "tail": tcp.timeouts_tail,
                "retransmission": tcp.timeouts_retransmission,
            },
            "retransmissions": {
                "fast": tcp.fast_retransmissions,
                "probe": tcp.probe_retransmissions,
                "timeout": tcp.timeout_retransmissions,
            },
        }
    retries = report.retries
    if retries is None or not may_lose(scenario):
        return {}
    return {
        "retransmissions": {"nak": retries.resent_for_nak, "timeout": retries.resent_for_timeout},
        "retransmission_timeouts": retries.timeouts,
        "writes_failed": retries.writes_failed,
    }


def may_lose(scenario: Scenario) -> bool:
    """Return whether packets of RDMA can be lost or retransmitted."""
    network = scenario.network
    return (
        network.technology == "ethernet"
        or network.switch.head_of_queue_lifetime > 0
        or scenario.transport.retry_timeout > 0
    )
