"""Reading one segment of a store: where its cells are, and their text when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from daqloom.study.session import Session
from daqloom.study.store_lines import (
    DELTA,
    MOST_LINE_BYTES,
    SESSION,
    WHOLE,
    DamageError,
    key_of,
    offset_of,
    unframed,
    unpacked,
)

_KEPT_WHOLES = 4


class Place(NamedTuple):
    """Where a cell's line is."""

    segment: Segment
    offset: int
    length: int


class Segment:
    """The file of one process, which appends to it while others read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session: Session | None = None
        self.lines = 0
        self.wholes: dict[int, int] = {}
        """Offset (B) of every whole record that is sound: its length (B)."""
        self._scanned = 0
        self._faults: dict[int, str] = {}
        self._unreadable: str | None = None
        self._texts: dict[int, bytes] = {}
        self._file: BinaryIO | None = None

    def scan(self) -> Iterator[tuple[str, Place]]:
        """The cells of all lines that came since the last scan, in the order written.

        A last line without its end is left for the next scan: its writer is at it, or was killed.
        """
        self._unreadable = None
        try:
            # Opened anew, for a network file system shows then what others have written.
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size <= self._scanned:
                    return
                file.seek(self._scanned)
                while line := file.readline(MOST_LINE_BYTES + 1):
                    if not line.endswith(b"\n"):
                        if len(line) <= MOST_LINE_BYTES:
                            return
                        length = len(line) + _skip_line(file)
                        self.fault(self._scanned, "it is longer than any that daqloom writes")
                        self._scanned += length
                        continue
                    key = self._entered(self._scanned, line)
                    if key is not None:
                        yield key, Place(self, self._scanned, len(line))
                    self.lines += 1
                    self._scanned += len(line)
        except FileNotFoundError:
            return  # its writer had nothing to keep
        except OSError as error:
            self._unreadable = (error.strerror or str(error)).lower()

    def append(self, line: bytes) -> Place:
        """Takes note of a line that this process has written."""
        place = Place(self, self._scanned, len(line))
        self._entered(self._scanned, line)
        self.lines += 1
        self._scanned += len(line)
        return place

    def text(self, key: str, place: Place) -> bytes:
        """The record of a cell as it was put. Raises DamageError."""
        kind, rest = unframed(self._line(place.offset, place.length))
        found, rest = key_of(rest) if kind in (WHOLE, DELTA) else ("", b"")
        if found != key:
            raise DamageError("another cell is there")
        if kind == WHOLE:
            return rest
        offset, delta = offset_of(rest)
        return unpacked(delta, self._whole(offset))

    def fault(self, offset: int, reason: str) -> None:
        """Takes note of a line that cannot be used."""
        self._faults.setdefault(offset, reason)

    def damage(self) -> str | None:
        """One sentence about all that cannot be used; None if all can."""
        if self._unreadable is not None:
            return (
                f"{self.path} cannot be read: {self._unreadable}; its results count as absent and "
                "are computed anew where they are needed"
            )
        if not self._faults:
            return None
        number = len(self._faults)
        lines = "1 line is" if number == 1 else f"{number} lines are"
        offset = min(self._faults)
        return (
            f"{self.path}: {lines} damaged (at byte {offset}: {self._faults[offset]}); what was "
            "there counts as absent and is computed anew where it is needed"
        )

    def close(self) -> None:
        """Lets go of the file; it is opened again when needed."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _entered(self, offset: int, line: bytes) -> str | None:
        """The key of a cell's line that is sound, else None."""
        try:
            kind, rest = unframed(line)
            if kind == DELTA:
                key, rest = key_of(rest)
                if offset_of(rest)[0] not in self.wholes:
                    raise DamageError("the record that it builds on is damaged")
                return key
            if kind == WHOLE:
                key, _ = key_of(rest)
                self.wholes[offset] = len(line)
                return key
            if kind == SESSION:
                self.session = Session.from_json(rest)
        except ValueError as error:
            self.fault(offset, str(error))
        return None

    def _line(self, offset: int, length: int) -> bytes:
        try:
            if self._file is None:
                self._file = self.path.open("rb", buffering=0)
            return os.pread(self._file.fileno(), length, offset)
        except OSError as error:
            raise DamageError((error.strerror or str(error)).lower()) from None

    def _whole(self, offset: int) -> bytes:
        """The whole record at `offset`; the last few are kept, for many deltas build on each."""
        if offset not in self._texts:
            kind, rest = unframed(self._line(offset, self.wholes.get(offset, 0)))
            if kind != WHOLE:
                raise DamageError("what it builds on is no record")
            if len(self._texts) >= _KEPT_WHOLES:
                self._texts.clear()
            self._texts[offset] = key_of(rest)[1]
        return self._texts[offset]


def _skip_line(file: BinaryIO) -> int:
    """Reads to the end of the line; how many bytes that was."""
    skipped = 0
    while part := file.readline(MOST_LINE_BYTES):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped
