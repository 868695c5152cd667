"""The store of studies: a folder with one file for each result, `cells/K/KEY.json.gz`. Separate
files need no locks, so any number of nodes can write at once. (SQLite needs locks, which many
network file systems do not support.) K, the first digit of KEY, keeps folders small. A file is
renamed to its final name when complete; files `.KEY…` of killed processes can be deleted."""

import errno
import json
import os
import secrets
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from daqloom.base.words import reason_of
from daqloom.results.result import Result
from daqloom.scenario.files import open_regular
from daqloom.study import StoreFailure, StudyError
from daqloom.study.file.cell import Cell
from daqloom.study.store.record import MOST_BYTES, Record, Session, pack, unpack

FORMAT = 3
CONVERTED = 2
"""Earlier store format, which `conversion` converts."""
_NAME = "daqloom-store"
_MARK = "format.json"
_MOST_MARK_BYTES = 4096
_END = ".json.gz"
_MOST_NAMED = 3
_SYNCS_AT_ONCE = 16
"""Files synced in parallel: a journal writes them together, in a tenth of the time."""
_FULL_OR_BROKEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Damage(NamedTuple):
    """A file whose result cannot be used."""

    path: Path
    reason: str


class Store:
    """Results by key, in files and not in memory. Several processes may use a store at once, and
    several threads of a process if each has its own `Store`. After `put`, a result survives the end
    of the process; after `sync` or `close`, also a crash of the machine. A damaged result counts as
    absent and is listed in `damages`. A later result of a key replaces an earlier one."""

    def __init__(self, path: Path, command: str | None = None) -> None:
        """Create the object without a check of the store's format; use `open` instead."""
        self.path = path
        self._command = command
        self._cells = path / "cells"
        self._unsynced: list[Path] = []
        self._damages: dict[Path, Damage] = {}

    @classmethod
    def open(cls, path: Path | str, *, create: bool, command: str | None = None) -> Self:
        """Open a store. With `create`, make a new store if the folder is missing or empty.
        `command` is the command line to record with results, by default that of this process. An
        existing store is not written to before the first `put`. Raises StudyError."""
        version = format_of(Path(path), create=create)
        if version != FORMAT:
            remedy = "update daqloom" if version > FORMAT else "use the daqloom that wrote it"
            if version == CONVERTED:
                remedy = f"convert it with `daqloom study convert --store {path}`"
            raise StudyError(
                f"{path} is a store of format {version}, and this daqloom reads {FORMAT}; "
                f"{remedy}, or give another store"
            )
        return cls(Path(path), command)

    def put(self, cell: Cell, result: Result) -> None:
        """Store the result of a cell, without time series other than the course of metrics. Raises
        StudyError if the store cannot be written, StoreFailure if the disk is full."""
        self.write(cell.key, pack(cell, result, self._session))

    def write(self, key: str, content: bytes) -> None:
        """Write the file of a result. Raises as `put` does."""
        path = self._path(key)
        if len(content) > MOST_BYTES:
            raise StoreFailure(
                f"cannot write {path}: a record of {len(content)} bytes is larger than "
                f"{MOST_BYTES}; store it without its series"
            )
        try:
            try:
                _write_whole(path, content)
            except FileNotFoundError:
                self._cells.mkdir(exist_ok=True)
                path.parent.mkdir(exist_ok=True)
                _write_whole(path, content)
        except OSError as error:
            raise _cannot_write(path, error) from None
        self._unsynced.append(path)

    def prepare(self) -> None:
        """Write and remove a file, to detect a store that cannot be written before the first `put`.
        Raises StudyError or StoreFailure."""
        try:
            self._cells.mkdir(exist_ok=True)
            _write_whole(probe := self._cells / f".{secrets.token_hex(8)}", b"")
            probe.unlink()
        except OSError as error:
            raise _cannot_write(self._cells, error) from None

    def get(self, key: str) -> Result | None:
        """Return the result of `key`; None if it is missing or damaged."""
        record = self.record(key)
        return None if record is None else record.result

    def record(self, key: str) -> Record | None:
        """Return the result of `key` with its origin; None if it is missing or damaged."""
        path = self._path(key)
        try:
            with open_regular(path) as file:
                if os.fstat(file.fileno()).st_size > MOST_BYTES:
                    raise ValueError(f"it is larger than {MOST_BYTES} bytes")
                return unpack(key, file.read())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            reason = reason_of(error) if isinstance(error, OSError) else str(error)
            self._damages[path] = Damage(path, reason)
        return None

    def sync(self) -> None:
        """Wait until all results are on disk and visible to other nodes. Raises StoreFailure."""
        files, self._unsynced = self._unsynced, []
        try:
            if files:
                _sync(files)
                _sync({*(path.parent for path in files), self._cells, self.path})
        except OSError as error:
            raise StoreFailure(str(_cannot_write(self.path, error))) from None

    def close(self) -> None:
        """Sync; the store can be used again. Raises StoreFailure."""
        self.sync()

    def keys(self) -> list[str]:
        """Return all keys, sorted."""
        return sorted(path.name.removesuffix(_END) for path in self._cells.glob(f"?/[!.]*{_END}"))

    @property
    def damages(self) -> list[Damage]:
        """All damaged results that were read so far."""
        return list(self._damages.values())

    @property
    def damage(self) -> list[str]:
        """One sentence on all damage, in a list that is empty without damage."""
        named = [f"{each.path}: {each.reason}" for each in self.damages]
        if not named:
            return []
        results = "1 result is" if len(named) == 1 else f"{len(named)} results are"
        if more := len(named) - _MOST_NAMED:
            named[_MOST_NAMED:] = [f"and {more} more"] if more > 0 else []
        return [
            f"{self.path} is damaged ({'; '.join(named)}); {results} lost and computed anew where "
            "a study needs them"
        ]

    def __contains__(self, key: str) -> bool:
        """Return whether there is a file for `key`. The folder is listed, because a network file
        system may have cached that the file is absent."""
        path = self._path(key)
        with suppress(FileNotFoundError):
            return path.name in os.listdir(path.parent)
        return False

    def __len__(self) -> int:
        return len(self.keys())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _session(self) -> Session:
        return Session.current(self._command)

    def _path(self, key: str) -> Path:
        return self._cells / key[0] / f"{key}{_END}"


