"""A source that receives fragments over ZeroMQ and writes them to a stream of a running unit.

python zeromq_source.py daqloom/RUN/UNIT/stream-0 SOURCE_ID PACKING ADDRESS

Each message is the fragment of the next event; an empty message ends the data. Events that do not
fill a multi-fragment packet at the end are left out.
"""

import sys

import zmq

from daqloom.buffers import BufferWriter
from daqloom.data import Mfp


def main(name: str, source_id: int, packing: int, address: str) -> None:
    """Pack the fragments of a ZeroMQ PULL socket."""
    writer = BufferWriter(name)
    socket = zmq.Context.instance().socket(zmq.PULL)
    socket.connect(address)
    mfp, fragments = writer.committed, []
    while payload := socket.recv():
        fragments.append((1, payload))
        if len(fragments) < packing:
            continue
        packet = Mfp(mfp * packing, source_id, tuple(fragments)).encode()
        while (room := writer.reserve(len(packet))) is None:
            writer.wait(timeout_s=1)  # ZeroMQ holds back the sender meanwhile
            if writer.is_abandoned:
                raise SystemExit("zeromq_source.py: the unit is gone")
        room[:] = packet
        writer.commit(mfp, len(packet))
        mfp, fragments = mfp + 1, []
    writer.close()
    print(f"{mfp} MFPs")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
