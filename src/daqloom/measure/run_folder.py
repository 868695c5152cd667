"""The folder for the output of a run's units.

Unless the user names one, it is below TMPDIR, locked (flock) by the run control and removed at its
end, or by the next run if the run control was killed, which frees the lock.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daqloom.measure import MeasureError
from daqloom.output import OutputError
from daqloom.words import reason_of

LIVE = "daqloom-live-"
KEPT = "daqloom-run-"
"""Marks the folder of a failed run, which is kept for its user."""


@contextmanager
def run_folder(log_dir: Path | None) -> Iterator[Path]:
    """Yield the folder of units' output; a temporary one is kept only after a failure. Raises
    OutputError."""
    if log_dir is None:
        remove_abandoned()
    try:
        if log_dir is None:
            folder, lock = _locked_folder()
        else:
            log_dir.mkdir(parents=True, exist_ok=True)
            folder, lock = log_dir, None
    except OSError as error:
        raise OutputError(f"cannot write logs: {reason_of(error)}; name another folder") from None
    try:
        yield folder
    except MeasureError as error:
        if not any(folder.iterdir()):  # it failed before there were units
            raise
        kept = folder
        if lock is not None:
            kept = Path(tempfile.mkdtemp(prefix=KEPT, dir=folder.parent))
            folder.rename(kept)
        raise MeasureError(f"{error}; the output of the units is in {kept}") from None
    finally:
        if lock is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


def remove_abandoned() -> None:
    """Remove folders of this user's runs that no process holds any more."""
    parent = Path(tempfile.gettempdir())
    with suppress(OSError):
        for path in parent.glob(f"{LIVE}*"):
            with suppress(OSError):
                _remove_if_abandoned(path)


def _remove_if_abandoned(path: Path) -> None:
    """Remove a folder. Raises OSError where it is another user's, in use, or cannot be locked."""
    folder = _opened(path)
    try:
        if os.fstat(folder).st_uid == os.getuid():
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)  # which follows no link
    finally:
        os.close(folder)


def _locked_folder() -> tuple[Path, int]:
    """Make a new folder; return it and the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=LIVE))
        # Until it is locked, another start may take it for an abandoned one and remove it.
        try:
            folder = _opened(path)
        except FileNotFoundError:
            continue
        with suppress(OSError):  # of a file system without locks: there, nobody removes any
            fcntl.flock(folder, fcntl.LOCK_EX)
        if path.exists():
            return path, folder
        os.close(folder)


def _opened(path: Path) -> int:
    """Open a folder, never the target of a link."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
