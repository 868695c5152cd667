"""The folder of a store: how it is made, and how one knows that a folder is a store."""

import errno
import json
import os
import secrets
from pathlib import Path

from daqloom.scenario.files import open_regular
from daqloom.study import StoreFailure, StudyError
from daqloom.words import reason_of

FORMAT = 2
_NAME = "daqloom-store"
_MARK = "format.json"
_SCRATCH = ".format-"
_MOST_MARK_BYTES = 4096
_FULL_OR_BROKEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def cannot_write(path: Path, error: OSError) -> StudyError | StoreFailure:
    """What to raise where `path` could not be written: it was never possible, or no longer is."""
    reason = reason_of(error)
    if error.errno in _FULL_OR_BROKEN:
        return StoreFailure(
            f"cannot write {path}: {reason}; nothing stored so far is lost: make space and give "
            "the same command again"
        )
    return StudyError(
        f"cannot write {path}: {reason}; give a store in a folder that can be written"
    )


def open_folder(path: Path, *, create: bool) -> None:
    """Checks that `path` is a store of a format known here; makes one if told. A folder that is
    empty becomes a store. Raises StudyError, or StoreFailure where the disk is full."""
    try:
        mark = _read_mark(path)
        if mark is None and create:
            if _is_free(path):
                _write_mark(path)
                return
            mark = _read_mark(path)  # another process may have made the store since
    except ValueError:  # a name that no file can have
        raise StudyError(f"{str(path)!r} is not the name of a folder; give another") from None
    except NotADirectoryError:
        raise StudyError(
            f"{path} cannot be a store: it is a file or below one; give a folder"
        ) from None
    except OSError as error:
        raise cannot_read(path, error) from None
    if mark is None:
        raise StudyError(_no_store(path, create))
    _check_mark(path, mark)


def _read_mark(path: Path) -> bytes | None:
    try:
        with open_regular(path / _MARK) as file:
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
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        with scratch.open("x") as file:
            file.write(json.dumps({_NAME: FORMAT}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path / _MARK)
        for folder in (path, *(each.parent for each in made)):
            sync_folder(folder)
    except (NotADirectoryError, FileExistsError):
        raise NotADirectoryError from None
    except OSError as error:
        raise cannot_write(path, error) from None


def sync_folder(path: Path) -> None:
    """Waits until the names of what is in a folder are on the disk: a file whose content is there
    can lack its name after a power cut. Raises OSError."""
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # one may make files in a folder that one may not list
        return
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a file system that writes names at once
            raise
    finally:
        os.close(folder)


def _no_store(path: Path, create: bool) -> str:
    if not path.exists():
        return f"there is no store {path}; give the folder in which a study kept its results"
    if create:
        return f"{path} has other files and is not a store; give a new or an empty folder"
    return f"{path} is not a store ({_MARK} is missing); give the folder of a study's results"


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
    if version != FORMAT:
        use = "update daqloom" if version > FORMAT else "use the daqloom that wrote it"
        raise StudyError(
            f"{path} is a store of format {version}, and this daqloom knows {FORMAT}; {use}, or "
            "give another store"
        )


def cannot_read(path: Path, error: OSError) -> StudyError:
    """What to raise where a store cannot be read."""
    return StudyError(
        f"cannot read the store {path}: {reason_of(error)}; give a folder that can be read"
    )
