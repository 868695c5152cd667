"""Network namespaces, each held by a process that ends with its input, thus with this process.

They require root, or a user whom the kernel allows user namespaces."""

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from daqloom.machine.launch import Launcher, Task
from daqloom.machine.packages import packages_with
from daqloom.results.errors import MeasureError

NETWORK = "10.113.0.0/16"
"""Network from which units get their addresses."""

_SETTINGS = {
    "ipv6/conf/all/disable_ipv6": "1",  # no announcements of addresses
    "ipv4/tcp_no_metrics_save": "1",  # runs are independent
}


@dataclass(frozen=True)
class Namespace:
    """A network namespace."""

    holder: int
    """PID of the process that keeps the namespace alive."""

    @property
    def enter(self) -> tuple[str, ...]:
        """Beginning of a command line that runs in the namespace."""
        as_root = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        return (tool("nsenter"), "--target", str(self.holder), *as_root, "--net")

    def run(self, *command: str, text: str = "") -> None:
        """Run a program in the namespace with `text` as its input. Raises MeasureError."""
        whole = (*self.enter, tool(command[0]), *command[1:])
        done = subprocess.run(whole, input=text.encode(), capture_output=True)
        if done.returncode:
            raise refusal(done.stderr)

    def batch(self, program: str, lines: Iterable[str]) -> None:
        """Run `ip`, `bridge` or `tc` in the namespace with its commands as `lines`. Raises
        MeasureError."""
        self.run(program, "-batch", "-", text="\n".join(lines))


def new_namespace(
    stack: ExitStack, outer: Namespace | None = None, settings: Mapping[str, str] | None = None
) -> Namespace:
    """Return a new namespace, which ends with `stack` or with this process. It is in the user
    namespace of `outer`, or in a new one. `settings`: kernel settings by paths below /proc/sys/net.
    Raises MeasureError."""
    as_root = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    unshare = (*outer.enter, tool("unshare")) if outer else (tool("unshare"), *as_root)
    values = {**_SETTINGS, **(settings or {})}
    write = "; ".join(f"echo {value} > /proc/sys/net/{key}" for key, value in values.items())
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
        raise refusal(holder.communicate()[1])
    return Namespace(holder.pid)


@dataclass(frozen=True)
class Within:
    """Launcher whose tasks run in the network namespaces of their units."""

    launcher: Launcher
    namespaces: Sequence[Namespace]

    def tasks(self, units: Sequence[int], control: str) -> list[Task]:
        """Return the tasks that start units, as `Launcher` describes."""
        return [
            replace(task, command=(*self.namespaces[task.units[0]].enter, *task.command))
            for task in self.launcher.tasks(units, control)
        ]

    def command_at(self, unit: int, command: Sequence[str]) -> tuple[str, ...]:
        """Return the command that runs in the network namespace of a unit."""
        return (*self.namespaces[unit].enter, *self.launcher.command_at(unit, command))


def tool(name: str) -> str:
    """Return the path of a program, including programs in root's folders. Raises MeasureError."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    if found is None:
        raise MeasureError(
            f"network namespaces require the program {name}, which is not here; install it "
            f"({packages_with(name)})"
        )
    return found


def refusal(errors: bytes) -> MeasureError:
    """Return the error for a refusal by the kernel, with the message of the program."""
    lines = errors.decode(errors="replace").strip().splitlines() or ["no reason given"]
    return MeasureError(
        f"this machine does not allow network namespaces ({lines[0][:200]}); run as root, or "
        "allow user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_"
        "unprivileged_userns)"
    )
