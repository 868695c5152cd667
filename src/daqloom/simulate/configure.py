"""Translates pull building on a rack into the engine's configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daqloom import _engine
from daqloom.enumerations import named
from daqloom.simulate.delay import delay_of
from daqloom.simulate.ethernet import ethernet_config, switch_config, tcp_config
from daqloom.topology.racks import racks

if TYPE_CHECKING:
    from daqloom.scenario.event import Event
    from daqloom.scenario.models import Scenario


def pull_config(scenario: Scenario, seed: int) -> tuple[_engine.PullConfig, list[str]]:
    """Return the configuration of simulated pull building on a rack, whose attributes have units in
    their names; and the names of the links by number."""
    config = _engine.PullConfig()
    network = scenario.network
    readouts, builders = scenario.readout.units, scenario.builders.units
    fabric, routes = racks(
        readouts=readouts,
        builders=builders,
        uplinks=network.links.uplink.count,
        readout_bps=network.links.source.rate,
        uplink_bps=network.links.uplink.rate,
        access_bps=network.links.access.rate,
    )
    links = network.links
    uplinks = links.uplink.count
    delays_s = [links.source.delay] * readouts
    delays_s += [links.uplink.delay] * uplinks + [links.access.delay] * builders
    names = [f"source.{i}.{way}" for i in range(readouts) for way in ("up", "down")]
    names += [f"uplink.{i}.{way}" for i in range(uplinks) for way in ("down", "up")]
    names += [f"access.{i}.{way}" for i in range(builders) for way in ("down", "up")]
    ethernet = ethernet_config(fabric, routes, delays_s)
    for switch in network.switch.core, network.switch.tor:
        ethernet.add_switch(switch_config(switch))
    paced = [0] * (2 * (readouts + uplinks)) + [links.access.rate_limit, 0] * builders
    ethernet.rate_limits_bps = paced
    ethernet.link_names = names
    ethernet.seed = seed
    config.set_network(ethernet)
    config.set_transport(tcp_config(scenario))
    config.readouts = list(range(readouts))
    config.builders = list(range(readouts, readouts + builders))
    _set_event(config, scenario.event)
    _set_units(config, scenario)
    config.duration_s = scenario.run.duration
    config.warmup_s = scenario.run.warmup
    config.seed = seed
    return config, names


def _set_event(config: _engine.PullConfig, event: Event) -> None:
    arrivals = config.arrivals
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

    size = config.event_size
    size.kind = named(_engine.SizeKind, event.size_distribution)
    size.mean_bytes = event.size
    size.spread_bytes = event.size_spread * event.size
    size.quantum_bytes = event.size_quantum
    if event.histogram is not None:
        size.histogram = list(zip(*event.histogram, strict=True))
    if event.share != "equal":
        config.share = list(event.share)


def _set_units(config: _engine.PullConfig, scenario: Scenario) -> None:
    readout, builders, building = scenario.readout, scenario.builders, scenario.building
    config.readout_cost_per_message_s = readout.message_cost
    config.response = delay_of(readout.response)
    config.builder_cost_per_message_s = builders.message_cost
    config.assignment = named(_engine.Assignment, building.assignment)
    config.concurrent_events = building.concurrent_events
    config.outstanding_fragments = building.outstanding_fragments
    config.request_bytes = building.request_size
    config.processing = [delay_of(stage) for stage in builders.processing]
