"""Executors, which compute cells in this process or by workers that write to the store."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from typing import Protocol

from daqloom.base import extras, lazy
from daqloom.study.file.cell import TIMED, Cell
from daqloom.study.file.study import Study
from daqloom.study.run.workers import DaskExecutor, compute
from daqloom.study.store.store import Store

with lazy.imports():
    from daqloom.measure import bench


class Executor(Protocol):
    """Computes cells, writes their results to the store, and reports completed cells."""

    @property
    def slots(self) -> int:
        """Number of submitted and unfinished cells (runs) that leaves no worker idle."""

    def submit(self, cell: Cell) -> None:
        """Take a cell, whose outcome `outcomes` yields."""

    def outcomes(self) -> Iterator[tuple[str, str | None]]:
        """Wait for some cells; yield each key, with None or a sentence on why it has no result."""

    def close(self) -> None:
        """Stop the workers. Cells in progress are lost; stored results are kept."""


class TimedApart:
    """Passes cells on to another executor, which `begin` starts for the first cell. Cells of timed
    methods are instead computed here, one after the other, while the other executor is idle."""

    def __init__(self, begin: Callable[[], Executor], store: Store) -> None:
        self._begin = begin
        self._begun: Executor | None = None
        self._store = store
        self._under_way = 0
        self._timed: deque[Cell] = deque()
        self._stack = ExitStack()
        self._keeps = False
        """Whether measurements share their units."""

    @property
    def slots(self) -> int:
        """Slots of the other executor plus waiting timed cells, which occupy no worker."""
        return self._others.slots + len(self._timed)

    def submit(self, cell: Cell) -> None:
        """Take a cell, or pass it on."""
        if cell.method in TIMED:
            if not self._keeps:
                self._stack.enter_context(bench.kept_units())
                self._keeps = True
            self._timed.append(cell)
        else:
            self._others.submit(cell)
            self._under_way += 1

    def outcomes(self) -> Iterator[tuple[str, str | None]]:
        """Wait for cells of the other executor; if it has none, compute one timed cell."""
        if self._under_way == 0 and self._timed:
            cell = self._timed.popleft()
            yield cell.key, compute(cell, self._store)
            return
        for done in self._others.outcomes():
            self._under_way -= 1
            yield done

    def close(self) -> None:
        """Stop the workers of the other executor, if it has begun, and units that are kept."""
        self._stack.close()
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
    """Return an executor: this process for one worker, else processes on this machine (0: one for
    each core), or the workers of a Dask scheduler. Timed cells are computed in this process while
    no other cell is in progress. Workers start with the first cell, whose submission may raise
    StudyError. `note` is called if the scheduler has no worker yet, and if this process computes
    alone because Dask is not installed."""

    def others() -> Executor:
        if (workers == 1 and scheduler is None) or TIMED.issuperset(study.methods):
            return InProcess(store)
        if workers == 0 and scheduler is None and not extras.is_installed("cluster"):
            note(f"one core computes, as {extras.MissingExtraError('distributed')}")
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
        import_module("daqloom.simulate.run")  # a signal during this import aborts
        self._store = store
        self._waiting: list[Cell] = []

    def submit(self, cell: Cell) -> None:
        """Take a cell."""
        self._waiting.append(cell)

    def outcomes(self) -> Iterator[tuple[str, str | None]]:
        """Compute all cells taken."""
        waiting, self._waiting = self._waiting, []
        for cell in waiting:
            yield cell.key, compute(cell, self._store)

    def close(self) -> None:
        """Do nothing, as no cell is ever under way."""
