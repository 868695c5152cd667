"""Drives the programs of a study: from the store where it knows the answer, else by an executor."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from daqloom.result import Result
from daqloom.scenario import ScenarioError
from daqloom.study.cell import Cell
from daqloom.study.errors import StudyError
from daqloom.study.executor import Executor
from daqloom.study.file import Study
from daqloom.study.plan import cost_s
from daqloom.study.program import Outcome, Program, Task, follow, program, tasks
from daqloom.study.store import Store


@dataclass
class Progress:
    """How far a study is. `tasks` is known from the start, cells only as searches unfold."""

    tasks: int
    finished: int = 0
    computed: int = 0
    reused: int = 0
    failures: list[tuple[Task, str]] = field(default_factory=list)
    planned_s: float | None = None  # what all cells may cost, as a plan estimates it
    computed_s: float = 0.0  # the same for those computed
    started_s: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float | None:
        """Estimated time to the end: what is left of the plan, at the pace so far; None before."""
        if self.planned_s is None or self.computed_s == 0:
            return None
        spent = time.monotonic() - self.started_s
        return spent / self.computed_s * max(0.0, self.planned_s - self.computed_s)


Report = Callable[[Progress], None]


def run(
    study: Study,
    store: Store,
    executor: Executor,
    report: Report = lambda _: None,
    part: tuple[int, int] = (0, 1),
    planned_s: float | None = None,
) -> Progress:
    """Computes all of `study` that `store` does not hold yet; of `part` (i, n), every n-th task.

    `planned_s` is what that may cost (see `plan`), for the estimate of the time left.

    A cell that fails ends its own task only; it is named in `failures` and stays out of the store,
    so that the next run tries it again.
    """
    first, step = part
    chosen = list(itertools.islice(tasks(study), first, None, step))
    steps = _Run(study, store, executor, report, chosen)
    steps.progress.planned_s = planned_s
    return steps.run()


@dataclass
class _Active:
    task: Task
    program: Program
    cost_s: float = 0.0  # of the cell it waits for


class _Run:
    def __init__(
        self, study: Study, store: Store, executor: Executor, report: Report, chosen: list[Task]
    ) -> None:
        self.study, self.store, self.executor, self.report = study, store, executor, report
        self.under_way: dict[str, list[_Active]] = {}  # by the key of the cell they wait for
        self.left = iter(chosen)
        self.progress = Progress(len(chosen))

    def run(self) -> Progress:
        self.report(self.progress)
        exhausted = False
        while not exhausted or self.under_way:
            while not exhausted and len(self.under_way) < self.executor.slots:
                exhausted = not self._begin_next()
            if self.under_way:
                self._collect()
        return self.progress

    def _begin_next(self) -> bool:
        task = next(self.left, None)
        if task is None:
            return False
        active = _Active(task, program(self.study, task))
        self._advance(active, None)
        return True

    def _collect(self) -> None:
        for key, error in self.executor.completed():
            waiting = self.under_way.pop(key)
            result = None
            if error is None:
                self.progress.computed += 1
                self.progress.computed_s += waiting[0].cost_s
                if key not in self.store:
                    self.store.refresh()  # a worker has put it; it put others of its batch, too
                result = self.store.get(key)
                if result is None:
                    error = "its result was stored, and cannot be read back"
            for active in waiting:
                if result is None:
                    self._fail(active, error or "")
                else:
                    self._advance(active, result)
            self.report(self.progress)

    def _advance(self, active: _Active, result: Result | None) -> None:
        """Gives a program its result (None to begin), and all that the store can answer."""
        try:
            reused, state = follow(active.program, self._known, result)
        except (ScenarioError, StudyError) as error:
            self._fail(active, str(error))
            return
        self.progress.reused += reused
        if isinstance(state, Cell):
            self._wait(active, state)
        else:
            self.progress.finished += 1
            self.report(self.progress)

    def _known(self, cell: Cell) -> Result | None:
        return None if cell.key in self.under_way else self.store.get(cell.key)

    def _wait(self, active: _Active, cell: Cell) -> None:
        if cell.key not in self.under_way:
            self.executor.submit(cell)
        active.cost_s = cost_s(cell)
        self.under_way.setdefault(cell.key, []).append(active)

    def _fail(self, active: _Active, sentence: str) -> None:
        active.program.close()
        self.progress.finished += 1
        self.progress.failures.append((active.task, sentence))
        self.report(self.progress)


def replay(study: Study, store: Store) -> Iterator[tuple[Task, Outcome | None]]:
    """Every task with its outcome as the store knows it; None where a cell is missing."""
    for task in tasks(study):
        yield task, _replayed(study, store, task)


def _replayed(study: Study, store: Store, task: Task) -> Outcome | None:
    try:
        _, state = follow(program(study, task), lambda cell: store.get(cell.key))
    except (ScenarioError, StudyError):
        return None
    return None if isinstance(state, Cell) else state
