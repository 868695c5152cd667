"""Registry of this user's runs and switches on this machine, for operators in other terminals.

Its files contain the secrets of operators: only the user may read the folder."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import AF_UNIX, SOCK_NONBLOCK, SOCK_STREAM
from socket import socket as Socket  # noqa: N812

from daqloom.base.claims import claimed_file, is_claimed, remove_abandoned
from daqloom.base.words import reason_of
from daqloom.control.calls.connection import Certificates
from daqloom.machine.addresses import split_address
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import read_text

LARGEST_FILE_BYTES = 1 << 12


@dataclass(frozen=True)
class Kind:
    """Kind of program that operators steer."""

    name: str
    listener: str
    """Part of the program that listens."""
    suffix: str
    """Suffix of the file with the secret."""
    command: str
    """Command that starts one."""


@dataclass(frozen=True)
class Listener:
    """Run control or switch of this machine, as published."""

    address: str
    secret: bytes
    certificates: Path | None = None
    """Folder with the certificates of its operators, if it has any."""


RUN = Kind("run", "run control", ".steer", "daqloom control SCENARIO")


def runs_folder() -> Path:
    """Return the folder, made if necessary. Raises MeasureError for one that others can read."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base, "daqloom") if base else Path(f"/tmp/daqloom-{_user()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise MeasureError(
            f"cannot make {folder}: {reason_of(error)}; set XDG_RUNTIME_DIR to a folder of yours"
        ) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise MeasureError(
            f"{folder} is accessible to other users; remove it, or set XDG_RUNTIME_DIR to a "
            "folder of your own"
        )
    return folder


def _user() -> int:
    """Return the number of this user outside user namespaces."""
    user = os.getuid()
    with suppress(OSError):
        for line in Path("/proc/self/uid_map").read_text().splitlines():
            inside, outside, count = (int(word) for word in line.split())
            if inside <= user < inside + count:
                return outside + user - inside
    return user


@contextmanager
def publish(
    address: str,
    steering: bytes,
    token: bytes | None = None,
    kind: Kind = RUN,
    socket: str = "",
    certificates: Certificates | None = None,
) -> Iterator[Path]:
    """Publish the listener at `address`, and at a `socket` of this machine, if given, with the
    folder of its `certificates`; yield the file for the token of units."""
    port = split_address(address)[1]
    folder = runs_folder()
    _remove_abandoned(folder)
    shown = str(certificates.folder.absolute()) if certificates else ""
    lines = (steering.hex(), socket or address, str(os.getpid()), shown)
    for_units = folder / f"{port}.token"
    with ExitStack() as stack:
        stack.enter_context(claimed_file(folder / f"{port}{kind.suffix}", "\n".join(lines)))
        if token is not None:
            stack.enter_context(claimed_file(for_units, token.hex()))
        yield for_units


class NoListenerError(MeasureError):
    """There is no listener of a kind on this machine."""


def find_run(address: str | None, kind: Kind = RUN) -> Listener:
    """Return a listener of this machine, the only one unless given. Raises MeasureError,
    NoListenerError if there is none to choose."""
    folder = runs_folder()
    if address is None:
        files = [path for path in sorted(folder.glob(f"*{kind.suffix}")) if is_claimed(path)]
        if not files:
            raise NoListenerError(
                f"you have no {kind.name} on this machine; `{kind.command}` starts one, --address "
                "names one on another machine"
            )
        if len(files) > 1:
            ports = ", ".join(path.stem for path in files[:10])
            raise MeasureError(
                f"there are {len(files)} {kind.name}s, on ports {ports}; choose one with --address"
            )
        path = files[0]
    else:
        path = folder / f"{split_address(address)[1]}{kind.suffix}"
    try:
        secret, known, _, certificates = read_text(path, LARGEST_FILE_BYTES).split("\n")
        shown = Path(certificates) if certificates else None
        return Listener(address or known, bytes.fromhex(secret), shown)
    except ValueError:
        raise MeasureError(
            f"you have no {kind.name} on port {path.stem} of this machine; "
            f"`{kind.command}` starts one"
        ) from None


def _remove_abandoned(folder: Path) -> None:
    """Remove secrets and sockets of processes that were killed."""
    remove_abandoned(folder.glob("[0-9]*.*"))
    for path in folder.glob("*.socket"):
        with suppress(OSError), Socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK) as probe:
            if probe.connect_ex(str(path)) == errno.ECONNREFUSED:  # no listener
                path.unlink()
