"""The size of a switch's input buffer, from how long a port that fills it waited (PortXmitWait).

A stream takes all of an output; a burst from elsewhere takes its share of the same output, and as
much of the stream piles up in the buffer behind the stream's link. Where n packets of the stream
fit, packet j starts when the credits of packet j − n are back: `loop` after that one's start, and
later by the time that the burst takes on the wire. So, as soon as there is any waiting,

    waited = burst − (n · packet − loop)        all in time on the wire

See docs/explanation/infiniband-model.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daqloom.scenario.infiniband import BLOCK_BYTES

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario

ROUNDING = 1e-3
"""Of a packet: times are whole picoseconds."""


@dataclass(frozen=True)
class Probe:
    """What whoever measures knows. Bytes are those on the wire, headers included."""

    rate_bps: float
    packet_bytes: int
    """Of each packet of the stream."""
    burst_bytes: int
    """All packets of the burst together."""
    loop_s: float
    """From the start of a packet until its credits are back, where nothing is in its way."""
    outstanding: int
    """Packets that the stream's source may have under way; it has to fill the buffer."""
    error_s: float = 0.0
    """By which `loop_s` and what was waited may be off, either way."""

    def holds(self, waited_s: float) -> tuple[int, int | None] | None:
        """The least and the most that the buffer holds (B), if the port waited so long in all.

        A buffer is whole blocks, and what holds no further packet of the stream cannot be told
        from less. Without any waiting there is no most. None where the port waits without a burst
        too, because the buffer does not cover the loop, or if the source may have run dry.
        """
        packet_s = 8 * self.packet_bytes / self.rate_bps
        loop = self.loop_s / packet_s
        fitting = (8 * self.burst_bytes / self.rate_bps - waited_s) / packet_s + loop
        error = self.error_s / packet_s + ROUNDING
        if fitting < loop - error or fitting + 2 * loop > self.outstanding:
            return None
        blocks = -(-self.packet_bytes // BLOCK_BYTES)
        least = math.ceil(fitting - error)
        if waited_s <= 0:
            return least * blocks * BLOCK_BYTES, None
        most = max(least, math.floor(fitting + error))
        return least * blocks * BLOCK_BYTES, ((most + 1) * blocks - 1) * BLOCK_BYTES


def probe_of(scenario: FabricScenario) -> tuple[str, str, Probe] | None:
    """The names of stream and burst, and what is known of them, if these are the two flows.

    The stream is without end, as fast as it goes, and each message a packet; the burst goes to the
    same host on the same lane, all at once. None where acknowledges come in their way, or for any
    other flows. That both share the one switch behind their links is for the caller to see to.
    """
    fabric, flows = scenario.fabric, scenario.flows
    endless = [name for name, flow in flows.items() if flow.messages == 0]
    counted = [name for name, flow in flows.items() if flow.messages > 0]
    if len(endless) != 1 or len(counted) != 1 or scenario.nodes.connection == "reliable":
        return None
    stream, burst = flows[endless[0]], flows[counted[0]]
    lanes = {fabric.lanes.of(flow.service_level) for flow in (stream, burst)}
    if stream.destination != burst.destination or len(lanes) > 1:
        return None
    if stream.interval or stream.load or burst.interval or burst.load or stream.size > fabric.mtu:
        return None
    packet = fabric.wire_bytes(stream.size)
    on_wire = min(packet, BLOCK_BYTES) + packet + fabric.credit_update_size
    probe = Probe(
        rate_bps=fabric.rate,
        packet_bytes=packet,
        burst_bytes=burst.messages * fabric.wire_bytes(burst.size),
        loop_s=2 * fabric.delay + fabric.switch_latency + 8 * on_wire / fabric.rate,
        outstanding=stream.outstanding,
        error_s=fabric.credit_update_interval,
    )
    return endless[0], counted[0], probe
