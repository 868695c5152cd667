"""An Ethernet, and TCP over it, as the engine is told of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from daqloom import _engine
from daqloom.enumerations import named
from daqloom.simulate.graph import set_graph

if TYPE_CHECKING:
    from daqloom.scenario.models import Scenario
    from daqloom.scenario.switches import Switch
    from daqloom.topology.equal_cost import EqualCost
    from daqloom.topology.fabric import Fabric


def ethernet_config(
    fabric: Fabric, routes: EqualCost, delays_s: Sequence[float]
) -> _engine.EthernetConfig:
    """Return the network without its switches, which are added in the order of the fabric.

    `delays_s` are those of the cables. Link 2c leads from end a of cable c to its end b, link
    2c + 1 back.
    """
    config = _engine.EthernetConfig()
    set_graph(config, fabric, delays_s, routes.ports)
    for switch, ports in routes.groups:
        config.add_group(fabric.switch_node(switch), list(ports))
    return config


def switch_config(of: Switch) -> _engine.SwitchConfig:
    """Return the buffer of a switch."""
    switch = _engine.SwitchConfig()
    switch.model = named(_engine.BufferModel, of.architecture)
    switch.buffer_bytes = of.buffer
    switch.dedicated_bytes = of.dedicated
    switch.dedicated_ports = of.ports
    switch.alpha = of.alpha
    switch.port_limit_bytes = of.port_limit
    switch.cell_size_bytes = of.cell_size
    switch.cell_metadata_bytes = of.cell_metadata
    switch.queue_packets = of.queue_packets
    switch.ecn_threshold_bytes = of.ecn_threshold
    return switch


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
