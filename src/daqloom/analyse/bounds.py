"""Bounds that hold for any buffer: the highest event rate and the lowest latency."""

from daqloom.analyse.system import System
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES


def event_rate_bounds_hz(system: System) -> dict[str, float]:
    """Return the event rate at which each part of the system saturates.

    Links: rate over the bytes of an event on the wire, preamble and gap included; the source link
    is that of the largest fragment. Hosts, where messages cost time: a builder sends a request and
    receives a reply for every source. Concurrency, by Little's law: the events that the builders
    hold at a time, over the least time that one is held.
    """
    scenario, links = system.scenario, system.scenario.network.links
    builders = scenario.builders
    event_bits = 8 * system.event.frame_bytes / system.event.wire_share
    largest = system.reply(max(system.fragments_bytes))
    bounds = {
        "source": links.source.rate * largest.wire_share / (8 * largest.frame_bytes),
        "uplink": links.uplink.rate * links.uplink.count / event_bits,
        "access": system.output_bps * builders.units / event_bits,
        "concurrent_events": builders.units
        * scenario.building.concurrent_events
        / (unloaded_latency_s(system) + sum(stage.mean for stage in builders.processing)),
    }
    if scenario.readout.message_cost:
        bounds["source_host"] = 1 / (2 * scenario.readout.message_cost)
    if builders.message_cost:
        event_s = 2 * scenario.readout.units * builders.message_cost
        bounds["builder_host"] = builders.units / event_s
    return bounds


def unloaded_latency_s(system: System) -> float:
    """Return the latency of an event alone in the network, with open windows and hosts of no cost.
    The first request travels to a source, the first frame of the reply to the ToR; from then on the
    builder's link, or the input if that is slower, is busy until the last byte."""
    busy_bps = min(system.input_bps, system.output_bps)
    drain = 8 * system.event.frame_bytes / system.event.wire_share / busy_bps
    return first_byte_s(system) + drain + system.scenario.network.links.access.delay


def first_byte_s(system: System) -> float:
    """Return the time from the first request of an event until its first frame is in the ToR."""
    scenario, links = system.scenario, system.scenario.network.links
    request = scenario.building.request_size + scenario.transport.header_bytes
    frame_bits = 8 * (system.event.mean_frame_bytes + WIRE_OVERHEAD_BYTES)
    return (
        system.way_s(request + FRAME_OVERHEAD_BYTES + WIRE_OVERHEAD_BYTES)
        + scenario.readout.response.mean
        + sum(link.delay + frame_bits / link.rate for link in (links.source, links.uplink))
    )
