"""The size of a switch's input buffer, from how long a port that fills it waited (PortXmitWait).

A stream takes all of an output; a burst from elsewhere takes its share of the same output, and as
much of the stream piles up in the buffer behind the stream's link. Where n packets of the stream
fit, packet j starts when the credits of packet j − n are back: `loop` after that one's start, and
later by the time that the burst takes on the wire. So, as soon as there is any waiting,

    waited = burst − (n · packet − loop)        all in time on the wire

See docs/explanation/infiniband-model.md.
"""

import math
from dataclasses import dataclass

from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.transport import BLOCK_BYTES

ROUNDING = 1e-3
"""Rounding error of a packet's time (s): the engine counts whole picoseconds."""


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

    def holds(self, waited_s: float) -> tuple[int, int | None] | None:
        """Return the lower and upper bound of the buffer (B), from the port's total waiting time.

        A buffer is whole blocks, and a remainder that holds no further packet of the stream cannot
        be measured. Without any waiting there is no upper bound. None where the port waits without
        a burst too, because the buffer does not cover the loop, or if the source may have run dry.
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


def probe_of(scenario: Scenario) -> tuple[str, str, Probe] | None:
    """Return the names of stream and burst and their probe, if the flows are such a pair.

    The stream is endless, at full speed, and each message is one packet; the burst goes to the
    same host on the same lane, all at once. None where acknowledges interfere, or for any other
    flows. The caller has to ensure that both share the one switch behind their links.
    """
    network, transport, flows = scenario.network, scenario.transport, scenario.flows
    if network.technology != "infiniband":
        return None
    endless = [name for name, flow in flows.items() if flow.messages == 0]
    counted = [name for name, flow in flows.items() if flow.messages > 0]
    if len(endless) != 1 or len(counted) != 1 or transport.connection == "reliable":
        return None
    stream, burst = flows[endless[0]], flows[counted[0]]
    lanes = {network.lanes.of(flow.service_level) for flow in (stream, burst)}
    if stream.destination != burst.destination or len(lanes) > 1:
        return None
    if (
        stream.interval
        or stream.load
        or burst.interval
        or burst.load
        or stream.size > transport.mtu
    ):
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
