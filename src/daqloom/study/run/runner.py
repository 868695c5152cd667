"""Drives the programs of a study: from the store where it knows the answer, else by an executor."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from daqloom.results.result import Result
from daqloom.scenario import ScenarioError
from daqloom.study import StudyError
from daqloom.study.file.bisection import Boundary
from daqloom.study.file.cell import Cell
from daqloom.study.file.file import Study
from daqloom.study.run.executor import Executor
from daqloom.study.run.plan import ALL, Part, cost_s, how_many, survey, task_ahead_s
from daqloom.study.run.program import Outcome, Program, Task, follow, program, tasks
from daqloom.study.store.store import Store

TOLD_FROM = 0.01
"""Share of the work after which its pace foretells the end: workers start slowly."""

LATE_S = (0, 0.1, 1, 5, 20, 60)
"""How long to wait for a result that another node has written, before each look: NFS keeps what it
knows of a folder for up to a minute."""


@dataclass
class Progress:
    """How far a study is. `tasks` is known from the start, cells only as searches unfold."""

    tasks: int
    finished: int = 0
    computed: int = 0
    reused: int = 0
    failures: list[tuple[Task, str]] = field(default_factory=list)
    boundaries: dict[Task, Boundary] = field(default_factory=dict)  # of searches
    ahead_s: float = 0.0  # processor time of all that is left, as a plan estimates it
    computed_s: float = 0.0  # the same of all that was computed
    started_s: float = field(default_factory=time.monotonic)

    @property
    def per_minute(self) -> float | None:
        """Runs computed in a minute, so far; None before the first."""
        spent = time.monotonic() - self.started_s
        return 60 * self.computed / spent if self.computed and spent > 0 else None

    @property
    def left_s(self) -> float | None:
        """Estimated time to the end, at the pace so far; None while that says little."""
        ahead_s = max(0.0, self.ahead_s)
        if self.computed_s <= TOLD_FROM * (self.computed_s + ahead_s):
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
    """Computes all of `study`, or of a part of it, that `store` does not hold yet. A cell that
    fails ends its own task only; it is named in `failures` and stays out of the store, so that the
    next run tries it again."""
    return _Run(study, store, executor, report).run(part)


@dataclass
class _Active:
    task: Task
    program: Program
    ahead_s: float  # its share of what is left
    cost_s: float = 0.0  # of the cell it waits for


class _Run:
    def __init__(self, study: Study, store: Store, executor: Executor, report: Report) -> None:
        self.study, self.store, self.executor, self.report = study, store, executor, report
        self.under_way: dict[str, list[_Active]] = {}  # by the key of the cell they wait for

    def run(self, part: Part) -> Progress:
        self.progress = Progress(how_many(self.study, part))
        self.report(self.progress)
        # What the store knows is read once; programs are begun anew, for 10⁵ would fill the memory.
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
        """Counts what is done; gives what is not, with its cost."""
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
        for key, error in self.executor.completed():
            waiting = self.under_way.pop(key)
            result = None
            if error is None:
                self.progress.computed += 1
                self.progress.computed_s += waiting[0].cost_s
                result = self._stored(key)
                if result is None:
                    error = "its result was stored, but cannot be read back"
            for active in waiting:
                if result is None:
                    self._end(active, error or "")
                else:
                    self._spend(active, active.cost_s)
                    self._advance(active, result)
            self.report(self.progress)

    def _stored(self, key: str) -> Result | None:
        """The result that a worker has put; another node may see it late."""
        result = self.store.get(key)
        for wait_s in LATE_S if result is None else ():
            time.sleep(wait_s)
            if key in self.store:
                return self.store.get(key)
        return result

    def _advance(self, active: _Active, result: Result | None) -> None:
        """Gives a program its result (None to begin), and all that the store can answer."""
        try:
            reused, state = follow(active.program, self._known, result)
        except (ScenarioError, StudyError) as error:
            self._end(active, str(error))
            return
        self.progress.reused += reused
        if isinstance(state, Cell):
            self._wait(active, state)
        else:
            self._end(active, state)

    def _known(self, cell: Cell) -> Result | None:
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
        """Counts a task that ended: with its outcome, or the sentence that says why not."""
        self.progress.finished += 1
        if isinstance(end, str):
            self.progress.failures.append((task, end))
        elif end.boundary is not None:
            self.progress.boundaries[task] = end.boundary
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
