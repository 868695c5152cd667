"""A sink of one's own: takes the built events (MEPs) of a running unit, and counts their bytes.

python sink.py daqloom/RUN/UNIT/output [samples]

With `samples` it reads copies of some events beside the unit's sink, and holds back no consumer.
"""

import sys
from collections import Counter

from daqloom.buffers import BufferReader
from daqloom.data import Mep


def main(name: str, samples: bool) -> None:
    """Take MEPs until the unit ends."""
    reader = BufferReader(name, samples=samples)
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
        sizes = {entry.source_id: entry.nbytes for entry in Mep.decode(packet).entries}
        if not reader.acknowledge():  # from here on its memory belongs to the unit again
            break  # the unit has given the MEP to another consumer: this one took too long
        by_source.update(sizes)
        meps += 1
    for source, size in sorted(by_source.items()):
        print(f"source {source}: {size} bytes")
    print(f"{meps} MEPs")


if __name__ == "__main__":
    main(sys.argv[1], samples="samples" in sys.argv[2:])
