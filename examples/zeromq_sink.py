"""A sink that sends the built events (MEPs) of a running unit over ZeroMQ.

python zeromq_sink.py daqloom/RUN/UNIT/output ADDRESS

Each message is a MEP, for one of the receivers that pull from the address; an empty message ends
the data.
"""

import sys

import zmq

from daqloom.buffers import BufferReader


def main(name: str, address: str) -> None:
    """Send MEPs until the unit ends."""
    reader = BufferReader(name)
    socket = zmq.Context.instance().socket(zmq.PUSH)
    socket.connect(address)
    meps = 0
    while not reader.is_at_end:
        piece = reader.next()
        if piece is None:
            if reader.is_abandoned:
                break
            reader.wait(timeout_s=1)
            continue
        socket.send(bytes(piece[1]))
        reader.acknowledge()  # ZeroMQ has a copy
        meps += 1
    socket.send(b"")
    socket.close()
    zmq.Context.instance().term()
    print(f"{meps} MEPs")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
