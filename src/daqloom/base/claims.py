"""Files and folders that a process locks (flock) while it runs, and removes at its end. The kernel
frees the locks of a killed process. The next process to claim a folder removes the abandoned files
and folders."""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

LIVE = "daqloom-live-"
"""Prefix of the names of claimed folders in TMPDIR."""


@contextmanager
def claimed_folder(
    parent: Path | None = None, prefix: str = LIVE, *, least_age_s: float = 0.0
) -> Iterator[Path]:
    """Yield a new folder in `parent` (TMPDIR by default) that only this user can access. It is
    removed at the end, unless it was renamed. Unlocked folders with the prefix are removed first,
    if older than `least_age_s`: this machine may not see locks of other machines. Raises
    OSError."""
    parent = Path(tempfile.gettempdir()) if parent is None else parent
    remove_abandoned(parent.glob(f"{prefix}*"), least_age_s=least_age_s)
    path, lock = _new_folder(parent, prefix)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(lock)


@contextmanager
def claimed_file(path: Path, text: str) -> Iterator[None]:
    """Create a file that only this user can read, and remove it at the end. Raises OSError."""
    lock = _new_file(path)
    try:
        os.write(lock, text.encode())
        yield
    finally:
        with suppress(OSError):
            if os.path.samestat(os.fstat(lock), path.lstat()):
                path.unlink()
        os.close(lock)


def share(path: Path) -> int:
    """Lock a file or folder together with other processes; return the descriptor that holds the
    lock. Raises OSError."""
    lock = _open(path)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def remove_abandoned(paths: Iterable[Path], *, least_age_s: float = 0.0) -> None:
    """Remove this user's files and folders that no process locks, if at least `least_age_s` old."""
    with suppress(OSError):
        for path in paths:
            with suppress(OSError):
                if time.time() - path.lstat().st_mtime >= least_age_s:
                    _remove_if_abandoned(path)


def is_claimed(path: Path) -> bool:
    """Return whether a process holds a file or folder."""
    try:
        lock = _open(path)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(lock)
    return False


def _remove_if_abandoned(path: Path) -> None:
    """Remove a file or folder of this user that no process locks. Raises OSError if in use."""
    lock = _open(path)
    try:
        found = os.fstat(lock)
        if found.st_uid == os.getuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(found, path.lstat()):
                shutil.rmtree(path) if path.is_dir() else path.unlink()  # neither follows a link
    finally:
        os.close(lock)


def _new_folder(parent: Path, prefix: str) -> tuple[Path, int]:
    """Make a folder; return it and the descriptor that holds its lock."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with suppress(FileNotFoundError):
            lock = _open(path)
            if _is_ours(path, lock):
                return path, lock


def _new_file(path: Path) -> int:
    """Make a file; return the descriptor that holds its lock."""
    while True:
        path.unlink(missing_ok=True)
        with suppress(FileExistsError):
            lock = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            if _is_ours(path, lock):
                return lock


def _is_ours(path: Path, lock: int) -> bool:
    """Lock a new file or folder. Return False and close it if another process has removed it."""
    with suppress(OSError):  # file systems without locks: nothing is removed there
        fcntl.flock(lock, fcntl.LOCK_EX)
    with suppress(OSError):
        if os.path.samestat(os.fstat(lock), path.lstat()):
            return True
    os.close(lock)
    return False


def _open(path: Path) -> int:
    """Open a file or folder without following a symbolic link and without blocking."""
    return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
