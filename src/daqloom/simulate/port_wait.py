"""Size of a switch's input buffer, from the waiting time of a port that fills it (PortXmitWait).

A stream saturates a switch output. A burst from another host takes a share of that output, and as
many bytes of the stream accumulate in the input buffer at the end of the stream's link. If n
packets of the stream fit, packet j starts when the credits of packet j − n return: `loop` after the
start of packet j − n, delayed by the burst's time on the wire. If the port waits at all,

    waited = burst − (n · packet − loop)        all in time on the wire

See docs/explanation/infiniband-model.md.
"""

import math
from dataclasses import dataclass

from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.transport import BLOCK_BYTES

ROUNDING = 1e-3
"""Rounding error as a share of a packet's time; the engine counts whole picoseconds."""


@dataclass(frozen=True)
class Probe:
    """A measurement of PortXmitWait. All byte counts are on the wire, with headers."""

    rate_bps: float
    packet_bytes: int
    """Bytes of each packet of the stream."""
    burst_bytes: int
    """Bytes of all packets of the burst together."""
    loop_s: float
    """Time from the start of a packet until its credits return, without contention."""
    outstanding: int
    """Limit on the stream's packets in flight at the source; the limit must exceed the buffer."""
    error_s: float = 0.0
    """Error bound of `loop_s` and of the waiting time, in both directions (s)."""

    def bounds(self, waited_s: float) -> tuple[int | None, int | None]:
        """Return the lower and upper bound of the buffer (B), from the port's total waiting time.

        A buffer consists of whole blocks; a remainder too small for a packet cannot be measured.
        Without waiting there is no upper bound. Both are unknown if the buffer does not cover the
        loop, so the port waits even without a burst, or if the source may have run dry."""
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

    The stream is endless, at full speed, with one packet per message. The burst goes to the same
    host on the same lane, all its messages together. The caller ensures that both flows share the
    one switch behind their links."""
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
