"""A sink that accepts a share of the built events (MEPs) of a running unit, and sends them to
storage units.

python storage_sink.py daqloom/RUN/UNIT/output SHARE SEED HOST:PORT...

With SHARE as `storage.accepted`, SEED as `run.seed` and as many addresses as `storage.units`, it
accepts the events that a simulation of pull building accepts, and sends each to the same storage
unit. Replace `rules.accepts` by your own selection.
"""

import socket
import struct
import sys

from daqloom.buffers import BufferReader, StorageRules

TIMEOUT_S = 1.0


class Storage:
    """A storage unit at an address, to which it connects when there is an event to store."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self.address, self.socket = (host, int(port)), socket.socket()
        self.socket.close()

    def store(self, number: int, packet: bytes) -> bool:
        """Return whether the storage unit has acknowledged the MEP in time."""
        try:
            if self.socket.fileno() < 0:
                self.socket = socket.create_connection(self.address, TIMEOUT_S)
            self.socket.sendall(struct.pack("<Q", len(packet)) + packet)
            if self.socket.recv(8, socket.MSG_WAITALL) == struct.pack("<Q", number):
                return True
        except OSError:
            pass
        self.socket.close()  # a late answer must not count for the next event
        return False


def main(name: str, share: str, seed: str, *addresses: str) -> None:
    """Take MEPs until the unit ends."""
    rules = StorageRules(units=len(addresses), accepted=float(share))
    storages = [Storage(address) for address in addresses]
    reader = BufferReader(name)
    meps = accepted = stored = 0
    while not reader.is_at_end:
        piece = reader.next()
        if piece is None:
            if reader.is_abandoned:
                break
            reader.wait(timeout_s=1)
            continue
        number, packet = piece
        if rules.accepts(number, int(seed)):
            first = number % len(storages)
            in_turn = storages[first:] + storages[:first]
            accepted += 1
            stored += any(storage.store(number, bytes(packet)) for storage in in_turn)
        reader.acknowledge()
        meps += 1
    print(f"{meps} MEPs, {accepted} accepted, {stored} stored")


if __name__ == "__main__":
    main(*sys.argv[1:])
