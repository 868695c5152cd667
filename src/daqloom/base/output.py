"""Atomic writes: a file appears complete or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daqloom.base.claims import claimed_folder
from daqloom.base.words import reason_of

SCRATCH = ".daqloom-"
LONGEST_WRITE_S = 3600.0
"""Time (s) after which any write has ended. Older scratch folders may be removed."""


class OutputError(OSError):
    """Error for a file or folder that cannot be written; the message is one readable sentence."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a scratch path beside `path`, in a folder that only this user can access. Rename it to
    `path` at the end of the `with` block. If the block raises, the scratch file is removed and an
    existing `path` is unchanged. A later write removes scratch files of killed processes. Raises
    `OutputError` if the folder cannot be written or the disk is full."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with claimed_folder(path.parent, SCRATCH, least_age_s=LONGEST_WRITE_S) as folder:
            yield folder / path.name
            os.replace(folder / path.name, path)
    except OSError as error:
        what = f"cannot write {path}: {reason_of(error)}"
        raise OutputError(f"{what}; give a folder that can be written") from None


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only this user can read; it is on the disk when this returns. Raises
    `OutputError`."""
    with written_whole(path) as scratch:
        handle = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)


def write_text(path: Path, text: str) -> None:
    """Write a text file completely or not at all. Raises `OutputError`."""
    with written_whole(path) as scratch:
        scratch.write_text(text, encoding="utf-8")
