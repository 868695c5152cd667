"""Counter pages of this machine's units: shared memory that outlives processes, with the counts
between the last heartbeat and the end.

A unit is on this machine if its process exists here with a page of the unit's name, in any network
namespace; or, for a run that outlives its run control, if the folder of the run has its page."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daqloom._engine import Counters, UnitCounters
from daqloom.base.claims import remove_abandoned, share
from daqloom.results.errors import MeasureError

MEMORY = Path("/dev/shm")
PREFIX = "daqloom-run-"
LEAST_AGE_S = 86_400.0
"""Age at which a folder that no process holds is removed: its run was not continued (s)."""


@contextmanager
def pages_folder(run: str) -> Iterator[Path]:
    """Yield the folder in memory for the pages of `run`, which exists if the run is continued. It
    is removed at the end of the block, not if this process is killed. Raises MeasureError."""
    remove_abandoned(MEMORY.glob(f"{PREFIX}{os.getuid()}-*"), least_age_s=LEAST_AGE_S)
    folder = MEMORY / f"{PREFIX}{os.getuid()}-{run}"
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if found.st_uid != os.getuid() or found.st_mode & 0o077 or folder.is_symlink():
            raise MeasureError(f"{folder} is accessible to other users; remove it")
        lock = share(folder)
    except OSError as error:
        raise MeasureError(f"cannot make {folder}: {error.strerror}; see df {MEMORY}") from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


class Pages:
    """Counter pages of the units of `run` on this machine, in a `folder` if there is one."""

    def __init__(self, run: str, folder: str = "") -> None:
        self._run, self._folder = run, folder
        self._pages: dict[int, UnitCounters | None] = {}

    def watch(self, unit: int, process: int) -> None:
        """Watch the page of a unit in a process, if it has one."""
        self._pages[unit] = None
        with suppress(OSError):
            self._pages[unit] = (
                UnitCounters.open(self._folder, unit)
                if self._folder
                else UnitCounters.attach(process, self._run, unit)
            )

    def watches(self, unit: int) -> bool:
        """Return whether the unit is watched, or has no page."""
        return unit in self._pages

    def last(self, unit: int) -> Counters | None:
        """Return the unit's last counters, if it has a page, and stop watching."""
        if self._folder and unit not in self._pages:  # it has ended before its first report
            self.watch(unit, 0)
        page = self._pages.pop(unit, None)
        return page.read() if page is not None else None
