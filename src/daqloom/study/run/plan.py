"""Plan of a study: its tasks, the completed ones, and an estimate of the remaining time."""

import itertools
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from daqloom.results.result import Result
from daqloom.scenario import ScenarioError
from daqloom.study import StudyError
from daqloom.study.file.axis import number
from daqloom.study.file.bisection import most_evaluations
from daqloom.study.file.cell import Cell
from daqloom.study.file.kinds import kind_of
from daqloom.study.file.study import Study
from daqloom.study.run.program import Outcome, Task, follow, program, tasks
from daqloom.study.store.store import Store

Part = tuple[int, int]
"""(i, n): the i-th of n equal shares of the tasks; i starts at 0."""
ALL: Part = (0, 1)


class TaskState(NamedTuple):
    """State of a task: the number of its results in the store, and one of: the next missing cell,
    the outcome of a complete task, or a sentence on why the point is no valid system."""

    task: Task
    answers: int
    state: Cell | Outcome | str


@dataclass
class Plan:
    """Numbers of tasks (one method, point and seed each) and of cells (one run each)."""

    tasks: int = 0
    tasks_done: int = 0
    cells_done: int = 0
    cells_left: int = 0  # at most: a search may end sooner
    cpu_s: float = 0.0  # estimated for the cells left
    refused: int = 0  # points that are no valid system
    first_refusal: str = ""


def survey(study: Study, store: Store | None, part: Part = ALL) -> Iterator[TaskState]:
    """Yield the state of every task, as far as `store` has the results of its cells."""

    def find(cell: Cell) -> Result | None:
        return None if store is None else store.get(cell.key)

    for task in share(tasks(study), part):
        try:
            answers, state = follow(program(study, task), find)
        except (ScenarioError, StudyError) as error:
            yield TaskState(task, 0, str(error))
        else:
            yield TaskState(task, answers, state)


def plan(study: Study, store: Store | None) -> Plan:
    """Return the numbers of tasks and cells that are complete in `store` or missing."""
    totals = Plan()
    for task, answers, state in survey(study, store):
        totals.tasks += 1
        totals.cells_done += answers
        if isinstance(state, str):
            totals.refused += 1
            totals.first_refusal = totals.first_refusal or state
        elif isinstance(state, Cell):
            totals.cells_left += cells_left(study, task, answers)
            totals.cpu_s += task_ahead_s(study, task, answers, state)
        else:
            totals.tasks_done += 1
    return totals


def task_count(study: Study, part: Part = ALL) -> int:
    """Return the number of tasks in a share of the study."""
    seeded = sum(map(study.is_seeded, study.methods))
    runs = len(study.methods) + seeded * (len(study.seeds) - 1)
    rounds, rest = divmod(study.points * runs, part[1])
    return rounds + (_place(part, rounds) < rest)


def share(everything: Iterable[Task], part: Part) -> Iterator[Task]:
    """Yield the tasks of a share: one from each group of n successive tasks, at another position in
    each group. Otherwise an axis of n steps could give one share all long runs."""
    everything = iter(everything)
    for turn in itertools.count():
        among = list(itertools.islice(everything, part[1]))
        yield from among[_place(part, turn) :][:1]
        if len(among) < part[1]:
            return


def _place(part: Part, turn: int) -> int:
    """Return the position of the share's task in a group of n tasks."""
    return (part[0] + turn) % part[1]


def cells_left(study: Study, task: Task, answers: int) -> int:
    """Return the maximum number of runs that a task still needs after `answers` results."""
    searched = study.search is not None and task.method in study.search.methods
    return max(1, searched_cells(study) - answers) if searched else 1


def searched_cells(study: Study) -> int:
    """Return the maximum number of runs in a search: ⌈log₂(range / tolerance)⌉ + 2, times its
    votes."""
    search = study.search
    if search is None:
        return 1
    return search.votes * most_evaluations(*search.range, search.precision, search.spacing)


def task_ahead_s(study: Study, task: Task, answers: int, cell: Cell) -> float:
    """Return the estimated CPU time (s) of all cells that a task still needs, starting with `cell`.
    If the searched key affects the cost of a run, such as the event rate, each run counts with the
    mean of the costs at both bounds."""
    search = study.search
    costly = kind_of(study.base).costly
    if search is None or task.method not in search.methods or search.key not in costly:
        typical_s = cost_s(cell)
    else:
        ends = ({**cell.changes, search.key: search.value(end)} for end in search.range)
        typical_s = statistics.fmean(cost_s(replace(cell, changes=each)) for each in ends)
    return cells_left(study, task, answers) * typical_s


def cost_s(cell: Cell) -> float:
    """Return the estimated CPU time (s) of a cell without building its scenario; for a measurement,
    its duration."""
    if cell.method == "measure":
        return number(cell.base, cell.changes, "measure.duration")
    if cell.method != "simulate":
        return kind_of(cell.base).analysis_s
    return kind_of(cell.base).simulation_s(cell.base, cell.changes)
