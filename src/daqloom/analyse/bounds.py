"""Bounds that are independent of the buffer size: the highest event rate and the lowest latency."""

from daqloom.analyse.system import System
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES


def event_rate_bounds_hz(system: System) -> dict[str, float]:
    """Return the event rate at which each part of the system saturates. A link saturates at its
    rate divided by the bytes of an event on the wire, with preamble and gap; the source link is
    that of the largest fragment. A host saturates if messages cost CPU time: a builder sends a
    request and receives a reply for every source. By Little's law, the limit on concurrent events
    divided by the shortest time to build an event also bounds the rate. The links of storage units
    carry the accepted share of each event."""
    scenario, links = system.scenario, system.scenario.network.links
    builders, storage = scenario.builders, scenario.storage
    event_bits = 8 * system.event.frame_bytes / system.event.wire_share
    largest = system.reply(max(system.fragments_bytes))
    bounds = {
        "source": links.source.rate * largest.wire_share / (8 * largest.frame_bytes),
        "uplink": links.uplink.rate * links.uplink.count / event_bits,
        "access": system.output_bps * builders.units / event_bits,
        "concurrent_events": builders.units
        * scenario.building.concurrent_events
        / (
            unloaded_latency_s(system)
            + sum(stage.mean for stage in builders.processing)
            + (storage.accepted * storing_s(system) if storage.units else 0.0)
        ),
    }
    if storage.units and storage.accepted:
        stored_bits = 8 * system.accepted_event.frame_bytes / system.accepted_event.wire_share
        bounds["storage"] = links.storage.rate * storage.units / stored_bits / storage.accepted
    if scenario.readout.message_cost:
        bounds["source_host"] = 1 / (2 * scenario.readout.message_cost)
    if builders.message_cost:
        event_s = 2 * scenario.readout.units * builders.message_cost
        bounds["builder_host"] = builders.units / event_s
    return bounds


def unloaded_latency_s(system: System) -> float:
    """Return the latency of an event alone in the network, if TCP windows and hosts cause no delay.
    The first request travels to a source, and the first frame of the reply to the ToR switch. From
    then on the slower of the builder's link and the ToR's input is busy until the last byte."""
    busy_bps = min(system.input_bps, system.output_bps)
    drain = 8 * system.event.frame_bytes / system.event.wire_share / busy_bps
    return first_byte_s(system) + drain + system.scenario.network.links.access.delay


def storing_s(system: System) -> float:
    """Return the time of an event alone in the network from its builder to a storage unit."""
    links = system.scenario.network.links
    path = links.access, links.uplink, links.storage
    slowest_bps = min(link.rate for link in path)
    drain_s = 8 * system.accepted_event.frame_bytes / system.accepted_event.wire_share / slowest_bps
    return drain_s + sum(link.delay for link in path)


def first_byte_s(system: System) -> float:
    """Return the time from an event's first request until its first frame is in the ToR switch."""
    scenario, links = system.scenario, system.scenario.network.links
    request = scenario.building.request_size + scenario.transport.header_bytes
    frame_bits = 8 * (system.event.mean_frame_bytes + WIRE_OVERHEAD_BYTES)
    return (
        system.way_s(request + FRAME_OVERHEAD_BYTES + WIRE_OVERHEAD_BYTES)
        + scenario.readout.response.mean
        + sum(link.delay + frame_bits / link.rate for link in (links.source, links.uplink))
    )
