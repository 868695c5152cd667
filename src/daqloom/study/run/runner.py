"""Runs the programs of a study with results from the store or, if missing, from an executor."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from daqloom.base.claims import claimed_folder
from daqloom.results.result import Result
from daqloom.scenario import ScenarioError
from daqloom.study import StudyError
from daqloom.study.file.bisection import Boundary
from daqloom.study.file.cell import Cell
from daqloom.study.file.study import Study
from daqloom.study.run.executor import Executor, executor_for
from daqloom.study.run.plan import ALL, Part, cost_s, survey, task_ahead_s, task_count
from daqloom.study.run.program import Outcome, Program, Task, follow, program, tasks
from daqloom.study.store.store import Store

FORECAST_FROM = 0.01
"""Completed share from which the remaining time is estimated by the pace; workers start slowly."""

LATE_S = (0, 0.1, 1, 5, 20, 60)
"""Delays (s) before successive attempts to read a result that another node has written. NFS caches
the content of a folder for up to a minute."""


@dataclass
class Progress:
    """Progress of a study. The number of tasks is known from the start, the number of runs is
    not."""

    tasks: int
    finished: int = 0
    computed: int = 0
    reused: int = 0
    failures: list[tuple[Task, str]] = field(default_factory=list)
    boundaries: dict[Task, Boundary] = field(default_factory=dict)  # of searches
    ahead_s: float = 0.0  # estimated CPU time of the remaining cells
    computed_s: float = 0.0  # estimated CPU time of computed cells
    started_s: float = field(default_factory=time.monotonic)

    @property
    def per_minute(self) -> float | None:
        """Mean number of runs computed per minute so far; None before the first."""
        spent = time.monotonic() - self.started_s
        return 60 * self.computed / spent if self.computed and spent > 0 else None

    @property
    def left_s(self) -> float | None:
        """Estimated remaining time (s) at the present pace; None before `FORECAST_FROM`."""
        ahead_s = max(0.0, self.ahead_s)
        if self.computed_s <= FORECAST_FROM * (self.computed_s + ahead_s):
            return None
        spent = time.monotonic() - self.started_s
        return spent / self.computed_s * ahead_s


Report = Callable[[Progress], None]


def run(
    study: Study,
    store: Store,
    executor: Executor,
    report: Report = lambda _: None,
    part: Part = ALL,
) -> Progress:
    """Compute the results of `study`, or of a share of it, that `store` lacks. A failed cell ends
    only its task, which `failures` lists. The failure is not stored, so that the next run tries the
    cell again."""
    return _Run(study, store, executor, report).run(part)


@dataclass
class _Active:
    task: Task
    program: Program
    ahead_s: float  # its part of the remaining CPU time
    cost_s: float = 0.0  # of the cell it waits for


class _Run:
    def __init__(self, study: Study, store: Store, executor: Executor, report: Report) -> None:
        self.study, self.store, self.executor, self.report = study, store, executor, report
        self.under_way: dict[str, list[_Active]] = {}  # keyed by the awaited cell

    def run(self, part: Part) -> Progress:
        self.progress = Progress(task_count(self.study, part))
        self.report(self.progress)
        # The store is read once. Programs start again later, because 10⁵ of them would fill the
        # memory.
        left = deque(self._survey(part))
        self.progress.started_s = time.monotonic()
        self.report(self.progress)
        while left or self.under_way:
            slots = self.executor.slots
            while left and len(self.under_way) < slots:
                self._begin(*left.popleft())
            if self.under_way:
                self._collect()
        return self.progress

    def _survey(self, part: Part) -> Iterator[tuple[Task, float]]:
        """Count completed tasks; yield the others with their estimated CPU time."""
        for task, answers, state in survey(self.study, self.store, part):
            if isinstance(state, Cell):
                ahead_s = task_ahead_s(self.study, task, answers, state)
                self.progress.ahead_s += ahead_s
                yield task, ahead_s
                continue
            self.progress.reused += answers
            self._finish(task, state)

    def _begin(self, task: Task, ahead_s: float) -> None:
        self._advance(_Active(task, program(self.study, task), ahead_s), None)

    def _collect(self) -> None:
        for key, error in self.executor.outcomes():
            waiting = self.under_way.pop(key)
            result = None
            if error is None:
                self.progress.computed += 1
                self.progress.computed_s += waiting[0].cost_s
                result = self._load(key)
                if result is None:
                    error = "its result was stored, but cannot be read back"
            for active in waiting:
                if result is None:
                    self._end(active, error or "")
                else:
                    self._spend(active, active.cost_s)
                    self._advance(active, result)
            self.report(self.progress)

    def _load(self, key: str) -> Result | None:
        """Return the result that a worker has stored; on another node it may appear late."""
        result = self.store.get(key)
        for wait_s in LATE_S if result is None else ():
            time.sleep(wait_s)
            if key in self.store:
                return self.store.get(key)
        return result

    def _advance(self, active: _Active, result: Result | None) -> None:
        """Send a program a result (None to start it), then all further results in the store."""
        try:
            reused, state = follow(active.program, self._find, result)
        except (ScenarioError, StudyError) as error:
            self._end(active, str(error))
            return
        self.progress.reused += reused
        if isinstance(state, Cell):
            self._wait(active, state)
        else:
            self._end(active, state)

    def _find(self, cell: Cell) -> Result | None:
        return None if cell.key in self.under_way else self.store.get(cell.key)

    def _wait(self, active: _Active, cell: Cell) -> None:
        if cell.key not in self.under_way:
            self.executor.submit(cell)
        active.cost_s = cost_s(cell)
        self.under_way.setdefault(cell.key, []).append(active)

    def _end(self, active: _Active, end: Outcome | str) -> None:
        active.program.close()
        self._spend(active, active.ahead_s)
        self._finish(active.task, end)

    def _spend(self, active: _Active, cost_s: float) -> None:
        active.ahead_s -= cost_s
        self.progress.ahead_s -= cost_s

    def _finish(self, task: Task, end: Outcome | str) -> None:
        """Count a completed task, given its outcome or a sentence on why there is none."""
        self.progress.finished += 1
        if isinstance(end, str):
            self.progress.failures.append((task, end))
        elif end.boundary is not None:
            self.progress.boundaries[task] = end.boundary
        self.report(self.progress)


@contextmanager
def compute(
    study: Study,
    folder: str | PathLike[str] | None,
    workers: int,
    report: Report,
) -> Iterator[tuple[Iterator[tuple[Task, Outcome | None]], Progress]]:
    """Compute a study with the store in `folder` (None: a temporary folder). Yields an iterator
    over all tasks with their outcomes, and the final progress."""
    with ExitStack() as stack:
        path = Path(folder or stack.enter_context(claimed_folder()))
        store = stack.enter_context(Store.open(path, create=True))
        store.prepare()
        executor = executor_for(study, store, workers)
        stack.callback(executor.close)
        progress = run(study, store, executor, report)
        yield replay(study, store), progress


def replay(study: Study, store: Store) -> Iterator[tuple[Task, Outcome | None]]:
    """Yield every task with its outcome from the store, None if a cell is missing."""
    for task in tasks(study):
        yield task, _outcome(study, store, task)


def _outcome(study: Study, store: Store, task: Task) -> Outcome | None:
    try:
        _, state = follow(program(study, task), lambda cell: store.get(cell.key))
    except (ScenarioError, StudyError):
        return None
    return None if isinstance(state, Cell) else state
