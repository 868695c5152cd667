"""Folders of runs: each run has one, named by its ID, which only this user can access.

A run control locks (flock) the folder of its run. An ID is the time of the start (UTC) and the name
of the scenario, `20261130-190500-laptop`, with a number at the end for a second run within that
second."""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from daqloom.base.output import OutputError
from daqloom.base.words import join_names, printable, reason_of
from daqloom.results.errors import MeasureError

LONGEST_NAME = 60
"""Characters of a scenario's name in an ID."""
LONGEST_ID = 100
ID = re.compile(r"[0-9]{8}-[0-9]{6}-[A-Za-z0-9._-]+")
ATTEMPTS, PAUSE_S = 10, 0.02
"""Attempts to take the lock of a folder, and the pause between them (s)."""
HINT = "set DAQLOOM_RUNS to a folder of yours"


def runs_root() -> Path:
    """Return the folder of all runs of this user, which may not exist: $DAQLOOM_RUNS, or else
    `daqloom/runs` in $XDG_STATE_HOME (`~/.local/state` by default)."""
    if named := os.environ.get("DAQLOOM_RUNS"):
        return Path(named).absolute()
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base, "daqloom", "runs")


def new_run_folder(name: str) -> Path:
    """Make the folder of a new run of the scenario `name`. Raises OutputError."""
    root = runs_root()
    kept = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-")[:LONGEST_NAME] or "run"
    begin = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{kept}"
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in count(1):
            folder = root / (begin if number == 1 else f"{begin}-{number}")
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
                break
    except OSError as error:
        raise OutputError(f"cannot make a folder in {root}: {reason_of(error)}; {HINT}") from None
    return folder


def run_folders() -> list[Path]:
    """Return the folders of this user's runs, the newest first. Raises MeasureError."""
    root = runs_root()
    try:
        with os.scandir(root) as found:
            names = [each.name for each in found if each.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise MeasureError(f"cannot read {root}: {reason_of(error)}; {HINT}") from None
    return [root / name for name in sorted(filter(is_id, names), reverse=True)]


def is_id(name: str) -> bool:
    """Return whether a name has the form of a run's ID."""
    return len(name) <= LONGEST_ID and ID.fullmatch(name) is not None


def find_run_folder(run: str) -> Path:
    """Return the folder of a run by its path, its ID, the only one that begins with `run`, or
    `last`. Raises MeasureError."""
    if os.sep in run and (Path(run) / "about.json").is_file():
        return Path(run).absolute()
    folders = run_folders()
    same = [each for each in folders if each.name == run]
    found = same or [each for each in folders if run and each.name.startswith(run)]
    if run == "last":  # the newest one with a description
        found = [each for each in folders if (each / "about.json").is_file()][:1]
    if len(found) == 1:
        return found[0]
    if found:
        names = join_names([each.name for each in found[:4]])
        raise MeasureError(f"{len(found)} runs begin with {run}, such as {names}; give more of one")
    raise MeasureError(
        f'there is no run "{printable(run[:LONGEST_ID])}" in {runs_root()}; `daqloom runs list` '
        "lists all"
    )


@contextmanager
def locked_run_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder: only one run control may write to it. Raises MeasureError
    if another process holds it."""
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise MeasureError(f"cannot open {folder}: {reason_of(error)}; {HINT}") from None
    try:
        if not _takes(lock):
            raise MeasureError(f"another run control holds the folder {folder}; end that one first")
        yield
    finally:
        os.close(lock)


def _takes(lock: int) -> bool:
    """Take a lock; return False if another process keeps it. Readers take it for microseconds."""
    for attempt in range(ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE_S if attempt < ATTEMPTS - 1 else 0)
        except OSError:  # file systems without locks
            return True
        else:
            return True
    return False
