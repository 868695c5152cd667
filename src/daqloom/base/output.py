"""Files that appear whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daqloom.base.claims import claimed_folder
from daqloom.base.words import reason_of

SCRATCH = ".daqloom-"
LONGEST_WRITE_S = 3600.0
"""Time after which a write has ended, also on another machine (s)."""


class OutputError(OSError):
    """A file or folder that cannot be written. The message is one sentence for a person."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a path in a new folder beside `path` that is the user's alone; rename it to `path` when
    the body is done.

    When the body raises, nothing is left behind and an older file stays; a later write removes the
    rest of a killed process. Raises `OutputError` where the folder cannot be written or the disk
    fills.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with claimed_folder(path.parent, SCRATCH, least_age_s=LONGEST_WRITE_S) as folder:
            yield folder / path.name
            os.replace(folder / path.name, path)
    except OSError as error:
        what = f"cannot write {path}: {reason_of(error)}"
        raise OutputError(f"{what}; give a folder that can be written") from None


def write_text(path: Path, text: str) -> None:
    """Writes a file of text, whole or not at all. Raises `OutputError`."""
    with written_whole(path) as scratch:
        scratch.write_text(text, encoding="utf-8")
