"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class OutputError(OSError):
    """A file or folder that cannot be written. The message is one sentence for a person."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Gives a path beside `path` to write to; renames it to `path` when the body is done.

    When the body raises, nothing is left behind and an older file of that name stays as it was.
    Raises `OutputError` where the folder cannot be written or the disk fills.
    """
    scratch = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield scratch
        os.replace(scratch, path)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(
            f"cannot write {path}: {reason}; give a folder that can be written"
        ) from None
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)
