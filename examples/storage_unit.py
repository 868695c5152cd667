"""A storage unit: writes the events (MEPs) that it receives to a file, until Ctrl-C.

python storage_unit.py FILE.mep [HOST:PORT]

A message is the size of a MEP in 8 bytes and the MEP. Its answer is the number of the MEP in 8
bytes, as soon as the MEP is in the file.
"""

import socketserver
import struct
import sys
import threading
from pathlib import Path

from daqloom.data import Mep

MOST_BYTES = 1 << 30


class StorageUnit(socketserver.ThreadingTCPServer):
    """Serves one connection for each sender, and has the file that all of them fill."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], path: Path) -> None:
        super().__init__(address, Connection)
        self.part = path.with_name(f"{path.name}.part")
        self.file, self.lock, self.meps = self.part.open("xb", buffering=0), threading.Lock(), 0

    def store(self, packet: bytes) -> None:
        """Write a MEP."""
        with self.lock:
            self.file.write(packet)
            self.meps += 1


class Connection(socketserver.StreamRequestHandler):
    """Stores MEPs until the sender ends, or sends something else."""

    def handle(self) -> None:
        """Receive, store and acknowledge MEPs."""
        assert isinstance(self.server, StorageUnit)
        while len(head := self.rfile.read(8)) == 8:
            (size,) = struct.unpack("<Q", head)
            if size > MOST_BYTES:
                return print(f"a MEP of {size} B is refused; expected 1 GiB at most")
            packet = self.rfile.read(size)
            try:
                mep = Mep.decode(packet)
            except ValueError as error:
                return print(error)
            self.server.store(packet)
            self.wfile.write(struct.pack("<Q", mep.number))


def main(file: str, address: str = "127.0.0.1:0") -> None:
    """Serve until Ctrl-C, and give the file its name."""
    host, _, port = address.rpartition(":")
    with StorageUnit((host, int(port)), Path(file)) as unit:
        print(f"{host}:{unit.server_address[1]}", flush=True)
        try:
            unit.serve_forever()
        except KeyboardInterrupt:
            unit.file.close()
            unit.part.rename(file)
            print(f"{unit.meps} MEPs")


if __name__ == "__main__":
    main(*sys.argv[1:])
