"""Executors of cells: this process, or workers that write to the store themselves."""

from collections import deque
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Protocol

from daqloom.study.file.cell import TIMED, Cell
from daqloom.study.file.file import Study
from daqloom.study.run.workers import DaskExecutor, compute
from daqloom.study.store.store import Store


class Executor(Protocol):
    """Computes cells and reports which are done; their results are in the store."""

    @property
    def slots(self) -> int:
        """Return the number of cells that may be under way at once, so that no worker waits."""

    def submit(self, cell: Cell) -> None:
        """Take a cell, for `completed`."""

    def completed(self) -> Iterator[tuple[str, str | None]]:
        """Wait for some cells: key, and None or the sentence on why there is no result."""

    def close(self) -> None:
        """Stop the workers; cells under way are lost, stored results are not."""


class TimedApart:
    """Passes cells on to an executor, which begins with the first of them, except timed ones:
    these are computed here, one after the other, while the executor has none under way."""

    def __init__(self, begin: Callable[[], Executor], store: Store) -> None:
        self._begin = begin
        self._begun: Executor | None = None
        self._store = store
        self._under_way = 0
        self._timed: deque[Cell] = deque()

    @property
    def slots(self) -> int:
        """Return the slots of the other plus the timed cells: their wait keeps no worker busy."""
        return self._others.slots + len(self._timed)

    def submit(self, cell: Cell) -> None:
        """Take a cell, or pass it on."""
        if cell.method in TIMED:
            self._timed.append(cell)
        else:
            self._others.submit(cell)
            self._under_way += 1

    def completed(self) -> Iterator[tuple[str, str | None]]:
        """Wait for the other executor; when it has no cell, compute a timed one."""
        if self._under_way == 0 and self._timed:
            cell = self._timed.popleft()
            yield cell.key, compute(cell, self._store)
            return
        for done in self._others.completed():
            self._under_way -= 1
            yield done

    def close(self) -> None:
        """Stop the workers of the other executor, if it has begun."""
        if self._begun is not None:
            self._begun.close()

    @property
    def _others(self) -> Executor:
        if self._begun is None:
            self._begun = self._begin()
        return self._begun


def executor_for(
    study: Study,
    store: Store,
    workers: int,
    scheduler: str | None = None,
    note: Callable[[str], None] = lambda sentence: None,
) -> Executor:
    """Return this process for one worker, else processes of this machine (0: one for each core), or
    those of a Dask scheduler; timed cells are computed here, alone. Begins with the first cell.
    `note` is called when a scheduler has no worker yet. Raises StudyError with the first cell."""

    def others() -> Executor:
        if (workers == 1 and scheduler is None) or TIMED.issuperset(study.methods):
            return InProcess(store)
        executor = DaskExecutor(store.path, workers=workers, address=scheduler)
        if not executor.workers:
            note("the scheduler has no worker yet; waiting for the first")
        return executor

    return TimedApart(others, store)


class InProcess:
    """Computes one cell after the other in this process."""

    slots = 1

    def __init__(self, store: Store) -> None:
        import_module("daqloom.simulate.run")  # a signal amid this import would abort the process
        self._store = store
        self._waiting: list[Cell] = []

    def submit(self, cell: Cell) -> None:
        """Take a cell."""
        self._waiting.append(cell)

    def completed(self) -> Iterator[tuple[str, str | None]]:
        """Compute all cells taken."""
        waiting, self._waiting = self._waiting, []
        for cell in waiting:
            yield cell.key, compute(cell, self._store)

    def close(self) -> None:
        """Do nothing, as no cell is ever under way."""
