"""What a study would compute, what of it is done already, and how long the rest may take."""

import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from daqloom.results.result import Result
from daqloom.scenario import ScenarioError
from daqloom.study import StudyError
from daqloom.study.file.axis import number
from daqloom.study.file.bisection import most_evaluations
from daqloom.study.file.cell import Cell
from daqloom.study.file.file import Study
from daqloom.study.file.kinds import kind_of
from daqloom.study.run.program import Outcome, Task, follow, program, tasks
from daqloom.study.store.store import Store

Part = tuple[int, int]
"""(i, n): the i-th of n shares, i from 0; as many tasks in each, but for one."""
ALL: Part = (0, 1)


class Surveyed(NamedTuple):
    """How far the store knows a task: its answers, then the cell that is missing, the outcome, or
    the sentence that says why the point is no valid system."""

    task: Task
    answers: int
    state: Cell | Outcome | str


@dataclass
class Plan:
    """Counts of tasks (one method, point and seed) and cells (one run of a method)."""

    tasks: int = 0
    tasks_done: int = 0
    cells_done: int = 0
    cells_left: int = 0  # at most: a search may end sooner
    cpu_s: float = 0.0  # estimated for the cells left
    refused: int = 0  # points that are no valid system
    first_refusal: str = ""


def survey(study: Study, store: Store | None, part: Part = ALL) -> Iterator[Surveyed]:
    """Follows the program of every task as far as `store` knows the answers."""

    def known(cell: Cell) -> Result | None:
        return None if store is None else store.get(cell.key)

    for task in share(tasks(study), part):
        try:
            answers, state = follow(program(study, task), known)
        except (ScenarioError, StudyError) as error:
            yield Surveyed(task, 0, str(error))
        else:
            yield Surveyed(task, answers, state)


def plan(study: Study, store: Store | None) -> Plan:
    """Sums up what `store` lacks."""
    found = Plan()
    for task, answers, state in survey(study, store):
        found.tasks += 1
        found.cells_done += answers
        if isinstance(state, str):
            found.refused += 1
            found.first_refusal = found.first_refusal or state
        elif isinstance(state, Cell):
            left = cells_left(study, task, answers)
            found.cells_left += left
            found.cpu_s += task_ahead_s(study, task, answers, state)
        else:
            found.tasks_done += 1
    return found


def how_many(study: Study, part: Part = ALL) -> int:
    """The number of tasks."""
    seeded = sum(map(study.is_seeded, study.methods))
    runs = len(study.methods) + seeded * (len(study.seeds) - 1)
    rounds, rest = divmod(study.points * runs, part[1])
    return rounds + (_place(part, rounds) < rest)


def share(everything: Iterable[Task], part: Part) -> Iterator[Task]:
    """The tasks of a part: one of every round of n. It is another place in each round, lest an axis
    of n steps gives one share all the long runs."""
    everything = iter(everything)
    for turn in itertools.count():
        among = list(itertools.islice(everything, part[1]))
        yield from among[_place(part, turn) :][:1]
        if len(among) < part[1]:
            return


def _place(part: Part, turn: int) -> int:
    """Where, in a round, the task of this part is."""
    return (part[0] + turn) % part[1]


def cells_left(study: Study, task: Task, answers: int) -> int:
    """The most cells that a task still asks for, once it had so many answers."""
    searched = study.search is not None and task.method in study.search.methods
    return max(1, searched_cells(study) - answers) if searched else 1


def searched_cells(study: Study) -> int:
    """The most cells that one search asks for: ⌈log₂(range / tolerance)⌉ + 2, times its votes."""
    search = study.search
    if search is None:
        return 1
    evaluations = most_evaluations(*search.range, search.precision, search.spacing)
    return evaluations * search.votes


def task_ahead_s(study: Study, task: Task, answers: int, cell: Cell) -> float:
    """Estimated time on one core of all that a task still asks for, `cell` first. A search whose
    key decides what a run costs, as the event rate does, asks for values between its bounds: they
    count as the mean of the two."""
    search = study.search
    costly = kind_of(study.base).costly
    if search is None or task.method not in search.methods or search.key not in costly:
        typical_s = cost_s(cell)
    else:
        ends = (_with(cell, {search.key: search.value(x)}) for x in search.range)
        typical_s = statistics.fmean(map(cost_s, ends))
    return cells_left(study, task, answers) * typical_s


def cost_s(cell: Cell) -> float:
    """Estimated time on one core, from what decides it most; builds no scenario; of a
    measurement its length."""
    if cell.method == "measure":
        return number(cell.base, cell.changes, "measure.duration")
    if cell.method != "simulate":
        return kind_of(cell.base).analysis_s
    return kind_of(cell.base).simulation_s(cell.base, cell.changes)


def _with(cell: Cell, changes: Mapping[str, Any]) -> Cell:
    return replace(cell, changes=dict(cell.changes) | dict(changes))
