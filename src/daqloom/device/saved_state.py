"""Saved configurations of devices: written before the first change of a measurement and removed
after the restoration, so that `daqloom lab restore` can repair devices after a crash.

Each device has one file in $XDG_STATE_HOME/daqloom/devices, readable only by its user and named
after the identity that the device reports. A measuring process holds the lock of its device."""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from pydantic import ValidationError

from daqloom.base.output import OutputError, written_whole
from daqloom.base.words import reason_of
from daqloom.device.document import DeviceFile
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import read_text

LARGEST_FILE_BYTES = 64 << 20


@dataclass(frozen=True)
class SavedState:
    """Configuration of a device before a measurement changed it."""

    source: str
    """Name of the device file, as given by the user."""
    device: DeviceFile
    configuration: Mapping[str, Any]
    """Return value of the adapter's `save`."""
    at: str
    """Time of saving (ISO 8601, UTC)."""


def folder() -> Path:
    """Return the folder for saved configurations, created if necessary. Raises MeasureError."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    found = Path(base, "daqloom", "devices")
    try:
        found.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise MeasureError(
            f"cannot make {found}: {reason_of(error)}; configurations of devices are saved there "
            "before a change: set XDG_STATE_HOME to a folder of yours"
        ) from None
    return found


def file_of(identity: str) -> Path:
    """Return the file for the configuration of the device with this identity; one file covers all
    ports of a switch. Raises MeasureError."""
    return folder() / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.json"


@contextmanager
def exclusive(identity: str, source: str) -> Iterator[Path]:
    """Lock a device, and yield the file for its configuration. Raises MeasureError if another
    process holds the lock, or has left the device changed."""
    path = file_of(identity)
    with lock(path, source):
        if path.exists():
            raise MeasureError(
                f"{source}: an earlier measurement has changed this device and not restored it; "
                "run `daqloom lab restore` first"
            )
        yield path


def write(path: Path, saved: SavedState) -> None:
    """Write a configuration durably to disk. Raises MeasureError."""
    document = {
        "schema": 1,
        "source": saved.source,
        "device": saved.device.model_dump(mode="json", exclude_unset=True),
        "configuration": saved.configuration,
        "at": saved.at,
    }
    try:
        with written_whole(path) as scratch, scratch.open("w", encoding="utf-8") as file:
            os.fchmod(file.fileno(), 0o600)
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
    except OutputError as error:
        raise MeasureError(f"{error}; nothing was changed") from None


def read(path: Path) -> SavedState:
    """Read a saved configuration. Raises MeasureError."""
    try:
        document = json.loads(read_text(path, LARGEST_FILE_BYTES))
        device = DeviceFile.model_validate(document["device"])
        configuration, source = document["configuration"], document["source"]
        if not isinstance(configuration, dict) or not isinstance(source, str):
            raise ValueError
        return SavedState(source, device, configuration, str(document["at"]))
    except (ValueError, KeyError, TypeError, RecursionError, ValidationError):
        raise MeasureError(
            f"{path} is damaged, and no longer lists a device's configuration; restore the device "
            "by hand, and remove the file"
        ) from None


def leftovers() -> list[Path]:
    """Return the files of unlocked devices that were not restored, the newest first: of two files
    for one device, the older one contains the original configuration. Raises MeasureError."""
    found = []
    for path in sorted(folder().glob("*.json")):
        with suppress(MeasureError), lock(path, ""):
            found.append((_saved_at(path), path))
    return [path for _, path in sorted(found, reverse=True)]


def _saved_at(path: Path) -> datetime:
    """Return the time in a file; for a damaged file, the time of its last change."""
    with suppress(MeasureError, ValueError, OSError):
        return datetime.fromisoformat(read(path).at).astimezone(UTC)
    with suppress(OSError):
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
    return datetime.fromtimestamp(0, UTC)


def now() -> str:
    """Return the present time as text, in the format of the files."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@contextmanager
def lock(path: Path, source: str) -> Iterator[TextIO]:
    """Hold the lock of a device's file. Raises MeasureError if another process holds the lock."""
    # Lock files are never removed; otherwise two processes could lock two files of one name.
    try:
        handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise MeasureError(f"cannot write {path.parent}: {reason_of(error)}") from None
    with os.fdopen(handle, "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MeasureError(
                f"{source}: another measurement has this device; wait until it has ended"
            ) from None
        yield file
