"""Program of a storage unit, or of the sender of a builder unit's accepted events (MEPs); for each
step it reads a JSON line and answers with one.

`{"listen": NETWORK, "key": K, "generated": true}` opens the TCP socket of a storage unit and
returns its address and port; `{"output": NAME, …}` attaches a `Sender`. `{"count": true}` returns
the counts, `{"finish": true}` too, when no event is under way. On a connection, the key comes
first. A message is a `HEAD` and a MEP, and its answer an `ANSWER`."""

import json
import os
import socket
import socketserver
import struct
import sys
import threading
import time
from collections import Counter
from typing import Any

from daqloom import _engine
from daqloom.data.mep import Mep, MepState
from daqloom.machine.addresses import own_address
from daqloom.results.errors import MeasureError

KEY = struct.Struct("=Q")
HEAD = struct.Struct("=QQ")
"""Number of the MEP, and its size in bytes."""
ANSWER = struct.Struct("=Q?")
"""Number of the MEP, and whether its content is wrong."""
MOST_BYTES = 1 << 30
WAIT_S = 0.2
"""Interval at which an idle sender checks whether it should finish."""


class StorageUnit(socketserver.ThreadingTCPServer):
    """Receives, checks, acknowledges and counts events, with a thread for each connection."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, order: dict[str, Any]) -> None:
        address, self.order = own_address("", order["listen"]), order
        self.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__((address, 0), _Receiver)
        self.answer: Any = self.server_address[:2]
        self.lock, self.counts = threading.Lock(), Counter(received=0, received_bytes=0)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a broken connection: its sender sends the event again, or gives it up."""


