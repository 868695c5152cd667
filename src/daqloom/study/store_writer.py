"""Writing one segment of a store: whole lines, appended by one process to a file of its own."""

import os
import re
import secrets
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from daqloom.study import StoreFailure
from daqloom.study.store_folder import cannot_write, sync_folder
from daqloom.study.store_lines import (
    COPIES,
    MOST_LINE_BYTES,
    PATTERN,
    RESULT,
    SESSION,
    framed,
    name_of,
    packed,
)
from daqloom.study.store_record import Session
from daqloom.study.store_segment import Place, Segment

SUFFIX = ".cells"
RESULTS_OF_A_PATTERN = 256
"""So many records are packed against the first of them, then comes another pattern."""


class Writer:
    """A new segment in the folder `segments`; its first line says who writes. Names begin with the
    time, so that segments sort by age. Raises StudyError or StoreFailure."""

    def __init__(self, segments: Path, session: Session) -> None:
        host = re.sub(r"[^A-Za-z0-9.-]", "-", session.host)[:32]
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        name = f"{time}-{host}-{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
        self.segment = Segment(segments / name)
        self.process = os.getpid()
        self._end = 0
        self._has_lasting_name = False
        self._patterns: dict[str, _Pattern] = {}
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            segments.mkdir(exist_ok=True)
            self._file: int | None = os.open(self.segment.path, flags, 0o666)
        except OSError as error:
            raise cannot_write(self.segment.path, error) from None
        try:
            self._append(SESSION, session.to_json().encode())
        except StoreFailure:
            self.segment.path.unlink(missing_ok=True)
            raise

    def put(self, key: str, family: str, text: bytes) -> Place:
        """Appends a record of one line; records of a `family` are alike and packed together. Raises
        StoreFailure; this writer is closed then."""
        pattern = self._patterns.get(family)
        if pattern is None or pattern.used >= RESULTS_OF_A_PATTERN:
            pattern = _Pattern(text)
            for _ in range(COPIES):
                self._append(PATTERN, pattern.name, packed(text))
            self._patterns[family] = pattern
        pattern.used += 1
        return self._append(RESULT, key.encode(), pattern.name, packed(text, pattern.text))

    @property
    def open(self) -> bool:
        """Whether this process may put: not after a failure, and not in a child of the writer."""
        return self._file is not None and self.process == os.getpid()

    def sync(self) -> None:
        """Waits until all is on the disk, visible to other nodes. Raises StoreFailure."""
        if self._file is None:
            return
        try:
            os.fsync(self._file)
            if not self._has_lasting_name:
                segments = self.segment.path.parent
                sync_folder(segments)
                sync_folder(segments.parent)
                self._has_lasting_name = True
        except OSError as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Ends the segment, and removes it if it holds no cell. Raises StoreFailure."""
        if self._file is None:
            return
        mine = self.process == os.getpid()
        try:
            if mine:
                self.sync()
        finally:
            self._release()
        if mine and not self.segment.results:
            with suppress(OSError):
                self.segment.path.unlink()

    def _append(self, kind: bytes, *parts: bytes) -> Place:
        line = framed(self.segment.results, kind, *parts)
        if len(line) > MOST_LINE_BYTES:
            raise StoreFailure(
                f"cannot write {self.segment.path}: a record of {len(line)} bytes is longer than "
                f"{MOST_LINE_BYTES}; store it without its series"
            )
        assert self._file is not None
        written = 0
        try:
            while written < len(line):  # once, but for a disk that is about to be full
                written += os.write(self._file, line[written:])
            place = Place(self.segment, self._end, len(line))
            self._end += len(line)
            self.segment.append(line)
            return place
        except OSError as error:
            raise self._failure(error) from None
        except BaseException:  # Ctrl-C: how much was written is not known
            self._release()
            raise

    def _failure(self, error: OSError) -> StoreFailure:
        """Takes back what was written in part, and ends the segment: nothing may follow it."""
        with suppress(OSError):
            if self._file is not None:
                os.ftruncate(self._file, self._end)
        self._release()
        failure = cannot_write(self.segment.path, error)
        return failure if isinstance(failure, StoreFailure) else StoreFailure(str(failure))

    def _release(self) -> None:
        file, self._file = self._file, None
        with suppress(OSError):
            if file is not None:
                os.close(file)


class _Pattern:
    """A record that others are packed against."""

    __slots__ = ("name", "text", "used")

    def __init__(self, text: bytes) -> None:
        self.name, self.text, self.used = name_of(text), text, 0
