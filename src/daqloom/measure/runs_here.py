"""Runs and switches of this user on this machine, for an operator in another terminal to find.

The files hold the secrets that steer them, so only the user may read the folder.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from daqloom.measure import MeasureError
from daqloom.measure.connection import split
from daqloom.words import reason_of


@dataclass(frozen=True)
class Kind:
    """What can be steered."""

    name: str
    listener: str
    """What listens for operators."""
    suffix: str
    """Of the file with its secret."""
    command: str
    """That starts one."""


RUN = Kind("run", "run control", ".steer", "daqloom control SCENARIO")


def runs_folder() -> Path:
    """Return the folder, made if necessary. Raises MeasureError where others could read it."""
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
    """Return the number of this user, who in a user namespace of his own has another one."""
    user = os.getuid()
    with suppress(OSError):
        for line in Path("/proc/self/uid_map").read_text().splitlines():
            inside, outside, count = (int(word) for word in line.split())
            if inside <= user < inside + count:
                return outside + user - inside
    return user


@contextmanager
def published(
    address: str,
    steering: bytes,
    token: bytes | None = None,
    kind: Kind = RUN,
    socket: str = "",
) -> Iterator[Path]:
    """Publish what listens at `address`, and at a `socket` of this machine if there is one; yield
    the file with the token of units, if it has any."""
    port = split(address)[1]
    folder = runs_folder()
    secrets = {folder / f"{port}{kind.suffix}": steering}
    if token is not None:
        secrets[folder / f"{port}.token"] = token
    try:
        for path, secret in secrets.items():
            with suppress(FileNotFoundError):
                path.unlink()  # of a run that was killed: the port is ours now
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                told = (secret.hex(), socket or address, str(os.getpid()))
                file.write("\n".join(told if path.suffix == kind.suffix else told[:1]))
        yield folder / f"{port}.token"
    finally:
        for path in secrets:
            path.unlink(missing_ok=True)


def find_run(address: str | None, kind: Kind = RUN) -> tuple[str, bytes]:
    """Return the address of what can be steered on this machine, the only one unless given, and
    the secret to do so. Raises MeasureError."""
    folder = runs_folder()
    if address is None:
        files = [path for path in sorted(folder.glob(f"*{kind.suffix}")) if _lives(path)]
        if len(files) != 1:
            ports = ", ".join(path.stem for path in files[:10])
            raise MeasureError(
                f"there are {len(files)} {kind.name}s, on ports {ports}; choose one with --address"
                if files
                else f"you have no {kind.name} on this machine; `{kind.command}` starts one, "
                "--address names one on another machine"
            )
        path = files[0]
    else:
        path = folder / f"{split(address)[1]}{kind.suffix}"
    try:
        secret, known, _ = path.read_text()[:500].split()
        return address or known, bytes.fromhex(secret)
    except (OSError, ValueError):
        raise MeasureError(
            f"you have no {kind.name} on port {path.stem} of this machine; `{kind.command}` starts "
            "one"
        ) from None


def _lives(path: Path) -> bool:
    """Return whether the process that wrote the file is alive: a killed one leaves its file."""
    try:
        return Path("/proc", path.read_text()[:500].split()[2]).exists()
    except (OSError, IndexError):
        return False