class _Receiver(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    server: StorageUnit

    def handle(self) -> None:
        server = self.server
        if self.rfile.read(KEY.size) != KEY.pack(server.order["key"]):
            return
        while len(head := self.rfile.read(HEAD.size)) == HEAD.size:
            number, size_bytes = HEAD.unpack(head)
            if size_bytes > MOST_BYTES or len(packet := self.rfile.read(size_bytes)) < size_bytes:
                return
            is_wrong = not is_intact(packet, number, server.order["generated"])
            with server.lock:
                server.counts.update(received=1, received_bytes=size_bytes)
            self.wfile.write(ANSWER.pack(number, is_wrong))


def is_intact(packet: bytes, number: int, generated: bool) -> bool:
    """Return whether a packet is the MEP with this number, with well-formed MFPs of its events and
    sources, and, if `generated`, with the fragments that daqloom generates."""
    try:
        mep = Mep.decode(packet)
        for source, entry in enumerate(mep.entries):
            if entry.state == MepState.COMPLETE:
                front = _engine.decode_mfp(mfp := mep.place(source))
                if (front.event_id, front.source_id) != (mep.event_id, entry.source_id):
                    return False
                if generated and _engine.scan_pattern(mfp).fault is not None:
                    return False
    except ValueError:
        return False
    return bool(mep.number == number)


class Event:
    """Copy of a MEP, without the room between its MFPs. Raises ValueError for a malformed one."""

    def __init__(self, packet: memoryview) -> None:
        mep = Mep.decode(packet)
        mfps = [(e.source_id, e.state, mep.place(i)) for i, e in enumerate(mep.entries)]
        self.number, self.mfp_bytes = mep.number, sum(len(mfp) for _, _, mfp in mfps)
        self.packet = _engine.encode_mep(mep.number, mep.event_id, mep.events, mfps)


class Connection:
    """Connection to a storage unit, made when there is an event to store."""

    def __init__(self, address: tuple[str, int], order: dict[str, Any]) -> None:
        self._address, self._order = address, order
        self._socket = socket.socket()
        self._socket.close()

    def store(self, event: Event) -> bool | None:
        """Return whether the content that arrived is wrong; None without an answer in time."""
        order, until_s = self._order, time.monotonic() + self._order["timeout_s"]
        parts = [HEAD.pack(event.number, len(event.packet)), event.packet, b""]
        try:
            if self._socket.fileno() < 0:
                self._socket = socket.create_connection(self._address, order["timeout_s"])
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if name := order["congestion"].encode():
                    self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
                parts.insert(0, KEY.pack(order["key"]))
            for part in parts:
                self._socket.settimeout(max(1e-3, until_s - time.monotonic()))
                self._socket.sendall(part)
            answered, is_wrong = ANSWER.unpack(self._socket.recv(ANSWER.size))
            if answered == event.number:
                return bool(is_wrong)
        except (OSError, struct.error):
            pass
        self._socket.close()  # a late answer must not count for the next event
        return None


class Sender:
    """Reader of a builder unit's output, from a dictionary with its name, `output`; `storages`, the
    addresses and ports of storage units; `accepted`, `timeout_s` and `seed` as in a simulation;
    `window`, the number of accepted events under way at a time; `congestion` and `key`.

    Invariant: accepted = stored + unstored + under way. While `window` events are under way, no
    further event is taken from the output."""

    answer: Any = None

    def __init__(self, order: dict[str, Any]) -> None:
        self._order, self._storages = order, [(str(a), int(p)) for a, p in order["storages"]]
        self._rules = _engine.StorageRules(units=len(self._storages), accepted=order["accepted"])
        self._reader: _engine.BufferReader | None = None
        self._reading, self.lock, self._finishes = threading.Lock(), threading.Lock(), False
        names = ("accepted", "sent", "stored", "stored_bytes", "unstored", "wrong")
        self.counts = Counter(dict.fromkeys(names, 0))
        self._threads = [
            threading.Thread(target=self._store_all, daemon=True) for _ in range(order["window"])
        ]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait until the output has no more events, and none is under way."""
        self._finishes = True
        for thread in self._threads:
            thread.join()

    def _store_all(self) -> None:
        connections = [Connection(address, self._order) for address in self._storages]
        while event := self._next_accepted():
            sent, is_wrong = 0, None
            while sent < len(connections) and is_wrong is None:
                is_wrong = connections[(event.number + sent) % len(connections)].store(event)
                sent += 1
            if is_wrong is None:
                self._count(sent=sent, unstored=1)
            else:
                self._count(sent=sent, stored=1, stored_bytes=event.mfp_bytes, wrong=int(is_wrong))

    def _count(self, **more: int) -> None:
        with self.lock:
            self.counts.update(more)

    def _next_accepted(self) -> Event | None:
        """Return the next accepted event; None after the last one."""
        with self._reading:
            while True:
                try:
                    reader = self._reader or _engine.BufferReader(self._order["output"], WAIT_S)
                except ConnectionError:  # no unit serves this output, or not yet
                    if self._finishes:
                        return None
                    continue
                self._reader = reader
                if piece := reader.next():
                    is_accepted = self._rules.accepts(piece[0], self._order["seed"])
                    event = Event(piece[1]) if is_accepted else None
                    if reader.acknowledge() and event:
                        self._count(accepted=1)
                        return event
                elif reader.is_revoked or (reader.is_abandoned and not reader.is_at_end):
                    self._reader = None
                elif reader.is_at_end or (not reader.wait(WAIT_S) and self._finishes):
                    return None


def _end(args: threading.ExceptHookArgs) -> None:
    """End the process with the reason for which a thread has failed."""
    print(args.exc_value, file=sys.stderr, flush=True)
    os._exit(1)


def main() -> None:
    """Answer one line after the other until the input ends."""
    threading.excepthook = _end
    step = json.loads(sys.stdin.readline())
    program = StorageUnit(step) if "listen" in step else Sender(step)
    print(json.dumps(program.answer), flush=True)
    for line in sys.stdin:
        if "finish" in json.loads(line) and isinstance(program, Sender):
            program.finish()
        with program.lock:
            print(json.dumps(program.counts), flush=True)


if __name__ == "__main__":
    try:
        main()
    except (MeasureError, OSError) as error:
        sys.exit(str(error))
