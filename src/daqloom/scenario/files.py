"""Reads files that a user names, if they are regular and of bounded size."""

import errno
import os
import stat
from codecs import BOM_UTF8
from pathlib import Path
from typing import BinaryIO

from daqloom.base.words import reason_of


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; raises OSError for anything else, ValueError for a name with
    a null character. Opening a FIFO blocks until it has a writer, and opening a device may have
    effects."""
    _check_regular(os.stat(path).st_mode, path)
    # Another file may have the name by now: O_NONBLOCK waits for no writer, and what counts is what
    # has been opened.
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
    """Return a text file just opened, unpacked or not, behind the byte order mark of UTF-8 that
    programs of Windows write. Raises OSError."""
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
    """Return the text of a regular file. Raises ValueError where it cannot be read."""
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
