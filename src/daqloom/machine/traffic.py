"""Program that sends the messages of flows from a host and receives those to it; for each step it
reads a JSON line and answers with one.

`{"listen": NETWORK, "key": K}` opens a TCP and a UDP socket and returns their address and ports.
`{"send": FLOW}` begins to send the messages of a flow, see `Sender`. `{"count": true}` returns the
counts of all flows. Only connections and datagrams with the key K are counted. The program ends
when a flow cannot be sent."""

import ipaddress
import json
import os
import random
import socket
import struct
import sys
import threading
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from daqloom.machine.addresses import own_address
from daqloom.machine.burst import BUFFER_BYTES, MOST_CALL_BYTES, SO_RXQ_OVFL, UDP_SEGMENT
from daqloom.results.errors import MeasureError

HEADER = struct.Struct("=QHHQIH")
"""Key, number of the flow, number of the source, number of the message for this destination,
datagrams of the message, padding; the first bytes of a connection and of each datagram."""
MOST_WRITE_BYTES = 1 << 20
SMALL_BUFFER_BYTES = 4 << 20
"""Above this, the kernel chooses the size of a connection's send buffer."""
SO_SNDBUFFORCE = 32


@dataclass
class Count:
    """Messages of a flow at one of its hosts."""

    messages: int = 0
    size_bytes: int = 0
    lost: int = 0
    behind_s: float = 0.0
    """Time since the next message of a sender has been due."""


class Receiver:
    """TCP and UDP sockets of this host, and the messages that have come."""

    def __init__(self, network: str, key: int) -> None:
        address, self._key = own_address("", network), key
        family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
        self._stream = socket.create_server((address, 0), family=family, backlog=1024)
        self._datagrams = socket.socket(family, socket.SOCK_DGRAM)
        self._datagrams.setsockopt(socket.SOL_SOCKET, SO_RXQ_OVFL, 1)
        self._datagrams.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self._datagrams.bind((address, 0))
        ports = [each.getsockname()[1] for each in (self._stream, self._datagrams)]
        self.address = {"address": address, "tcp": ports[0], "udp": ports[1]}
        self.streams: list[tuple[int, int, Count]] = []
        """Number of the flow, size of its messages (bytes) and count of each connection."""
        self.datagrams: dict[int, Count] = defaultdict(Count)
        self.overflowed = 0
        """Datagrams that found the buffer of this host's socket full."""
        for target in (self._accept, self._receive_datagrams):
            threading.Thread(target=target, daemon=True).start()

    def _accept(self) -> None:
        while True:
            end, _ = self._stream.accept()
            threading.Thread(target=self._receive_stream, args=(end,), daemon=True).start()

    def _receive_stream(self, end: socket.socket) -> None:
        with end, suppress(OSError):
            end.settimeout(10)
            first = end.recv(HEADER.size, socket.MSG_WAITALL)
            if len(first) < HEADER.size or HEADER.unpack(first)[0] != self._key:
                return
            end.settimeout(None)
            _, flow, _, size_bytes, _, _ = HEADER.unpack(first)
            count, room = Count(), bytearray(MOST_WRITE_BYTES)
            self.streams.append((flow, size_bytes, count))
            while got := end.recv_into(room):
                count.size_bytes += got

    def _receive_datagrams(self) -> None:
        current: dict[tuple[int, int], list[int]] = defaultdict(lambda: [-1, 0])
        """By flow and source: number of the latest message, and its datagrams that are missing."""
        while True:
            data, ancillary, _, _ = self._datagrams.recvmsg(65536, 64)
            for _, kind, value in ancillary:
                if kind == SO_RXQ_OVFL:
                    (self.overflowed,) = struct.unpack("=I", value[:4])
            if len(data) < HEADER.size:
                continue
            key, flow, source, message, parts, _ = HEADER.unpack_from(data)
            if key != self._key:
                continue
            count, latest = self.datagrams[flow], current[flow, source]
            if message > latest[0]:  # what has not come of earlier ones is lost
                count.lost += message - latest[0] - 1 + (latest[1] > 0)
                latest[:] = [message, parts]
            if message == latest[0]:
                latest[1] -= 1
                count.size_bytes += len(data)
                count.messages += latest[1] == 0