def format_of(path: Path, *, create: bool = False) -> int:
    """Return the format of the store at `path`; with `create`, make an empty or missing folder a
    store. Raises StudyError, or StoreFailure if the disk is full."""
    mark = path / _MARK
    if "\0" in str(path):
        raise StudyError(f"{str(path)!r} is not the name of a folder; give another")
    try:
        if create and not mark.exists() and _is_free(path):
            write_mark(path)
        with open_regular(mark) as file:
            text = file.read(_MOST_MARK_BYTES)
    except FileNotFoundError:
        raise StudyError(_no_store(path, create)) from None
    except NotADirectoryError:
        raise StudyError(
            f"{path} cannot be a store: it is a file or below one; give a folder"
        ) from None
    except OSError as error:
        raise StudyError(
            f"cannot read the store {path}: {reason_of(error)}; give a folder that can be read"
        ) from None
    try:
        version = json.loads(text)[_NAME]
        if type(version) is int and version > 0:
            return version
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise StudyError(f'{mark} is no mark of a store; expected {{"{_NAME}": {FORMAT}}}')


def write_mark(path: Path) -> None:
    """Make the folder `path` a store. Several processes may do this at once: the mark file is
    written atomically. Raises StudyError, StoreFailure or NotADirectoryError."""
    made = [folder.parent for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        _write_whole(path / _MARK, json.dumps({_NAME: FORMAT}).encode() + b"\n", sync=True)
        _sync([path, *made])
    except (NotADirectoryError, FileExistsError):
        raise NotADirectoryError from None
    except OSError as error:
        raise _cannot_write(path, error) from None


def _is_free(path: Path) -> bool:
    """Return whether the folder is empty except for files of a process that creates a store."""
    try:
        return all(name.startswith(f".{_MARK}") or name == _MARK for name in os.listdir(path))
    except FileNotFoundError:
        return True


def _no_store(path: Path, create: bool) -> str:
    if not path.exists():
        return f"there is no store {path}; give the folder in which a study kept its results"
    if create:
        return f"{path} has other files and is not a store; give a new or an empty folder"
    return f"{path} is not a store ({_MARK} is missing); give the folder of a study's results"


def _write_whole(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Write a scratch file beside `path` and rename it, so that `path` is complete whenever it
    exists. Raises OSError and then removes the scratch file."""
    scratch = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    file = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            while content:
                content = content[os.write(file, content) :]
            if sync:
                os.fsync(file)
        finally:
            os.close(file)  # NFS reports a full disk here
        os.replace(scratch, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(scratch)
        raise


def _sync(paths: Iterable[Path]) -> None:
    """Wait until files, or the entries of folders, are on disk. Raises OSError."""
    with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
        list(pool.map(_sync_one, paths))


def _sync_one(path: Path) -> None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:  # a folder that can be written but not listed
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that write names at once
            raise
    finally:
        os.close(file)


def _cannot_write(path: Path, error: OSError) -> StudyError | StoreFailure:
    """Return a failed write's error: StoreFailure for a full or broken disk, else StudyError."""
    reason = reason_of(error)
    if error.errno in _FULL_OR_BROKEN:
        return StoreFailure(
            f"cannot write {path}: {reason}; nothing stored so far is lost: make space and give "
            "the same command again"
        )
    return StudyError(
        f"cannot write {path}: {reason}; give a store in a folder that can be written"
    )
