"""Reading one segment of a store: where its cells are, and their text when asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from daqloom.scenario.files import open_regular
from daqloom.study.store_lines import (
    MOST_LINE_BYTES,
    PATTERN,
    RESULT,
    SESSION,
    Damage,
    DamageError,
    Line,
    length_of,
    name_of,
    names_of,
    parts,
    pattern_of,
    unframed,
    unpacked,
)
from daqloom.study.store_record import Session
from daqloom.words import reason_of

_KEPT_PATTERNS = 4


class Place(NamedTuple):
    """Place of a line in a store: segment, offset and length."""

    segment: Segment
    offset: int
    length: int


class Segment:
    """The file of one process, which appends to it while others read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.session: Session | None = None
        self.results = 0
        """Put so far, those included that are lost."""
        self._patterns: dict[bytes, list[Place]] = {}
        self._texts: dict[bytes, bytes] = {}
        self._scanned = 0
        self._damages: dict[int, Damage] = {}
        self._gap: Damage | None = None
        self._unreadable: str | None = None
        self._file: BinaryIO | None = None

    def scan(self) -> Iterator[tuple[str, Place]]:
        """The cells of all lines that came since the last scan, in the order written. A last line
        without its end is left for the next scan: its writer is at it, or was killed."""
        self._unreadable = None
        try:
            # Opened anew, for a network file system shows then what others have written.
            with open_regular(self.path) as file:
                if os.fstat(file.fileno()).st_size <= self._scanned:
                    return
                file.seek(self._scanned)
                while text := file.readline(MOST_LINE_BYTES + 1):
                    if len(text) > MOST_LINE_BYTES and not text.endswith(b"\n"):
                        self._lose(self._scanned, "a line is longer than any that daqloom writes")
                        self._scanned += len(text) + _skip_line(file)
                        continue
                    for line in parts(text):
                        if not line.endswith(b"\n") and length_of(line) != len(line):
                            return
                        found = self.append(line)
                        if found is not None:
                            yield found
        except FileNotFoundError:
            return  # its writer had nothing to keep
        except OSError as error:
            self._unreadable = reason_of(error)

    def append(self, line: bytes) -> tuple[str, Place] | None:
        """Takes note of the next line; of a sound result gives key and place."""
        place = Place(self, self._scanned, len(line))
        self._scanned += len(line)
        try:
            sound = unframed(line)
        except DamageError as damage:
            self._lose(place.offset, str(damage))
            return None
        self._arrive(place.offset, sound.number)
        if not line.endswith(b"\n"):
            self.fault(place.offset + len(line) - 1, "the end of the line is overwritten", lost=0)
        try:
            return self._entered(place, sound)
        except ValueError as error:
            self.fault(place.offset, str(error), lost=int(sound.kind == RESULT))
            return None

    def text(self, key: str, place: Place) -> bytes:
        """The record of a cell as it was put. Raises DamageError."""
        line = self._line(place)
        found, pattern, packed = names_of(line.rest) if line.kind == RESULT else ("", b"", b"")
        if found != key:
            raise DamageError("another cell is there")
        return unpacked(packed, self._pattern(pattern))

    def fault(self, offset: int, reason: str, lost: int = 1) -> None:
        """Takes note of a line that cannot be used."""
        self._damages.setdefault(offset, Damage(self.path, offset, lost, reason))

    @property
    def damages(self) -> list[Damage]:
        """All that cannot be used, in the order of the file."""
        if self._unreadable is not None:
            return [Damage(self.path, 0, None, self._unreadable)]
        return [self._damages[offset] for offset in sorted(self._damages)]

    def close(self) -> None:
        """Lets go of the file; it is opened again when needed."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _lose(self, offset: int, reason: str) -> None:
        """Begins a gap, or goes on with one: the next sound line tells what was in it."""
        if self._gap is None:
            self._gap = Damage(self.path, offset, 1, reason, at_least=True)
            self._damages[offset] = self._gap

    def _arrive(self, offset: int, number: int) -> None:
        """At a sound line that tells how many results stand before it."""
        lost = max(0, number - self.results)
        if self._gap is not None:
            self._gap.results_lost, self._gap.at_least = lost, False
        elif lost:
            self.fault(offset, "what stood before is missing", lost)
        self._gap = None
        self.results = number

    def _entered(self, place: Place, line: Line) -> tuple[str, Place] | None:
        """What `append` gives of a line that is sound. Raises ValueError."""
        if line.kind == RESULT:
            self.results += 1
            key, pattern, _ = names_of(line.rest)
            if pattern not in self._patterns:
                raise DamageError("what it is packed against is damaged")
            return key, place
        if line.kind == PATTERN:
            name, _ = pattern_of(line.rest)
            self._patterns.setdefault(name, []).append(place)
        elif line.kind == SESSION:
            self.session = Session.from_json(line.rest)
        return None

    def _line(self, place: Place) -> Line:
        try:
            if self._file is None:
                self._file = open_regular(self.path)
            return unframed(os.pread(self._file.fileno(), place.length, place.offset))
        except OSError as error:
            raise DamageError(reason_of(error)) from None

    def _pattern(self, name: bytes) -> bytes:
        """The text of a pattern; the last few are kept, for many results build on each."""
        if name not in self._texts:
            text = self._sound_copy(name)
            if len(self._texts) >= _KEPT_PATTERNS:
                self._texts.clear()
            self._texts[name] = text
        return self._texts[name]

    def _sound_copy(self, name: bytes) -> bytes:
        for place in self._patterns.get(name, ()):
            try:
                text = unpacked(pattern_of(self._line(place).rest)[1])
                if name_of(text) == name:
                    return text
                raise DamageError("it holds another pattern than its name says")
            except DamageError as damage:
                self.fault(place.offset, str(damage), lost=0)
        raise DamageError("what it is packed against is damaged")


def _skip_line(file: BinaryIO) -> int:
    """Reads to the end of the line; how many bytes that was."""
    skipped = 0
    while part := file.readline(MOST_LINE_BYTES):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped
