"""Protocol overhead: the Ethernet frames of an event's payload."""

from dataclasses import dataclass

from daqloom.scenario.links import FRAME_OVERHEAD_BYTES, WIRE_OVERHEAD_BYTES


@dataclass(frozen=True, slots=True)
class Framing:
    """Frames of one message: payload, number of packets, bytes that a buffer holds."""

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
    """Cuts a message into segments of at most `segment_bytes` of payload. `header_bytes` are the
    IPv4 and TCP headers of a segment: 40, or 52 with timestamps. Without `overhead` the frames are
    bare payload, as the published numbers take them."""
    packets = max(1, -(-payload_bytes // segment_bytes))
    headers = packets * (header_bytes + FRAME_OVERHEAD_BYTES) if overhead else 0
    return Framing(
        payload_bytes, packets, payload_bytes + headers, WIRE_OVERHEAD_BYTES if overhead else 0
    )
