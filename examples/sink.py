"""A sink of one's own: takes the built events (MEPs) of a running unit, and counts their bytes.

python sink.py daqloom/RUN/UNIT/output
"""

import sys
from collections import Counter

from daqloom.buffers import BufferReader
from daqloom.data import Mep


def main(name: str) -> None:
    """Take MEPs until the unit ends."""
    reader = BufferReader(name)
    by_source: Counter[int] = Counter()
    meps = 0
    while not reader.is_at_end:
        piece = reader.next()
        if piece is None:
            if reader.is_abandoned:
                break
            reader.wait(timeout_s=1)
            continue
        _, packet = piece
        for entry in Mep.decode(packet).entries:
            by_source[entry.source_id] += entry.nbytes
        meps += 1
        reader.acknowledge()  # from here on its memory belongs to the unit again
    for source, size in sorted(by_source.items()):
        print(f"source {source}: {size} bytes")
    print(f"{meps} MEPs")


if __name__ == "__main__":
    main(sys.argv[1])
