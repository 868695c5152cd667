"""Runs of this user on this machine, for an operator in another terminal to find.

The files hold the secrets that steer a run, so only the user may read the folder.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daqloom.measure import MeasureError
from daqloom.measure.connection import split
from daqloom.words import reason_of


def runs_folder() -> Path:
    """Return the folder, made if necessary. Raises MeasureError where others could read it."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base, "daqloom") if base else Path(f"/tmp/daqloom-{os.getuid()}")
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


@contextmanager
def published(address: str, steering: bytes, token: bytes) -> Iterator[Path]:
    """Publish a run control that listens at `address`; yield the file with the token of units."""
    port = split(address)[1]
    folder = runs_folder()
    secrets = {folder / f"{port}.steer": steering, folder / f"{port}.token": token}
    try:
        for path, secret in secrets.items():
            with suppress(FileNotFoundError):
                path.unlink()  # of a run that was killed: the port is ours now
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w") as file:
                told = (secret.hex(), address, str(os.getpid()))
                file.write("\n".join(told if path.suffix == ".steer" else told[:1]))
        yield folder / f"{port}.token"
    finally:
        for path in secrets:
            path.unlink(missing_ok=True)


def find_run(address: str | None) -> tuple[str, bytes]:
    """Return the address of a run control on this machine, the only one unless given, and the
    secret to steer it. Raises MeasureError."""
    folder = runs_folder()
    if address is None:
        files = [path for path in sorted(folder.glob("*.steer")) if _lives(path)]
        if len(files) != 1:
            ports = ", ".join(path.stem for path in files[:10])
            raise MeasureError(
                f"there are {len(files)} runs, on ports {ports}; choose one with --address"
                if files
                else "you have no run on this machine; `daqloom control SCENARIO` starts one, "
                "--address names one on another machine"
            )
        path = files[0]
    else:
        path = folder / f"{split(address)[1]}.steer"
    try:
        secret, known, _ = path.read_text()[:500].split()
        return address or known, bytes.fromhex(secret)
    except (OSError, ValueError):
        raise MeasureError(
            f"you have no run on port {path.stem} of this machine; `daqloom control SCENARIO` "
            "starts one"
        ) from None


def _lives(path: Path) -> bool:
    """Return whether the run control that wrote the file is alive: a killed one leaves its file."""
    try:
        return Path("/proc", path.read_text()[:500].split()[2]).exists()
    except (OSError, IndexError):
        return False
