"""The store of studies: a folder that keeps the result of every cell under the cell's key.

Every process appends to a file of its own, so any number of them, on any number of nodes that share
the folder, write at once without locks. See `store_lines` for what the files hold.
"""

import itertools
import os
from dataclasses import replace
from pathlib import Path
from typing import Self

from daqloom.result import Result
from daqloom.study.cell import Cell
from daqloom.study.store_folder import cannot_read, open_folder
from daqloom.study.store_lines import Damage, DamageError, sentence
from daqloom.study.store_record import Record, Session, read, written
from daqloom.study.store_segment import Place, Segment
from daqloom.study.store_writer import SUFFIX, Writer


class Store:
    """Results by key. Not for several threads at once; for several processes it is.

    What `put` returned from survives the end of the process, however it ends; after `sync` or
    `close` also that of the machine. A record that is damaged counts as absent and is named in
    `damages`. Where a key was put twice, the later one counts.
    """

    def __init__(self, path: Path, command: str | None = None) -> None:
        """Use `open`."""
        self.path = path
        self._command = command
        self._places: dict[str, Place] = {}
        self._segments: dict[str, Segment] = {}
        self._reading: Segment | None = None
        self._writer: Writer | None = None

    @classmethod
    def open(cls, path: Path | str, *, create: bool, command: str | None = None) -> Self:
        """Opens a store, or with `create` makes one where there is nothing or an empty folder.
        `command` is the command line to keep with what is put; by default that of this process.
        Nothing is written to a store that exists before the first `put`. Raises StudyError."""
        open_folder(Path(path), create=create)
        store = cls(Path(path), command)
        store.refresh()
        return store

    def put(self, cell: Cell, result: Result) -> None:
        """Keeps the result of a cell; of its time series only the course of metrics. Raises
        StudyError where the store cannot be written, StoreFailure where the disk is full."""
        text = written(cell, result)
        self.prepare()
        assert self._writer is not None
        self._places[cell.key] = self._writer.put(cell.key, cell.method, text)

    def prepare(self) -> None:
        """Begins to write, so that a store that cannot be written says so before the first `put`.
        Raises StudyError or StoreFailure."""
        if self._writer is not None and self._writer.open:
            return
        self._end_writing()
        session = Session.current()
        if self._command is not None:
            session = replace(session, command=self._command)
        self._writer = Writer(self.path / "segments", session)
        self._segments[self._writer.segment.path.name] = self._writer.segment

    def get(self, key: str) -> Result | None:
        """The result under `key`; None if there is none, or it is damaged."""
        record = self.record(key)
        return None if record is None else record.result

    def record(self, key: str) -> Record | None:
        """The result under `key` with its scenario and origin; None as by `get`."""
        place = self._places.get(key)
        if place is None:
            return None
        segment = place.segment
        if self._reading is not segment:
            if self._reading is not None:
                self._reading.close()
            self._reading = segment
        try:
            return read(key, segment.text(key, place), segment.session)
        except DamageError as damage:
            segment.fault(place.offset, str(damage))
            del self._places[key]
            return None

    def refresh(self) -> None:
        """Takes in what other processes have put since the store was opened or last refreshed."""
        for path in _segment_paths(self.path / "segments"):
            segment = self._segments.setdefault(path.name, Segment(path))
            self._places.update(segment.scan())

    def sync(self) -> None:
        """Waits until all that was put is on the disk, where other nodes see it. Raises
        StoreFailure."""
        if self._writer is not None and self._writer.open:
            self._writer.sync()

    def close(self) -> None:
        """Ends writing. What was read stays at hand. Raises StoreFailure."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None
        self._end_writing()

    def keys(self) -> list[str]:
        """All keys, in the order written within each segment."""
        return list(self._places)

    def _end_writing(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    @property
    def damages(self) -> list[Damage]:
        """Every damaged place met so far, the oldest segment first."""
        return [each for name in sorted(self._segments) for each in self._segments[name].damages]

    @property
    def damaged(self) -> list[str]:
        """A sentence for each segment that is damaged, the oldest first."""
        by_path = itertools.groupby(self.damages, lambda damage: damage.path)
        return [sentence(path, list(damages)) for path, damages in by_path]

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _segment_paths(folder: Path) -> list[Path]:
    """The oldest first. Raises StudyError where the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.name.endswith(SUFFIX) and e.is_file()]
        return [folder / name for name in sorted(names)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise cannot_read(folder, error) from None
