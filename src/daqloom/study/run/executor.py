"""Where cells are computed: in this process, or by workers that write to the store themselves."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from daqloom.study.file.cell import TIMED, Cell
from daqloom.study.file.file import Study
from daqloom.study.run.workers import DaskExecutor, compute
from daqloom.study.store.store import Store


class Executor(Protocol):
    """Takes cells and says which are done; their results lie in the store."""

    @property
    def slots(self) -> int:
        """How many cells may be under way at once, so that no worker waits."""

    def submit(self, cell: Cell) -> None:
        """Takes a cell; `completed` will name it."""

    def completed(self) -> Iterator[tuple[str, str | None]]:
        """Waits for some cells: key, and None or the sentence that says why there is no result."""

    def close(self) -> None:
        """Gives the workers up; what is under way is lost, what is stored is not."""


class TimedApart:
    """Hands cells on to an executor, which begins with the first of them, except those that are
    timed: these are computed here, one after the other, while it has none under way."""

    def __init__(self, begin: Callable[[], Executor], store: Store) -> None:
        self._begin = begin
        self._begun: Executor | None = None
        self._store = store
        self._under_way = 0
        self._timed: deque[Cell] = deque()

    @property
    def slots(self) -> int:
        """As many as the other has beyond what is timed: waiting here keeps no worker busy."""
        return self._others.slots + len(self._timed)

    def submit(self, cell: Cell) -> None:
        """Takes a cell, or hands it on."""
        if cell.method in TIMED:
            self._timed.append(cell)
        else:
            self._others.submit(cell)
            self._under_way += 1

    def completed(self) -> Iterator[tuple[str, str | None]]:
        """Waits for the others; when there are none, computes a timed one."""
        if self._under_way == 0 and self._timed:
            cell = self._timed.popleft()
            yield cell.key, compute(cell, self._store)
            return
        for done in self._others.completed():
            self._under_way -= 1
            yield done

    def close(self) -> None:
        """Gives up the workers of the other executor, if it has begun."""
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
    say: Callable[[str], None] = lambda sentence: None,
) -> Executor:
    """This process for one worker, else processes of this machine (0: one for each core), or those
    of a Dask scheduler; what is timed is computed here, by itself. Begins with the first cell.
    `say` is told that a scheduler has no worker yet. Raises StudyError with the first cell."""

    def others() -> Executor:
        if (workers == 1 and scheduler is None) or TIMED.issuperset(study.methods):
            return InProcess(store)
        executor = DaskExecutor(store.path, workers=workers, address=scheduler)
        if not executor.workers:
            say("the scheduler has no worker yet; waiting for the first")
        return executor

    return TimedApart(others, store)


class InProcess:
    """One cell after the other, here."""

    slots = 1

    def __init__(self, store: Store) -> None:
        import daqloom.simulate.run  # noqa: F401 - a signal amid this import would abort the process

        self._store = store
        self._waiting: list[Cell] = []

    def submit(self, cell: Cell) -> None:
        """Takes a cell."""
        self._waiting.append(cell)

    def completed(self) -> Iterator[tuple[str, str | None]]:
        """Computes what was submitted."""
        waiting, self._waiting = self._waiting, []
        for cell in waiting:
            yield cell.key, compute(cell, self._store)

    def close(self) -> None:
        """Do nothing, as no cell is ever under way."""
