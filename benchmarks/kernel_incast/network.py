"""A rack of network namespaces: senders, a bridge as switch, one receiver behind a bottleneck.

Everything lives in the network, mount and process namespaces that were made for this process
alone, so the kernel itself removes all of it when that process ends, however it ends.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SWITCH = "switch"
RECEIVER = "receiver"
BOTTLENECK = "to-receiver"
"""The switch's port towards the receiver: the only place where packets should wait."""

WIRE_OVERHEAD_BYTES = 24
"""FCS 4, preamble and start 8, gap 12: what Ethernet adds to the frame that a qdisc sees."""

SYSCTLS = {
    # The metrics of one run must not shape the next one.
    "net.ipv4.tcp_no_metrics_save": "1",
    "net.ipv6.conf.all.disable_ipv6": "1",
}


@dataclass(frozen=True)
class Bottleneck:
    """The drain of the switch's buffer: rate in bit/s on the wire, depth of the token bucket."""

    rate_bps: int
    burst_bytes: int


def sender_name(index: int) -> str:
    """The namespace of one sender."""
    return f"sender{index}"


def sender_address(index: int) -> str:
    """The address of one sender; the receiver is 10.0.0.1."""
    return f"10.0.1.{index + 1}"


def command(*words: str, stdin: str | None = None) -> str:
    """Runs a program and returns what it prints; raises RuntimeError with what it complained."""
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"'{' '.join(words)}' failed: {done.stderr.strip()}")
    return done.stdout


def inside(namespace: str, *words: str) -> list[str]:
    """The command line that runs `words` in a namespace."""
    return ["ip", "netns", "exec", namespace, *words]


def build_hosts(senders: int) -> list[str]:
    """Makes the namespaces of the switch and of hosts, and the cables; returns the switch's ports,
    the one to the receiver first."""
    names = [SWITCH, RECEIVER, *(sender_name(i) for i in range(senders))]
    command("ip", "-batch", "-", stdin="\n".join(f"netns add {name}" for name in names))
    for name in names:
        command(*inside(name, "sysctl", "-q", "-w", *(f"{k}={v}" for k, v in SYSCTLS.items())))
        command("ip", "-n", name, "link", "set", "lo", "up")
    ports = [BOTTLENECK, *(f"to-sender{i}" for i in range(senders))]
    addresses = ["10.0.0.1", *(sender_address(i) for i in range(senders))]
    for name, port, address in zip(names[1:], ports, addresses, strict=True):
        _plug(name, port, address)
    return ports


def _plug(namespace: str, port: str, address: str) -> None:
    """Connects a host to the switch.

    One segment per buffer, so that no packet of the kernel's is a burst on the wire; these devices
    do not merge received packets either unless told to.
    """
    command("ip", "link", "add", port, "netns", SWITCH, "type", "veth",
            "peer", "name", "eth0", "netns", namespace)  # fmt: skip
    for where, device in ((SWITCH, port), (namespace, "eth0")):
        command("ip", "-n", where, "link", "set", device, "gso_max_segs", "1")
        command("ip", "-n", where, "link", "set", device, "up")
    command("ip", "-n", namespace, "address", "add", f"{address}/16", "dev", "eth0")


class Bridge:
    """The kernel's bridge as switch, with a token bucket and a packet queue at the bottleneck."""

    def __init__(self, ports: Sequence[str], bottleneck: Bottleneck) -> None:
        command("ip", "-n", SWITCH, "link", "add", "bridge", "type", "bridge", "stp_state", "0",
                "mcast_snooping", "0")  # fmt: skip
        command("ip", "-n", SWITCH, "link", "set", "bridge", "up")
        for port in ports:
            command("ip", "-n", SWITCH, "link", "set", port, "master", "bridge")
        # The qdisc counts each frame with its share of the wire.
        command("tc", "-n", SWITCH, "qdisc", "replace", "dev", BOTTLENECK, "root", "handle", "1:",
                "stab", "overhead", str(WIRE_OVERHEAD_BYTES), "linklayer", "ethernet",
                "tbf", "rate", f"{bottleneck.rate_bps}bit", "burst", str(bottleneck.burst_bytes),
                "limit", "100000000")  # fmt: skip
        self.set_buffer(10_000)

    def set_buffer(self, packets: int) -> None:
        """Sets the bottleneck's buffer; the packet that waits for its tokens counts."""
        command("tc", "-n", SWITCH, "qdisc", "replace", "dev", BOTTLENECK, "parent", "1:1",
                "handle", "10:", "pfifo", "limit", str(packets))  # fmt: skip

    def counters(self) -> Mapping[str, int]:
        """Packets sent and dropped by the bottleneck since it was made, and its present queue."""
        shown: Sequence[Mapping[str, Any]] = json.loads(
            command("tc", "-n", SWITCH, "-j", "-s", "qdisc", "show", "dev", BOTTLENECK)
        )
        return parse_bottleneck(shown)


RECORDED = (
    "tcp_sack", "tcp_recovery", "tcp_early_retrans", "tcp_frto", "tcp_rto_min_us",
    "tcp_slow_start_after_idle", "tcp_no_metrics_save", "tcp_moderate_rcvbuf", "tcp_rmem",
    "tcp_timestamps", "tcp_comp_sack_delay_ns",
)  # fmt: skip


def settings(namespace: str) -> dict[str, str]:
    """The settings of TCP in a namespace that bear on the result, where the kernel has them."""
    text = command(*inside(namespace, "sysctl", "-e", *(f"net.ipv4.{name}" for name in RECORDED)))
    pairs = (line.split(" = ", 1) for line in text.splitlines())
    return {name: value.replace("\t", " ") for name, value in pairs}


def parse_bottleneck(shown: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Picks the packet queue out of `tc -j -s qdisc show`."""
    for qdisc in shown:
        if qdisc["kind"] == "pfifo":
            return {
                "sent": int(qdisc["packets"]),
                "dropped": int(qdisc["drops"]),
                "waiting": int(qdisc["qlen"]),
            }
    raise RuntimeError("the bottleneck has no pfifo")


def tcp_counters(namespace: str) -> dict[str, int]:
    """All TCP counters of one namespace."""
    text = command(*inside(namespace, "cat", "/proc/net/netstat", "/proc/net/snmp"))
    return parse_tcp_counters(text)


def parse_tcp_counters(text: str) -> dict[str, int]:
    """Reads pairs of lines 'Group: names' and 'Group: values' into {'TcpExtTCPTimeouts': 3}."""
    counters: dict[str, int] = {}
    lines = text.splitlines()
    for names, values in zip(lines[0::2], lines[1::2], strict=True):
        group, *keys = names.split()
        if group not in ("TcpExt:", "Tcp:"):
            continue
        prefix = group.rstrip(":")
        for key, value in zip(keys, values.split()[1:], strict=True):
            counters[prefix + key] = int(value)
    return counters
