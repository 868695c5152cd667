"""TCP and RDMA, as the engine is told of them, and what they have counted."""

from typing import Any

from daqloom import _engine
from daqloom.rules import delay_of, named
from daqloom.scenario.models import Scenario
from daqloom.scenario.transport import Transport


def tcp_config(scenario: Scenario) -> _engine.TcpConfig:
    """Return the settings of TCP at both ends of every connection."""
    tcp, transport = _engine.TcpConfig(), scenario.transport
    tcp.congestion = named(_engine.CongestionControl, transport.congestion)
    tcp.mss_bytes = scenario.mss
    tcp.static_window_bytes = transport.static_window
    tcp.initial_window = transport.initial_window
    tcp.receive_window_bytes = transport.receive_window
    tcp.timestamps = transport.timestamps
    tcp.rto_min_s = transport.rto_min
    tcp.rto_max_s = transport.rto_max
    tcp.timer_tick_s = transport.timer_tick
    tcp.packet_latency = delay_of(scenario.hosts.packet_latency)
    tcp.delayed_ack_s = transport.delayed_ack
    tcp.ack_every = transport.ack_every
    tcp.quick_acks = transport.quick_acks
    tcp.rack = transport.rack
    tcp.tail_loss_probe = transport.tail_loss_probe
    tcp.tso_burst_bytes = transport.tso_burst
    tcp.restart_after_idle = transport.restart_after_idle
    tcp.hystart = transport.hystart
    tcp.dctcp_gain = transport.dctcp_g
    return tcp


def rdma_config(transport: Transport, seed: int) -> _engine.RdmaConfig:
    """Return the settings of RDMA connections."""
    rdma = _engine.RdmaConfig()
    rdma.mtu = transport.mtu
    rdma.acknowledge = transport.connection == "reliable"
    rdma.retry_timeout_s = transport.retry_timeout
    rdma.retry_spread = transport.retry_spread
    rdma.seed = seed
    rdma.retry_count = transport.retry_count
    return rdma


def transport_metrics(scenario: Scenario, counted: _engine.RunReport) -> dict[str, Any]:
    """Return the metrics of the transport."""
    if (tcp := counted.tcp) is not None:
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
    retries = counted.retries
    if retries is None or not may_lose(scenario):
        return {}
    return {
        "retransmissions": {
            "nak": retries.resent_for_nak,
            "timeout": retries.resent_for_timeout,
        },
        "retransmission_timeouts": retries.timeouts,
        "writes_failed": retries.writes_failed,
    }


def may_lose(scenario: Scenario) -> bool:
    """Return whether packets of RDMA may be lost, or are retransmitted."""
    network = scenario.network
    return (
        network.technology == "ethernet"
        or network.switch.head_of_queue_lifetime > 0
        or scenario.transport.retry_timeout > 0
    )
