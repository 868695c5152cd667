"""Program that reads the counters of a laboratory's switches in their namespace; it is a separate
process because only a process with one thread can enter a user namespace.

Standard input has a JSON line that describes the ports, then one line per request: `begin` resets
all peaks, `read` returns the counters. Between requests, the program polls the ports' queues."""

import json
import select
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

RTM_GETQDISC = 38
NLM_F_REQUEST, NLM_F_ECHO = 1, 8
"""Flags of a netlink request whose answer goes to its sender."""
NLMSG_ERROR = 2
TCA_STATS2, TCA_STATS_BASIC, TCA_STATS_QUEUE = 7, 1, 3
ANSWER_S = 10.0
"""Time limit for the kernel's answer to a request (s)."""
_HEADER = struct.Struct("=IHHII")
_MESSAGE = struct.Struct("=BxxxiIII")
_ATTRIBUTE = struct.Struct("=HH")
_BASIC = struct.Struct("=QI")
_QUEUE = struct.Struct("=IIIII")


@dataclass
class Port:
    """Counters of one switch port."""

    name: str
    switch: int
    unseen_bytes: int
    """Bytes per frame that the kernel does not count."""
    ahead_bytes: int
    """Bytes that the port holds when its queue starts to fill."""
    bytes_per_s: float
    """Rate of the port in bytes of full frames, excluding the wire's overhead."""
    look_bytes: float
    """Bytes that the port sends between two polls: at most this many of the bytes that arrived
    since the previous poll may have arrived just before this one."""
    request: bytes
    sent_bytes: int = 0
    sent: int = 0
    dropped: int = 0
    waiting: int = 0
    held_bytes: int = 0
    peak_bytes: int = 0
    punctual_bytes: float = 0.0
    """Bytes that the port would hold if it had always sent at its rate."""

    def update(self, reply: bytes, passed_s: float) -> None:
        """Process a reply from the kernel, `passed_s` seconds after the previous reply."""
        basic, queue = _statistics(reply)
        before_bytes = self._taken_bytes()
        self.sent_bytes, self.sent = _BASIC.unpack_from(basic)
        self.waiting, backlog, self.dropped, _, _ = _QUEUE.unpack_from(queue)
        self.held_bytes = backlog + self.unseen_bytes * self.waiting
        self.held_bytes += self.ahead_bytes if self.waiting else 0
        self.peak_bytes = max(self.peak_bytes, self.held_bytes)
        came_bytes = self._taken_bytes() - before_bytes
        punctual_bytes = max(
            self.punctual_bytes + came_bytes - self.bytes_per_s * passed_s,
            min(came_bytes, self.look_bytes),
        )
        # An empty port is not behind; its token bucket may let it send ahead of its rate.
        self.punctual_bytes = min(punctual_bytes, self.held_bytes)

    def _taken_bytes(self) -> int:
        return self.sent_bytes + self.unseen_bytes * self.sent + self.held_bytes


def request(device: int, handle: int) -> bytes:
    """Return the netlink request for queueing discipline `handle`:0 of a device."""
    size = _HEADER.size + _MESSAGE.size
    header = _HEADER.pack(size, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_ECHO, 0, 0)
    return header + _MESSAGE.pack(socket.AF_UNSPEC, device, handle << 16, 0, 0)


def _statistics(reply: bytes) -> tuple[bytes, bytes]:
    """Return encoded counters of sent and of queued packets. Raises OSError for a kernel error."""
    size, kind, _, _, _ = _HEADER.unpack_from(reply)
    if kind == NLMSG_ERROR:
        (code,) = struct.unpack_from("=i", reply, _HEADER.size)
        raise OSError(-code, "a queue of the laboratory cannot be read")
    found = _attributes(reply[_HEADER.size + _MESSAGE.size : size])
    inner = _attributes(found[TCA_STATS2])
    return inner[TCA_STATS_BASIC], inner[TCA_STATS_QUEUE]


def _attributes(data: bytes) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    at = 0
    while at + _ATTRIBUTE.size <= len(data):
        size, kind = _ATTRIBUTE.unpack_from(data, at)
        if size < _ATTRIBUTE.size:
            break
        found.setdefault(kind & 0x3FFF, data[at + _ATTRIBUTE.size : at + size])
        at += (size + 3) & ~3
    return found


class Counting:
    """Counters of all ports, read over one netlink socket."""

    def __init__(self, ports: Sequence[Port], late_s: float) -> None:
        self.ports = ports
        self._late_s = late_s
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self._socket.bind((0, 0))
        self._socket.settimeout(ANSWER_S)
        switches = 1 + max((port.switch for port in ports), default=-1)
        self.peaks = [0] * switches
        self.punctual_peaks = [0.0] * switches
        """Peak of each switch if its ports had always sent at their rates (B)."""
        self.late_s = 0.0
        """Total delay of the polls that were too late (s)."""
        self._last_s = self._began_s = self._looked_s = time.monotonic()

    def look(self) -> None:
        """Read all ports once."""
        held, punctual = [0] * len(self.peaks), [0.0] * len(self.peaks)
        now_s = time.monotonic()
        passed_s, self._looked_s = now_s - self._looked_s, now_s
        for port in self.ports:
            self._socket.send(port.request)
            port.update(self._socket.recv(65536), passed_s)
            held[port.switch] += port.held_bytes
            punctual[port.switch] += port.punctual_bytes
        self.peaks = list(map(max, self.peaks, held))
        self.punctual_peaks = list(map(max, self.punctual_peaks, punctual))
        self._last_s = time.monotonic()

    def woken(self, late_s: float) -> None:
        """Count the delay of a poll if it was too late."""
        self.late_s += late_s if late_s > self._late_s else 0.0

    def begin(self) -> None:
        """Reset all peaks and read the ports."""
        self.peaks = [0] * len(self.peaks)
        self.punctual_peaks = [0.0] * len(self.peaks)
        self.late_s = 0.0
        self._began_s = time.monotonic()
        for port in self.ports:
            port.peak_bytes = 0
        self.look()

    def report(self) -> dict[str, Any]:
        """Return the counters, for JSON."""
        names = ("sent", "sent_bytes", "dropped", "waiting", "peak_bytes")
        return {
            "ports": {
                port.name: {name: getattr(port, name) for name in names} for port in self.ports
            },
            "peaks": self.peaks,
            "punctual_peaks": [round(peak) for peak in self.punctual_peaks],
            "watched_s": self._last_s - self._began_s,
            "late_s": self.late_s,
        }


def main() -> int:
    """Answer requests until the input ends."""
    # Unbuffered, because `select` does not see lines that were read ahead.
    lines = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115
    plan = json.loads(lines.readline())
    ports = []
    for each in plan["ports"]:
        each["request"] = request(socket.if_nametoindex(each.pop("device")), each.pop("handle"))
        ports.append(Port(**each, look_bytes=each["bytes_per_s"] * plan["every_s"]))
    counting = Counting(ports, plan["late_s"])
    while True:
        due_s = time.monotonic() + plan["every_s"]
        ready, _, _ = select.select([lines], [], [], plan["every_s"])
        if not ready:
            counting.woken(time.monotonic() - due_s)
            counting.look()
            continue
        line = lines.readline()
        if not line:
            return 0
        if line.strip() == b"begin":
            counting.begin()
        else:
            counting.look()
        print(json.dumps(counting.report()), flush=True)


if __name__ == "__main__":
    sys.exit(main())