class Sender:
    """Source of a flow's messages, from a dictionary with its `number` and that of the `source`,
    its `destinations` (address and port each), `size`, `messages` (0: unlimited), `interval_s`,
    `poisson`, `start_s`, `outstanding`, `datagram_bytes` (0: over TCP), `congestion` and `seed`."""

    def __init__(self, flow: dict[str, Any], key: int) -> None:
        self._flow, self._key, self.count = flow, key, Count()
        self.number = int(flow["number"])
        self._random = random.Random(flow["seed"])
        self._sent = [0] * len(flow["destinations"])
        self._due_s = time.monotonic() + flow["start_s"]
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def behind_s(self) -> float:
        """Time since the next message has been due; 0 after the last one, or without intervals."""
        flow = self._flow
        is_over = flow["messages"] and self.count.messages >= flow["messages"]
        return max(0.0, time.monotonic() - self._due_s) if flow["interval_s"] and not is_over else 0

    def _run(self) -> None:
        try:
            self._send_all()
        except OSError as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)

    def _send_all(self) -> None:
        flow, count = self._flow, self.count
        send = self._datagrams() if flow["datagram_bytes"] else self._streams()
        while not flow["messages"] or count.messages < flow["messages"]:
            if (wait_s := self._due_s - time.monotonic()) > 0:
                time.sleep(wait_s)
            to = self._random.randrange(len(self._sent))
            send(to)
            self._sent[to] += 1
            count.messages += 1
            count.size_bytes += flow["size"]
            mean_s = flow["interval_s"]
            poisson = mean_s and flow["poisson"]
            self._due_s += self._random.expovariate(1 / mean_s) if poisson else mean_s

    def _streams(self) -> Any:
        flow, connections = self._flow, []
        size_bytes = flow["size"]
        for address, port in flow["destinations"]:
            end = socket.create_connection((address, port))
            if flow["outstanding"] * size_bytes < SMALL_BUFFER_BYTES:  # the kernel doubles it
                room = flow["outstanding"] * size_bytes // 2
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
            if flow["congestion"]:
                name = flow["congestion"].encode()
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name)
            end.sendall(HEADER.pack(self._key, self.number, flow["source"], size_bytes, 0, 0))
            connections.append(end)
        room = memoryview(bytes(min(size_bytes, MOST_WRITE_BYTES)))

        def send(to: int) -> None:
            for begin in range(0, size_bytes, len(room)):
                connections[to].sendall(room[: size_bytes - begin])

        return send

    def _datagrams(self) -> Any:
        flow = self._flow
        size_bytes, most = flow["size"], flow["datagram_bytes"]
        targets = [(str(address), int(port)) for address, port in flow["destinations"]]
        family = socket.AF_INET6 if ":" in targets[0][0] else socket.AF_INET
        end = socket.socket(family, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        sizes = [most] * (size_bytes // most)
        sizes += [size_bytes % most] if size_bytes % most else []
        at_once = max(1, MOST_CALL_BYTES // most)
        segment = [(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("=H", most))]

        def send(to: int) -> None:
            header = HEADER.pack(
                self._key, self.number, flow["source"], self._sent[to], len(sizes), 0
            )
            for first in range(0, len(sizes), at_once):
                part = [header.ljust(size, b"\0") for size in sizes[first : first + at_once]]
                try:
                    end.sendmsg(part, segment if len(part) > 1 else [], 0, targets[to])
                except OSError:  # devices without checksum offload cannot segment
                    for datagram in part:
                        end.sendto(datagram, targets[to])

        return send


class Traffic:
    """Flows from and to this host."""

    def __init__(self, network: str, key: int) -> None:
        self._key, self.receiver = key, Receiver(network, key)
        self._senders: list[Sender] = []

    def send(self, flow: dict[str, Any]) -> dict[str, Any]:
        """Begin to send the messages of a flow."""
        self._senders.append(Sender(flow, self._key))
        return {}

    def counts(self) -> dict[str, Any]:
        """Return what was sent and received, by number of the flow."""
        sent: dict[int, Count] = defaultdict(Count)
        for sender in self._senders:
            # The delay first: messages sent in between are counted, and not late as well.
            sent[sender.number].behind_s = max(sent[sender.number].behind_s, sender.behind_s)
            sum_up(sent[sender.number], sender.count)
        received: dict[int, Count] = defaultdict(Count)
        for flow, size_bytes, count in list(self.receiver.streams):
            got = count.size_bytes
            sum_up(received[flow], Count(got // size_bytes, got))
        for flow, count in list(self.receiver.datagrams.items()):
            sum_up(received[flow], count)
        return {
            "sent": {flow: vars(count) for flow, count in sent.items()},
            "received": {flow: vars(count) for flow, count in received.items()},
            "overflowed": self.receiver.overflowed,
        }


def sum_up(into: Count, count: Count) -> None:
    """Add the messages of `count`."""
    into.messages += count.messages
    into.size_bytes += count.size_bytes
    into.lost += count.lost


def main() -> int:
    """Answer one line after the other until the input ends."""
    traffic: Traffic | None = None
    for line in sys.stdin:
        step = json.loads(line)
        if traffic is None:
            traffic = Traffic(step["listen"], step["key"])
            answer: dict[str, Any] = dict(traffic.receiver.address)
        elif "send" in step:
            answer = traffic.send(step["send"])
        else:
            answer = traffic.counts()
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (MeasureError, OSError) as error:
        sys.exit(str(error))
