"""The numbers of a scenario that the closed forms use."""

import math
from dataclasses import dataclass
from functools import cached_property
from heapq import nlargest

from daqloom.analyse.memory import Memory, memory_of
from daqloom.analyse.triangles import Triangle
from daqloom.scenario import Scenario
from daqloom.scenario.schema.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class Framing:
    """Frames of one message: payload, packets, bytes in a switch buffer, gap per frame."""

    payload_bytes: int
    packets: int
    frame_bytes: int
    gap_bytes: int

    @property
    def mean_frame_bytes(self) -> float:
        """Mean length of a frame as buffered."""
        return self.frame_bytes / self.packets

    @property
    def wire_share(self) -> float:
        """Share of a link's rate available to buffered bytes: frame/(frame + 20)."""
        return self.frame_bytes / (self.frame_bytes + self.gap_bytes * self.packets)


def framing(payload_bytes: int, segment_bytes: int, header_bytes: int, overhead: bool) -> Framing:
    """Cut a message into segments with at most `segment_bytes` of payload. `header_bytes` are the
    IPv4 and TCP headers of a segment: 40, or 52 with timestamps. Without `overhead` the frames are
    bare payload, as the published numbers assume."""
    packets = max(1, -(-payload_bytes // segment_bytes))
    if not overhead:
        return Framing(payload_bytes, packets, payload_bytes, 0)
    frame_bytes = payload_bytes + packets * (header_bytes + FRAME_OVERHEAD_BYTES)
    return Framing(payload_bytes, packets, frame_bytes, WIRE_OVERHEAD_BYTES)


@dataclass(frozen=True)
class System:
    """Rates and sizes of one rack. Link rates count bytes on the wire; those in `triangle` count
    buffered bytes, without preamble and gap."""

    scenario: Scenario

    @property
    def rate_hz(self) -> float:
        """f, events per second."""
        return self.scenario.event.rate

    @cached_property
    def fragments_bytes(self) -> tuple[int, ...]:
        """Payload of each source's part of a mean event, in whole bytes."""
        event, sources = self.scenario.event, self.scenario.readout.units
        if event.share == "equal":
            return (math.ceil(event.size / sources),) * sources
        return tuple(math.ceil(event.size * w / sum(event.share)) for w in event.share)

    @cached_property
    def event(self) -> Framing:
        """A mean event as frames."""
        replies = [self.reply(fragment) for fragment in self.fragments_bytes]
        return Framing(
            self.scenario.event.size,
            sum(reply.packets for reply in replies),
            # Fragments are rounded up to whole bytes, so their sum exceeds the mean event.
            self.scenario.event.size + sum(r.frame_bytes - r.payload_bytes for r in replies),
            replies[0].gap_bytes,
        )

    def reply(self, payload_bytes: int) -> Framing:
        """A message from a source to a builder as frames."""
        transport = self.scenario.transport
        return framing(payload_bytes, self.scenario.mss, transport.header_bytes, transport.overhead)

    @cached_property
    def accepted_event(self) -> Framing:
        """A mean event on its way to a storage unit, as frames."""
        return self.reply(self.scenario.event.size)

    @property
    def input_bps(self) -> float:
        """Wire rate into the ToR switch: the lower total rate of uplinks and sources."""
        links, sources = self.scenario.network.links, self.scenario.readout.units
        return min(links.uplink.rate * links.uplink.count, links.source.rate * sources)

    @property
    def sent_at_once_bps(self) -> float:
        """Wire rate at which `under_way_bytes` are sent to one builder, at most `input_bps`."""
        senders = min(len(self.under_way_bytes), self.scenario.readout.units)
        return min(self.input_bps, senders * self.scenario.network.links.source.rate)

    @property
    def output_bps(self) -> float:
        """Wire rate to one builder."""
        network = self.scenario.network
        rate, tor = network.links.access.rate, network.switch.tor
        if tor.architecture != "software" or not tor.pace:
            return rate
        if tor.pace_counts == "wire" or not self.scenario.transport.overhead:
            return min(rate, tor.pace)
        frame = self.event.mean_frame_bytes
        share = (frame + WIRE_OVERHEAD_BYTES) / (frame - FRAME_OVERHEAD_BYTES)
        return min(rate, tor.pace * share)

    @cached_property
    def triangle(self) -> Triangle:
        """The event in the buffer of the ToR switch: size S in buffered bytes, input rate I and
        output rate O in buffered bytes per time."""
        share = self.event.wire_share
        return Triangle(self.event.frame_bytes, self.input_bps * share, self.output_bps * share)

    @cached_property
    def rtt_s(self) -> float:
        """Round trip of a full frame and its acknowledgement through empty queues."""
        packets = self.scenario.network.mtu, self.scenario.transport.header_bytes
        return sum(
            self.way_s(each + FRAME_OVERHEAD_BYTES + WIRE_OVERHEAD_BYTES) for each in packets
        )

    def way_s(self, wire_bytes: int) -> float:
        """Return the latency of a frame between source and builder through two idle switches."""
        links = self.scenario.network.links
        path = links.source, links.uplink, links.access
        return sum(link.delay + 8 * wire_bytes / link.rate for link in path)

    @property
    def window_bytes(self) -> int:
        """Largest payload in flight of one connection."""
        transport = self.scenario.transport
        window = transport.receive_window
        return min(window, transport.static_window) if self.static else window

    @cached_property
    def under_way_bytes(self) -> list[int]:
        """Most data in flight to one builder, in bytes of frames, as a list of parts. A part
        belongs to a connection: its window or, if smaller, its fragments of concurrent events. If
        the limit on outstanding fragments is lower in total, a part is a requested fragment."""
        most, building = self.window_bytes, self.scenario.building
        events = building.concurrent_events
        windows = [self.reply(min(most, size * events)) for size in self.fragments_bytes]
        requested = nlargest(building.outstanding_fragments, self.fragments_bytes * events)
        fragments = [self.reply(min(most, size)) for size in requested]
        parts = [[part.frame_bytes for part in each] for each in (windows, fragments) if each]
        return min(parts, key=sum)

    @property
    def static(self) -> bool:
        """Whether windows are constant."""
        return self.scenario.transport.congestion == "static"

    @property
    def first_window_bytes(self) -> int:
        """Largest payload that a connection sends before the first acknowledgement."""
        if self.static:
            return self.window_bytes
        return min(self.window_bytes, self.scenario.transport.initial_window * self.scenario.mss)

    @property
    def is_in_turn(self) -> bool:
        """Whether events of one size go to the builders in turn."""
        scenario = self.scenario
        is_fixed = scenario.event.size_distribution == "fixed"
        return is_fixed and scenario.building.assignment == "round-robin"

    @cached_property
    def port_buffer_bytes(self) -> float | None:
        """Maximum occupancy of a ToR switch's port if all others are empty; None if unlimited."""
        most = self.tor_memory(self.scenario.network.links.uplink.count).most_bytes(0.0)
        return None if math.isinf(most) else most

    def tor_memory(self, inputs: int) -> Memory:
        """Return memory limits of the ToR switch for events that arrive evenly by `inputs`
        uplinks."""
        network = self.scenario.network
        ports = self.scenario.builders.units + network.links.uplink.count
        frame, is_paced = self.event.mean_frame_bytes, self.output_bps < network.links.access.rate
        return memory_of(network.switch.tor, ports, inputs, frame, is_paced)

    def core_memory(self, inputs: int) -> Memory:
        """Return the memory limits of the core switch for events from `inputs` sources of equal
        size."""
        network = self.scenario.network
        ports = self.scenario.readout.units + network.links.uplink.count
        return memory_of(network.switch.core, ports, inputs, self.event.mean_frame_bytes, False)
