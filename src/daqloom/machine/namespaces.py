"""Network of the units on this machine: each is in a network namespace, with a link (a veth pair)
to one bridge. Links can go down, become slower and lose packets."""

import ipaddress
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Self

from daqloom.machine.launch import Launcher
from daqloom.machine.namespace import NETWORK, Namespace, Within, new_namespace, tool

MTU_BYTES = 9000
FRAME_BITS = 8 * (MTU_BYTES + 38)
"""Size of a full frame on the wire, including preamble and gap."""
_PARTS = 1_000_000
"""Denominator of loss shares in nftables rules."""


@dataclass(frozen=True)
class Link:
    """State of a unit's link."""

    up: bool = True
    lost_to_unit: float = 0.0
    """Share of packets to the unit that are lost."""
    lost_from_unit: float = 0.0
    rate_bps: int = 0
    """Rate limit in each direction (b/s); 0: unlimited."""


def tools_of(links: Iterable[Link]) -> list[str]:
    """Return the programs, other than `ip`, that can bring links into these states."""
    found = set()
    for link in links:
        found |= {"tc"} if link.rate_bps else set()
        found |= {"nft"} if link.lost_to_unit or link.lost_from_unit else set()
    return sorted(found)


class Namespaces:
    """Network of `units` units; a context. Entering raises MeasureError if this machine does not
    allow namespaces, or lacks one of the `tools`."""

    def __init__(self, units: int, tools: Iterable[str] = ()) -> None:
        self._units, self._tools = units, tools
        self._stack = ExitStack()
        self._bridge: Namespace
        self.hosts: list[Namespace] = []
        """Namespace of each unit."""

    def __enter__(self) -> Self:
        for name in self._tools:
            tool(name)
        with ExitStack() as stack:
            self._bridge = new_namespace(stack)
            inside = ["link add name bridge type bridge", "link set bridge up"]
            for unit in range(self._units):
                host = new_namespace(stack, self._bridge)
                self.hosts.append(host)
                peer = f"peer name eth0 mtu {MTU_BYTES} netns {host.holder}"
                # Frames hold one segment each, so that a loss does not concern 64 kB at once.
                inside += [
                    f"link add name u{unit} mtu {MTU_BYTES} type veth {peer}",
                    f"link set u{unit} gso_max_segs 1 master bridge up",
                ]
            self._bridge.batch("ip", inside)
            for unit, host in enumerate(self.hosts):
                own = ["link set lo up", f"address add {self.addresses[unit]}/16 dev eth0"]
                own.append("link set eth0 gso_max_segs 1 up")
                host.batch("ip", own)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def addresses(self) -> list[str]:
        """The address of each unit."""
        return [str(ipaddress.ip_network(NETWORK)[unit + 1]) for unit in range(self._units)]

    def launching(self, launcher: Launcher) -> Launcher:
        """Return a launcher whose tasks run in the namespaces of their units."""
        return Within(launcher, self.hosts)

    def set(self, unit: int, before: Link, now: Link) -> None:
        """Change the link of a unit from one state to another. Raises MeasureError."""
        port = f"u{unit}"
        if now.up != before.up:
            self._bridge.run("ip", "link", "set", port, "up" if now.up else "down")
        if now.rate_bps != before.rate_bps:
            ends = ((self._bridge, port), (self.hosts[unit], "eth0"))
            for namespace, device in ends:  # each sends in one direction
                namespace.run("tc", *_shaping(device, now.rate_bps))
        if replace(now, up=True, rate_bps=0) != replace(before, up=True, rate_bps=0):
            self._bridge.run("nft", "-f", "-", text=_losing(port, now))


def frame_loss(bit_error_rate: float) -> float:
    """Return the share of full frames that contain a bit error."""
    return float(1 - (1 - bit_error_rate) ** FRAME_BITS)


def _shaping(device: str, rate_bps: int) -> list[str]:
    if not rate_bps:
        return ["qdisc", "delete", "dev", device, "root"]
    burst = max(4 * MTU_BYTES, rate_bps // 8 // 250)  # 4 ms, a tick of slow clocks
    shaper = f"tbf rate {rate_bps}bit burst {burst} limit {max(1_000_000, 2 * burst)}"
    return ["qdisc", "replace", "dev", device, "root", *shaper.split()]


def _losing(port: str, link: Link) -> str:
    """Return an nft script that drops packets at a port of the bridge."""
    lines = [f"table netdev {port}", f"delete table netdev {port}", f"table netdev {port} {{"]
    for hook, share in (("egress", link.lost_to_unit), ("ingress", link.lost_from_unit)):
        parts = round(share * _PARTS)
        rule = "drop" if parts >= _PARTS else f"numgen random mod {_PARTS} < {parts} drop"
        if parts:
            lines.append(
                f'chain {hook} {{ type filter hook {hook} device "{port}" priority 0; {rule}; }}'
            )
    return "\n".join([*lines, "}"])
