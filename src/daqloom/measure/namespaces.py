"""A network of one's own for the units of this machine: each in a network namespace, with a link
(a veth pair) to one bridge. Links go down, become slower and lose packets.

Root, or a user whom the kernel allows a user namespace. The namespaces end with this process: each
is held by one that ends with its input.
"""

import asyncio
import ipaddress
import os
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Self

from daqloom.measure import MeasureError
from daqloom.measure.launch import Launcher, Task

NETWORK = "10.113.0.0/16"
"""Of the units' addresses."""
MTU_BYTES = 9000
FRAME_BITS = 8 * (MTU_BYTES + 38)
"""On the wire, with preamble and gap."""
_PARTS = 1_000_000
"""Packets are lost by so many parts."""


@dataclass(frozen=True)
class Link:
    """The state of a unit's link."""

    up: bool = True
    lost_to_unit: float = 0.0
    """Share of the packets to the unit that are lost; 1: all."""
    lost_from_unit: float = 0.0
    rate_bps: int = 0
    """In each direction; 0: as fast as the machine can."""


def tools_of(links: Iterable[Link]) -> list[str]:
    """Return the programs that bring links into these states, besides `ip`."""
    found = set()
    for link in links:
        found |= {"tc"} if link.rate_bps else set()
        found |= {"nft"} if link.lost_to_unit or link.lost_from_unit else set()
    return sorted(found)


class Namespaces:
    """The network of `units` units; a context. Raises MeasureError on entering where this machine
    does not allow it, or lacks one of the `tools` that break links."""

    def __init__(self, units: int, tools: Iterable[str] = ()) -> None:
        self._units, self._tools = units, tools
        self._stack = ExitStack()
        self._bridge = 0
        """Process that holds the namespace with the bridge."""
        self._holders: list[int] = []
        """Process that holds the namespace of each unit."""

    def __enter__(self) -> Self:
        for name in self._tools:
            _tool(name)
        as_root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
        with ExitStack() as stack:
            self._bridge = _held(stack, [_tool("unshare"), *as_root, "--net"])
            inside = ["link add name bridge type bridge", "link set bridge up"]
            for unit in range(self._units):
                holder = _held(stack, [*self._enter(self._bridge), _tool("unshare"), "--net"])
                self._holders.append(holder)
                peer = f"peer name eth0 mtu {MTU_BYTES} netns {holder}"
                # One segment a packet: else one of 64 kB would be lost as a whole.
                inside += [
                    f"link add name u{unit} mtu {MTU_BYTES} type veth {peer}",
                    f"link set u{unit} gso_max_segs 1 master bridge up",
                ]
            _run([*self._enter(self._bridge), _tool("ip"), "-batch", "-"], inside)
            for unit, holder in enumerate(self._holders):
                address = ipaddress.ip_network(NETWORK)[unit + 1]
                own = ["link set lo up", f"address add {address}/16 dev eth0"]
                own.append("link set eth0 gso_max_segs 1 up")
                _run([*self._enter(holder), _tool("ip"), "-batch", "-"], own)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def launching(self, launcher: Launcher) -> Launcher:
        """Return a launcher whose tasks run in the namespaces of their units."""
        return _Within(launcher, [self._enter(holder) for holder in self._holders])

    async def set(self, unit: int, before: Link, now: Link) -> None:
        """Bring the link of a unit from one state to another. Raises MeasureError."""
        port, bridge = f"u{unit}", self._enter(self._bridge)
        if now.up != before.up:
            await _done([*bridge, _tool("ip"), "link", "set", port, "up" if now.up else "down"])
        if now.rate_bps != before.rate_bps:
            inside = self._enter(self._holders[unit])
            for enter, device in ((bridge, port), (inside, "eth0")):  # each sends in one direction
                await _done([*enter, _tool("tc"), *_shaping(device, now.rate_bps)])
        if replace(now, up=True, rate_bps=0) != replace(before, up=True, rate_bps=0):
            await _done([*bridge, _tool("nft"), "-f", "-"], _losing(port, now))

    def _enter(self, holder: int) -> tuple[str, ...]:
        as_root = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        return (_tool("nsenter"), "--target", str(holder), *as_root, "--net")


@dataclass(frozen=True)
class _Within:
    launcher: Launcher
    enter: Sequence[Sequence[str]]

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start units: see `Launcher`."""
        return [
            replace(task, command=(*self.enter[task.units[0]], *task.command))
            for task in self.launcher.tasks(units, control)
        ]


def frame_loss(bit_error_rate: float) -> float:
    """Return the share of full frames with an error."""
    return float(1 - (1 - bit_error_rate) ** FRAME_BITS)


def _tool(name: str) -> str:
    """Return the path of a program, which may not be on the path of users. Raises MeasureError."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        package = {"nft": "nftables", "ip": "iproute2", "tc": "iproute2"}.get(name, "util-linux")
        raise MeasureError(
            f"measure.namespaces requires the program {name}, which is not here; install Debian's "
            f"package {package}"
        )
    return found


def _shaping(device: str, rate_bps: int) -> list[str]:
    if not rate_bps:
        return ["qdisc", "delete", "dev", device, "root"]
    burst = max(4 * MTU_BYTES, rate_bps // 8 // 250)  # what passes in 4 ms, a tick of slow clocks
    shaper = f"tbf rate {rate_bps}bit burst {burst} limit {max(1_000_000, 2 * burst)}"
    return ["qdisc", "replace", "dev", device, "root", *shaper.split()]


def _losing(port: str, link: Link) -> str:
    """Return a script of nft that loses packets of a port of the bridge."""
    lines = [f"table netdev {port}", f"delete table netdev {port}", f"table netdev {port} {{"]
    for hook, share in (("egress", link.lost_to_unit), ("ingress", link.lost_from_unit)):
        parts = round(share * _PARTS)
        rule = "drop" if parts >= _PARTS else f"numgen random mod {_PARTS} < {parts} drop"
        if parts:
            lines.append(
                f'chain {hook} {{ type filter hook {hook} device "{port}" priority 0; {rule}; }}'
            )
    return "\n".join([*lines, "}"])


def _held(stack: ExitStack, command: Sequence[str]) -> int:
    """Start a process in new namespaces that ends with the stack, or with this process."""
    holder = subprocess.Popen(
        [*command, "sh", "-c", "echo && exec cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for the run control
    )
    stack.callback(holder.wait)
    for pipe in (holder.stderr, holder.stdout, holder.stdin):
        assert pipe is not None
        stack.callback(pipe.close)
    assert holder.stdout is not None
    if not holder.stdout.readline():
        raise _refused(holder.communicate()[1])
    return holder.pid


def _run(command: Sequence[str], lines: Sequence[str]) -> None:
    done = subprocess.run(command, input="\n".join(lines).encode(), capture_output=True)
    if done.returncode:
        raise _refused(done.stderr)


async def _done(command: Sequence[str], text: str = "") -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, errors = await process.communicate(text.encode())
    if process.returncode:
        raise _refused(errors)


def _refused(errors: bytes) -> MeasureError:
    lines = errors.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return MeasureError(
        f"measure.namespaces: this machine does not allow it ({lines[0][:200]}); run as root, or "
        "allow user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_"
        "unprivileged_userns)"
    )
