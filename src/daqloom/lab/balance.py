"""Packet balance of a laboratory: each sent packet has arrived, waits, or counts as dropped."""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from daqloom.lab.laboratory import LabCount, Laboratory
from daqloom.lab.network import LabNetwork

QUIET_S = 0.05
PATIENCE_S = 2.0
SOCKET_DROPS = (
    "TCPBacklogDrop",
    "TCPRcvQDrop",
    "TCPOFODrop",
    "TCPZeroWindowDrop",
    "PFMemallocDrop",
    "RcvPruned",
    "TCPMinTTLDrop",
)
"""Names of kernel counters (TcpExt) that count segments which a host received and dropped."""


@dataclass(frozen=True)
class Device:
    """Packet counters of the device at one end of a cable."""

    received: int
    refused: int
    """Packets that the kernel received and immediately dropped."""
    sent: int


@dataclass(frozen=True)
class Balance:
    """Fates of all packets since the laboratory was set up."""

    in_hosts: Mapping[str, int]
    """Packets dropped outside the switches' queues, by place: by the kernel at the end of a
    `cable`, or by TCP at a `socket`."""
    unaccounted: int
    """Packets of unknown fate; a value other than 0 is a fault of the laboratory."""

    def since(self, before: "Balance") -> "Balance":
        """Return the fates of the packets since an earlier balance."""
        in_hosts = {place: n - before.in_hosts.get(place, 0) for place, n in self.in_hosts.items()}
        return Balance(in_hosts, max(0, self.unaccounted - before.unaccounted))


def devices(text: str) -> dict[str, Device]:
    """Return the devices in the text of /proc/net/dev."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = [int(field) for field in numbers.split()]
        found[name.strip()] = Device(received=fields[1], refused=fields[3], sent=fields[9])
    return found


def socket_drops(text: str) -> int:
    """Return the number of segments dropped by TCP, from the text of /proc/net/netstat."""
    lines = text.splitlines()
    for names, values in zip(lines[::2], lines[1::2], strict=False):
        if names.startswith("TcpExt:"):
            counted = dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
            return sum(counted.get(name, 0) for name in SOCKET_DROPS)
    return 0


def settle(laboratory: Laboratory) -> Balance:
    """Return the balance when its counters have stopped changing, or after `PATIENCE_S`."""
    deadline_s = time.monotonic() + PATIENCE_S
    before = _now(laboratory)
    while True:
        time.sleep(QUIET_S)
        now = _now(laboratory)
        if now == before or time.monotonic() > deadline_s:
            return now
        before = now


def _now(laboratory: Laboratory) -> Balance:
    at_switches = devices(_read_table(laboratory.switches.holder, "dev"))
    at_hosts = [devices(_read_table(host.holder, "dev"))["eth0"] for host in laboratory.hosts]
    drops = sum(socket_drops(_read_table(host.holder, "netstat")) for host in laboratory.hosts)
    return balance(laboratory.network, laboratory.read(), at_switches, at_hosts, drops)


def balance(
    network: LabNetwork,
    count: LabCount,
    at_switches: Mapping[str, Device],
    at_hosts: list[Device],
    socket_drops: int,
) -> Balance:
    """Return the balance from the counters of queues and of cable ends."""
    in_cables, missing = 0, 0
    entered: Counter[int] = Counter()
    for cable in network.cables:
        ends = [
            at_hosts[host] if host >= 0 else at_switches[queue.device]
            for queue, host in zip((cable.a, cable.b), cable.hosts, strict=True)
        ]
        for near, far in (ends, ends[::-1]):
            in_cables += far.refused
            missing += abs(near.sent - far.received - far.refused)
        for queue, end in zip((cable.a, cable.b), ends, strict=True):
            if queue.switch >= 0:
                entered[queue.switch] += end.received
    for queue in network.queues:
        port = count.ports[queue.link.name]
        entered[queue.switch] -= port.sent + port.dropped + port.waiting
    missing += sum(abs(rest) for rest in entered.values())
    return Balance({"cable": in_cables, "socket": socket_drops}, missing)


def _read_table(holder: int, what: str) -> str:
    return Path(f"/proc/{holder}/net/{what}").read_text()
