"""What `daqloom data recover` does and tells."""

from __future__ import annotations

import json as json_
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.cli.console import progress
from daqloom.metrics import with_unit
from daqloom.words import reason_of

if TYPE_CHECKING:
    from daqloom.data.recover import Recovered


def list_unfinished(folders: Sequence[Path], json: bool) -> None:
    """Prints the unfinished files. Raises ScenarioError."""
    from daqloom.data.recover import unfinished

    found = []
    for folder in folders:
        with _folder(folder):
            found += unfinished(folder)
    if json:
        print(json_.dumps({"files": [asdict(each) for each in found]}))
        return
    for each in found:
        use = ", in use by a unit" if each.in_use else ""
        print(f"{each.file}: {with_unit(each.nbytes, 'B')}{use}")
    if not found:
        print("no unfinished files")


def recover_all(folders: Sequence[Path], drop: bool, json: bool) -> bool:
    """Whether some are left. Raises ScenarioError, and OutputError where a file cannot be
    changed."""
    from daqloom.data.recover import recover

    done: list[Recovered] = []
    with progress(f"recovering {', '.join(map(str, folders))}") as show:
        for folder in folders:
            with _folder(folder):
                done += recover(folder, drop=drop, progress=show)
    if json:
        print(json_.dumps({"files": [each.record() for each in done]}))
        return any(each.is_left for each in done)
    for each in done:
        print(f"{each.file}: {_told(each)}")
    if not done:
        print("no unfinished files")
    return any(each.is_left for each in done)


def _told(done: Recovered) -> str:
    size = with_unit(done.nbytes, "B")
    match done.outcome:
        case "finished":
            cut = done.nbytes - done.kept_bytes
            rest = f", {with_unit(cut, 'B')} cut off" if cut else ""
            return f"finished as {done.finished_as}, {done.packets:,} packets of {size}{rest}"
        case "dropped":
            return f"deleted, {size}"
        case "in use":
            return f"left alone, {size}: a unit still writes it; stop the run first"
    return f"left alone, {size}: {done.finished_as} already exists; move it away first"


@contextmanager
def _folder(folder: Path) -> Iterator[None]:
    """What is no folder is bad input; what cannot be changed is a failure."""
    from daqloom.output import OutputError
    from daqloom.scenario.errors import ScenarioError

    if not folder.is_dir():
        raise ScenarioError(f"{folder} is not a folder; give one with the recording of a run")
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot recover {error.filename or folder}: {reason_of(error)}"
        ) from None
