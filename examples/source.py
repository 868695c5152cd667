"""A source of one's own: brings multi-fragment packets (MFPs) to a stream of a running unit.

python source.py daqloom/RUN/UNIT/stream-0 SOURCE_ID PACKING MFPS

The "detector" counts: each fragment holds the number of its event as text. MFP k holds the events
from k x PACKING on; its number k is the tag of its piece.
"""

import sys

from daqloom.buffers import BufferWriter
from daqloom.data import Mfp


def main(name: str, source_id: int, packing: int, mfps: int) -> None:
    """Bring MFPs of counted events."""
    writer = BufferWriter(name)
    for mfp in range(writer.committed, mfps):
        events = range(mfp * packing, (mfp + 1) * packing)
        packet = Mfp(
            event_id=events.start,
            source_id=source_id,
            fragments=tuple((1, f"event {event}".encode()) for event in events),
        ).encode()
        while (room := writer.reserve(len(packet))) is None:
            writer.wait(timeout_s=1)  # the unit has not yet taken what is in the buffer
            if writer.is_abandoned:
                raise SystemExit("source.py: the unit is gone")
        room[:] = packet
        writer.commit(mfp, len(packet))
    writer.close()
    print(f"{mfps} MFPs")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
