"""Translates a rack scenario into the engine's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daqloom import _engine
from daqloom.enumerations import named
from daqloom.simulate.delay import delay_of

if TYPE_CHECKING:
    from daqloom.scenario.event import Event
    from daqloom.scenario.links import AccessLink, SourceLink, Uplink
    from daqloom.scenario.models import Scenario
    from daqloom.scenario.switches import Switch


def rack_config(scenario: Scenario, seed: int) -> _engine.RackConfig:
    """Return the configuration of the simulated rack; its attributes have units in their names."""
    rack = _engine.RackConfig()
    _set_event(rack, scenario.event)
    _set_hosts(rack, scenario)
    _set_link(rack.readout_link, scenario.network.links.source)
    _set_link(rack.uplink, scenario.network.links.uplink)
    _set_link(rack.access_link, scenario.network.links.access)
    rack.access_link.rate_limit_bps = scenario.network.links.access.rate_limit
    rack.uplinks = scenario.network.links.uplink.count
    _set_switch(rack.core, scenario.network.switch.core)
    _set_switch(rack.tor, scenario.network.switch.tor)
    _set_transport(rack.tcp, scenario)
    rack.duration_s = scenario.run.duration
    rack.warmup_s = scenario.run.warmup
    rack.seed = seed
    return rack


def _set_event(rack: _engine.RackConfig, event: Event) -> None:
    arrivals = rack.arrivals
    arrivals.kind = named(_engine.ArrivalKind, event.arrivals)
    arrivals.rate_hz = event.rate
    if event.arrivals == "lhc":
        arrivals.bunch_spacing_s = event.lhc.bunch_spacing
        arrivals.filling_scheme = list(event.lhc.pattern)
        arrivals.simple_dead_time_bx = event.lhc.simple_dead_time
        arrivals.complex_dead_time = [
            (bucket.triggers, bucket.window) for bucket in event.lhc.complex_dead_time
        ]
    if event.arrival_times is not None:
        arrivals.trace_times_s = list(event.arrival_times)

    size = rack.event_size
    size.kind = named(_engine.SizeKind, event.size_distribution)
    size.mean_bytes = event.size
    size.spread_bytes = event.size_spread * event.size
    size.quantum_bytes = event.size_quantum
    if event.histogram is not None:
        size.histogram = list(zip(*event.histogram, strict=True))
    if event.share != "equal":
        rack.share = list(event.share)


def _set_hosts(rack: _engine.RackConfig, scenario: Scenario) -> None:
    readout, builders, building = scenario.readout, scenario.builders, scenario.building
    rack.readouts = readout.units
    rack.readout_cost_per_message_s = readout.message_cost
    rack.response = delay_of(readout.response)
    rack.builders = builders.units
    rack.builder_cost_per_message_s = builders.message_cost
    rack.assignment = named(_engine.Assignment, building.assignment)
    rack.concurrent_events = building.concurrent_events
    rack.outstanding_fragments = building.outstanding_fragments
    rack.request_bytes = building.request_size
    rack.processing = [delay_of(stage) for stage in builders.processing]


def _set_link(link: _engine.LinkConfig, of: SourceLink | Uplink | AccessLink) -> None:
    link.rate_bps = of.rate
    link.delay_s = of.delay


def _set_switch(switch: _engine.SwitchConfig, of: Switch) -> None:
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


def _set_transport(tcp: _engine.TcpConfig, scenario: Scenario) -> None:
    transport = scenario.transport
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
