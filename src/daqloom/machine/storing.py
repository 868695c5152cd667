"""Program of a storage unit, and of the sender that accepts events of a builder unit for storage;
for each step it reads a JSON line and answers with one.

`{"listen": NETWORK, "key": K, "generated": G}` opens a TCP socket and returns its address.
`{"accept": ORDERS}` reads the output of a builder unit on this host and sends accepted events, see
`Sender`. `{"count": true}` returns the counts. Only connections that begin with the key K are
served.

A message is the size of an event (MEP) in 8 bytes and the event; its answer is the event's number
in 8 bytes, when the event has been checked."""

import ipaddress
import json
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from daqloom import _engine
from daqloom._engine import BufferReader, StorageRules
from daqloom.data import Mep
from daqloom.machine.addresses import own_address
from daqloom.results.errors import MeasureError

MOST_BYTES = 1 << 30
RETRY_S = 0.02
"""Time between two attempts to attach to an output that is not yet served."""
_WORD = struct.Struct("=Q")


@dataclass
class StoredCount:
    """Events at storage units and at senders."""

    accepted: int = 0
    stored: int = 0
    """Acknowledged by a storage unit."""
    unstored: int = 0
    """Given up, because no storage unit has acknowledged them."""
    payload_bytes: int = 0
    """Payload of the acknowledged events."""
    received: int = 0
    """Events at storage units; those sent to two units count twice."""
    wrong: int = 0
    """Received events with malformed packets or other bytes than the source has generated."""

    def plus(self, other: "StoredCount") -> "StoredCount":
        """Return the sum."""
        both = {name: value + getattr(other, name) for name, value in vars(self).items()}
        return StoredCount(**both)


class StorageUnit:
    """TCP server that receives, checks and acknowledges events; `generated`: all fragments are
    generated data, which is checked too."""

    def __init__(self, network: str, key: int, *, generated: bool) -> None:
        address, self._key, self._generated = own_address("", network), key, generated
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
        self._server = socket.create_server((address, 0), family=family, backlog=1024)
        self.address = {"address": address, "port": self._server.getsockname()[1]}
        self.count, self._lock = StoredCount(), threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            end, _ = self._server.accept()
            threading.Thread(target=self._serve, args=(end,), daemon=True).start()

    def _serve(self, end: socket.socket) -> None:
        with end, suppress(OSError), end.makefile("rb") as messages:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if messages.read(_WORD.size) != _WORD.pack(self._key):
                return
            while len(head := messages.read(_WORD.size)) == _WORD.size:
                (size_bytes,) = _WORD.unpack(head)
                if size_bytes > MOST_BYTES or len(event := messages.read(size_bytes)) < size_bytes:
                    return
                number = self._store(event)
                if number is not None:
                    end.sendall(_WORD.pack(number))

    def _store(self, event: bytes) -> int | None:
        """Return the number of an event; None for malformed bytes."""
        try:
            mep = Mep.decode(event)
            places = [mep.place(n) for n in range(len(mep))] if self._generated else []
            scans = [_engine.scan_pattern(place) for place in places if place]
        except ValueError:
            mep, scans = None, []
        with self._lock:
            self.count.received += 1
            self.count.wrong += mep is None or any(scan.fault is not None for scan in scans)
        return mep.number if mep else None


class Sender:
    """Consumer of a builder unit's output, the buffer `output`. Sends accepted events to the
    storage units `storages` (address and port each): first to that of the event's number, and
    after `timeout_s` without acknowledgement to the next. `accepted` and `seed`: see
    `StorageRules`."""

    def __init__(self, orders: dict[str, Any], key: int) -> None:
        self._orders, self._key, self.count = orders, key, StoredCount()
        self._storages: list[tuple[str, int]] = [(str(a), int(p)) for a, p in orders["storages"]]
        self._connections: dict[int, socket.socket] = {}
        self._rules = StorageRules(units=len(self._storages), accepted=orders["accepted"])
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:  # the output is served anew after each regrouping
            try:
                reader = BufferReader(self._orders["output"], RETRY_S)
            except (OSError, ValueError):
                time.sleep(RETRY_S)
                continue
            self._read(reader)

    def _read(self, reader: BufferReader) -> None:
        while not (reader.is_at_end or reader.is_abandoned or reader.is_revoked):
            if (piece := reader.next()) is None:
                reader.wait(timeout_s=0.1)
                continue
            number, event = piece
            if self._rules.accepts(number, self._orders["seed"]):
                self._store(number, bytes(event))
            reader.acknowledge()

    def _store(self, number: int, event: bytes) -> None:
        self.count.accepted += 1
        units = len(self._storages)
        if any(self._send((number + i) % units, number, event) for i in range(units)):
            mep = Mep.decode(event)
            mfps = [mfp for n in range(len(mep)) if (mfp := mep.mfp(n))]
            self.count.payload_bytes += sum(len(data) for mfp in mfps for _, data in mfp)
            self.count.stored += 1
        else:
            self.count.unstored += 1

    def _send(self, unit: int, number: int, event: bytes) -> bool:
        """Return whether a storage unit has acknowledged the event in time."""
        timeout_s = self._orders["timeout_s"]
        try:
            if unit not in self._connections:
                self._connections[unit] = socket.create_connection(self._storages[unit], timeout_s)
                self._connections[unit].sendall(_WORD.pack(self._key))
            end = self._connections[unit]
            end.sendall(_WORD.pack(len(event)) + event)
            if end.recv(_WORD.size, socket.MSG_WAITALL) == _WORD.pack(number):
                return True
        except OSError:
            pass
        if end_of := self._connections.pop(unit, None):
            end_of.close()  # a late answer must not count for the next event
        return False


def main() -> int:
    """Answer one line after the other until the input ends."""
    unit: StorageUnit | None = None
    senders: list[Sender] = []
    key = 0
    for line in sys.stdin:
        step = json.loads(line)
        answer: dict[str, Any] = {}
        if "listen" in step:
            key = step["key"]
            unit = StorageUnit(step["listen"], key, generated=step["generated"])
            answer = unit.address
        elif "accept" in step:
            senders.append(Sender(step["accept"], key))
        else:
            count = replace(unit.count) if unit else StoredCount()
            for sender in senders:
                count = count.plus(sender.count)
            answer = vars(count)
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MeasureError, OSError) as error:
        sys.exit(str(error))
