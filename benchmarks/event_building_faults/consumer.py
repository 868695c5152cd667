"""Consumer of a unit's output, which appends each packet that counts for it to a file.

python consumer.py daqloom/RUN/UNIT/output FOLDER NAME
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import suppress
from itertools import count
from pathlib import Path

from daqloom.buffers import BufferReader

FILE_BYTES = 4 << 20
NAMES = count()


class Series:
    """Files of packets, each `.part` and locked until it is complete."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name
        self._path, self._file = Path(), -1

    def append(self, packet: bytes) -> None:
        if self._file < 0:
            self._path = self._folder / f"{self._name}-{os.getpid()}-{next(NAMES)}.mep"
            part = f"{self._path}.part"
            self._file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
            fcntl.flock(self._file, fcntl.LOCK_EX)
        os.write(self._file, packet)
        if os.fstat(self._file).st_size >= FILE_BYTES:
            self.finish()

    def finish(self) -> None:
        if self._file >= 0:
            os.rename(f"{self._path}.part", self._path)
            os.close(self._file)
            self._file = -1


def consume(reader: BufferReader, series: Series) -> None:
    """Read packets until the end of the output, or until it goes to another consumer."""
    while not reader.is_at_end:
        piece = reader.next()
        if piece is None:
            if reader.is_abandoned:
                return
            reader.wait(timeout_s=1)
            continue
        packet = bytes(piece[1])
        if reader.acknowledge():
            series.append(packet)


def main(output: str, folder: str, name: str) -> None:
    """Consume until this process is killed."""
    series, parent = Series(Path(folder), name), os.getppid()
    while os.getppid() == parent:
        try:
            reader = BufferReader(output, timeout_s=1)
        except (OSError, ValueError):  # no such output now
            time.sleep(0.2)
            continue
        with suppress(ConnectionError):  # a killed writer
            consume(reader, series)
        del reader
        series.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
