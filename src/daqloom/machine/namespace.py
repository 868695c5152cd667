"""Network namespaces of one's own, each held by a process that ends with its input: nothing is left
of them when this process ends, however it ends.

Root, or a user whom the kernel allows a user namespace.
"""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from daqloom.machine.launch import Launcher, Task
from daqloom.results.errors import MeasureError

NETWORK = "10.113.0.0/16"
"""Of the units' addresses."""

_PACKAGES = {
    "ethtool": "ethtool",
    "nft": "nftables",
    "ip": "iproute2",
    "tc": "iproute2",
    "bridge": "iproute2",
}
_SETTINGS = {
    "ipv6/conf/all/disable_ipv6": "1",  # nobody announces himself
    "ipv4/tcp_no_metrics_save": "1",  # what one run found must not shape the next one
}


@dataclass(frozen=True)
class Held:
    """A network namespace."""

    holder: int
    """Process that holds it."""

    @property
    def enter(self) -> tuple[str, ...]:
        """The beginning of a command that runs in it."""
        as_root = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        return (tool("nsenter"), "--target", str(self.holder), *as_root, "--net")

    def run(self, command: Sequence[str], lines: Sequence[str]) -> None:
        """Run a program in it with lines on its standard input. Raises MeasureError."""
        whole = (*self.enter, tool(command[0]), *command[1:])
        done = subprocess.run(whole, input="\n".join(lines).encode(), capture_output=True)
        if done.returncode:
            raise refused(done.stderr)

    async def do(self, command: Sequence[str], text: str = "") -> None:
        """Run a program in it with a text on its standard input. Raises MeasureError."""
        process = await asyncio.create_subprocess_exec(
            *self.enter,
            tool(command[0]),
            *command[1:],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        _, errors = await process.communicate(text.encode())
        if process.returncode:
            raise refused(errors)


def hold(
    stack: ExitStack, outer: Held | None = None, settings: Mapping[str, str] | None = None
) -> Held:
    """Return a new namespace, which ends with the stack, or with this process; within the user
    namespace of another one, or in a user namespace of its own. `settings` of its kernel are by
    their places below /proc/sys/net. Raises MeasureError."""
    as_root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    unshare = (*outer.enter, tool("unshare")) if outer else (tool("unshare"), *as_root)
    wanted = {**_SETTINGS, **(settings or {})}
    write = "; ".join(f"echo {value} > /proc/sys/net/{key}" for key, value in wanted.items())
    holder = subprocess.Popen(
        [*unshare, "--net", "sh", "-c", f"({write}) 2> /dev/null; echo && exec cat"],
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
        raise refused(holder.communicate()[1])
    return Held(holder.pid)


@dataclass(frozen=True)
class Within:
    """A launcher whose tasks run in the namespaces of their units."""

    launcher: Launcher
    of_unit: Sequence[Held]

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start units: see `Launcher`."""
        return [
            replace(task, command=(*self.of_unit[task.units[0]].enter, *task.command))
            for task in self.launcher.tasks(units, control)
        ]

    def beside(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return the command within the namespace of a unit's host."""
        return (*self.of_unit[unit].enter, *self.launcher.beside(unit, command))


def tool(name: str) -> str:
    """Return the path of a program, which may not be on the path of users. Raises MeasureError."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise MeasureError(
            f"network namespaces require the program {name}, which is not here; install Debian's "
            f"package {_PACKAGES.get(name, 'util-linux')}"
        )
    return found


def refused(errors: bytes) -> MeasureError:
    """Return the error of what the kernel has refused, with what a program said of it."""
    lines = errors.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return MeasureError(
        f"this machine does not allow network namespaces ({lines[0][:200]}); run as root, or "
        "allow user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_"
        "unprivileged_userns)"
    )
