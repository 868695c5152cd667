"""Lines of a log that another program is writing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self

from daqloom.base.words import printable, reason_of
from daqloom.faults import FaultsError
from daqloom.faults.logs.read import LONGEST_LINE
from daqloom.scenario.files import open_regular

CHUNK_BYTES = 1 << 20


class LogTail:
    """A log from its first line on; a context. The path may become another file (rotation), and the
    file may be emptied; a line is complete when its end has been written. Raises FaultsError for a
    file that cannot be read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._open()
        self._rest = b""
        self._is_long = False
        """Whether the line that is being written exceeds LONGEST_LINE."""
        self.too_long = 0
        """Number of left-out lines, those of more than LONGEST_LINE bytes."""

    def lines(self) -> Iterator[str]:
        """Yield the complete lines that have been written since the last call."""
        while (chunk := self._file.read(CHUNK_BYTES)) or self._begins_anew():
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            for line in lines:
                if not self._is_long and len(line) <= LONGEST_LINE:
                    yield line.decode("utf-8", "replace").rstrip("\r")
                else:
                    self.too_long += 1
                self._is_long = False
            if len(self._rest) > LONGEST_LINE:
                self._rest, self._is_long = b"", True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _open(self) -> BinaryIO:
        try:
            return open_regular(self._path)
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else error
            name = printable(str(self._path))
            raise FaultsError(f"cannot read {name}: {reason}; give OpenSM's log") from None

    def _begins_anew(self) -> bool:
        """Return whether there is another file, or the file has been emptied; then read from its
        begin. An incomplete line before it is dropped."""
        here = os.fstat(self._file.fileno())
        try:
            now = os.stat(self._path)
        except OSError:
            return False  # amid a rotation
        if (now.st_dev, now.st_ino) != (here.st_dev, here.st_ino):
            self._file.close()
            self._file = self._open()
        elif here.st_size < self._file.tell():
            self._file.seek(0)
        else:
            return False
        self._rest, self._is_long = b"", False
        return True
