"""Files that appear whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daqloom.words import reason_of


class OutputError(OSError):
    """A file or folder that cannot be written. The message is one sentence for a person."""


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Gives a path to write to, in a new folder beside `path` that is the user's alone; renames it
    to `path` when the body is done.

    When the body raises, nothing is left behind and an older file of that name stays as it was.
    Raises `OutputError` where the folder cannot be written or the disk fills.
    """
    folder = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".daqloom-", dir=path.parent))
        yield folder / path.name
        os.replace(folder / path.name, path)
    except OSError as error:
        raise OutputError(
            f"cannot write {path}: {reason_of(error)}; give a folder that can be written"
        ) from None
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Writes a file of text, whole or not at all. Raises `OutputError`."""
    with written_whole(path) as scratch:
        scratch.write_text(text, encoding="utf-8")
