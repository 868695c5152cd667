"""Size of a switch's input buffer, from the waiting time of a port that fills it (PortXmitWait).

A stream fills an output; a burst from another host takes its share of that output, and as much of
the stream piles up in the buffer behind the stream's link. If n packets of the stream fit, packet j
starts when the credits of packet j − n are back: `loop` after the start of packet j − n, and later
by the time of the burst on the wire. As soon as there is any waiting,

    waited = burst − (n · packet − loop)        all in time on the wire

See docs/explanation/infiniband-model.md.
"""

import math
from dataclasses import dataclass

from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.transport import BLOCK_BYTES

ROUNDING = 1e-3
"""Rounding error, relative to a packet's time: the engine counts whole picoseconds."""


@dataclass(frozen=True)
class Probe:
    """A measurement of PortXmitWait. Bytes are those on the wire, headers included."""

    rate_bps: float
    packet_bytes: int
    """Bytes of each packet of the stream."""
    burst_bytes: int
    """Bytes of all packets of the burst together."""
    loop_s: float
    """Time from the start of a packet until its credits are back, without contention."""
    outstanding: int
    """Packets that the stream's source may have in flight; they have to fill the buffer."""
    error_s: float = 0.0
    """Error of `loop_s` and of the waiting time, either way."""

    def bounds(self, waited_s: float) -> tuple[int | None, int | None]:
        """Return the lower and upper bound of the buffer (B), from the port's total waiting time.

        A buffer is whole blocks; a remainder that holds no packet of the stream cannot be measured.
        Without waiting there is no upper bound. Neither bound is known if the port waits without a
        burst too, as the buffer does not cover the loop, or if the source may have run dry."""
        packet_s = 8 * self.packet_bytes / self.rate_bps
        loop = self.loop_s / packet_s
        fitting = (8 * self.burst_bytes / self.rate_bps - waited_s) / packet_s + loop
        error = self.error_s / packet_s + ROUNDING
        if fitting < loop - error or fitting + 2 * loop > self.outstanding:
            return None, None
        blocks = -(-self.packet_bytes // BLOCK_BYTES)
        least = math.ceil(fitting - error)
        if waited_s <= 0:
            return least * blocks * BLOCK_BYTES, None
        most = max(least, math.floor(fitting + error))
        return least * blocks * BLOCK_BYTES, ((most + 1) * blocks - 1) * BLOCK_BYTES


def probe_of(scenario: Scenario) -> tuple[str, str, Probe] | None:
    """Return the names of stream and burst and their probe; None for other flows, or with
    acknowledgements.

    The stream is endless, at full speed, one packet a message; the burst goes to the same host on
    the same lane, all at once. The caller ensures that both share the one switch behind their
    links."""
    network, transport, flows = scenario.network, scenario.transport, scenario.flows
    if network.technology != "infiniband":
        return None
    endless = [name for name, flow in flows.items() if flow.messages == 0]
    counted = [name for name, flow in flows.items() if flow.messages > 0]
    if len(endless) != 1 or len(counted) != 1 or transport.connection == "reliable":
        return None
    stream, burst = flows[endless[0]], flows[counted[0]]
    lanes = {network.lanes.lane_of(flow.service_level) for flow in (stream, burst)}
    if stream.destination != burst.destination or len(lanes) > 1:
        return None
    is_paced = any(flow.interval or flow.load for flow in (stream, burst))
    if is_paced or stream.size > transport.mtu:
        return None
    packet = transport.write_bytes(stream.size)
    on_wire = min(packet, BLOCK_BYTES) + packet + network.switch.credit_update_size
    probe = Probe(
        rate_bps=network.links.rate,
        packet_bytes=packet,
        burst_bytes=burst.messages * transport.write_bytes(burst.size),
        loop_s=2 * network.links.delay + network.switch.latency + 8 * on_wire / network.links.rate,
        outstanding=stream.outstanding,
        error_s=network.switch.credit_update_interval,
    )
    return endless[0], counted[0], probe
