"""The folder of a store: how it is made, and how one knows that a folder is a store."""

from __future__ import annotations

import errno
import json
import os
import secrets
from pathlib import Path

from daqloom.study.errors import StoreFailure, StudyError

FORMAT = 1
_NAME = "daqloom-store"
_MARK = "format.json"
_SCRATCH = ".format-"
_MOST_MARK_BYTES = 4096
_FULL_OR_BROKEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def cannot_write(path: Path, error: OSError) -> StudyError | StoreFailure:
    """What to raise where `path` could not be written: it was never possible, or no longer is."""
    reason = (error.strerror or str(error)).lower()
    if error.errno in _FULL_OR_BROKEN:
        return StoreFailure(
            f"cannot write {path}: {reason}; nothing stored so far is lost: make space and give "
            "the same command again"
        )
    return StudyError(
        f"cannot write {path}: {reason}; give a store in a folder that can be written"
    )


def open_folder(path: Path, *, create: bool) -> None:
    """Checks that `path` is a store of a format known here; makes one if told.

    A folder that is empty becomes a store. Raises StudyError, or StoreFailure where the disk is
    full.
    """
    try:
        mark = _read_mark(path)
        if mark is None and create and _is_free(path):
            _write_mark(path)
            return
    except ValueError:  # a name that no file can have
        raise StudyError(f"{str(path)!r} is no name of a folder; give another") from None
    except NotADirectoryError:
        raise StudyError(
            f"{path} cannot be a store: it is a file or lies below one; give a folder"
        ) from None
    except OSError as error:
        raise _cannot_read(path, error) from None
    if mark is None:
        raise StudyError(_no_store(path, create))
    _check_mark(path, mark)


def _read_mark(path: Path) -> bytes | None:
    try:
        with (path / _MARK).open("rb") as file:
            return file.read(_MOST_MARK_BYTES)
    except FileNotFoundError:
        return None


def _is_free(path: Path) -> bool:
    """Nothing is there, or nothing but what another process leaves while it makes the store."""
    try:
        return all(name.startswith(_SCRATCH) or name == _MARK for name in os.listdir(path))
    except FileNotFoundError:
        return True


def _write_mark(path: Path) -> None:
    """Several processes may do this at once: the file appears whole, and is the same by all."""
    scratch = path / f"{_SCRATCH}{secrets.token_hex(8)}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        with scratch.open("x") as file:
            file.write(json.dumps({_NAME: FORMAT}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path / _MARK)
    except (NotADirectoryError, FileExistsError):
        raise NotADirectoryError from None
    except OSError as error:
        raise cannot_write(path, error) from None


def _no_store(path: Path, create: bool) -> str:
    if not path.exists():
        return f"there is no store {path}; give the folder in which a study kept its results"
    if create:
        return (
            f"{path} is a folder with other things in it and no store; give a new or an empty one"
        )
    return f"{path} is no store ({_MARK} is missing); give the folder of a study's results"


def _check_mark(path: Path, text: bytes) -> None:
    try:
        mark = json.loads(text)
        version = mark[_NAME]
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise StudyError(
            f'{path / _MARK} is not what a store has there; expected {{"{_NAME}": {FORMAT}}}'
        ) from None
    if version > FORMAT:
        raise StudyError(
            f"{path} is a store of format {version}, and this daqloom knows up to {FORMAT}; "
            "update daqloom, or give another store"
        )


def _cannot_read(path: Path, error: OSError) -> StudyError:
    reason = (error.strerror or str(error)).lower()
    return StudyError(f"cannot read the store {path}: {reason}; give a folder that can be read")
