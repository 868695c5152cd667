"""Reading of files that a user names: only regular files of limited size."""

import errno
import os
import stat
from codecs import BOM_UTF8
from pathlib import Path
from typing import BinaryIO

from daqloom.base.words import reason_of

_folders: list[Path] = []


def confine(*folders: Path) -> None:
    """Refuse files outside `folders` in this process from now on; links are followed first."""
    _folders.extend(Path(os.path.realpath(folder)) for folder in folders)


def is_allowed(path: Path) -> bool:
    """Return whether `confine` allows a path; it refuses one with a null character."""
    if not _folders or "\0" in str(path):
        return not _folders
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(folder) for folder in _folders)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises OSError for other kinds of files, because opening a
    FIFO may block and opening a device may have side effects, and for files that `confine` refuses.
    Raises ValueError for a name with a null character."""
    if not is_allowed(path):
        raise PermissionError(errno.EACCES, "it is outside the folder that may be read", str(path))
    _check_regular(os.stat(path).st_mode, path)
    # The file may have been replaced since the check: O_NONBLOCK avoids blocking on a FIFO, and the
    # opened file is checked again.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _check_regular(os.fstat(descriptor).st_mode, path)
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _check_regular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a named pipe, a socket or a device"
        raise OSError(errno.EINVAL, f"it is {what}, not a regular file", str(path))


def without_mark(file: BinaryIO) -> BinaryIO:
    """Skip the UTF-8 byte order mark, which Windows programs write, at the start of a newly opened
    file and return the file. Raises OSError."""
    if file.read(len(BOM_UTF8)) != BOM_UTF8:
        file.seek(0)
    return file


def open_text(path: Path) -> BinaryIO:
    """Open a regular file as `open_regular` does, and skip a byte order mark."""
    file = open_regular(path)
    try:
        return without_mark(file)
    except OSError:
        file.close()
        raise


def read_text(path: Path, largest_bytes: int) -> str:
    """Return the text of a regular file. Raises ValueError if it is unreadable, too large or
    binary."""
    try:
        with open_text(path) as file:
            content = file.read(largest_bytes + 1)
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {reason_of(error)}") from None
    except ValueError:
        raise ValueError("a file name cannot hold a null character") from None
    if len(content) > largest_bytes:
        raise ValueError(
            f"{path} is larger than {largest_bytes >> 10} KiB, the largest size allowed"
        )
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"{path} is a binary file; expected text")
    return text
