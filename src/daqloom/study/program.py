"""What a study computes, as programs that ask for cells and are given their results.

A program is a generator: it yields the cell it needs next, is sent that cell's result, and returns
its outcome. It neither computes nor stores; so a study that was interrupted is simply begun anew,
with every answer already in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from daqloom.result import Result
from daqloom.study.bisection import Boundary, bisect_by_vote
from daqloom.study.cell import SEEDED, Cell
from daqloom.study.file import Search, Study, is_whole, search_bounds, search_tolerance
from daqloom.study.file import search_value as value_of

VOTER_STRIDE = 1_000_003
"""Voters of one repetition draw from seeds far from those of any other."""


@dataclass(frozen=True)
class Outcome:
    """What a program found: the result at its point, or at the boundary that it searched."""

    result: Result | None
    boundary: Boundary | None = None


Program: TypeAlias = Generator[Cell, Result, Outcome]


@dataclass(frozen=True)
class Task:
    """One method at one point with one seed."""

    method: str
    index: tuple[int, ...]
    seed: int


def tasks(study: Study) -> Iterator[Task]:
    """All that a study asks for, in the order in which it is computed.

    Seeds come last, so that a study stopped half-way has every point once before any twice.
    """
    for place, seed in enumerate(study.seeds):
        for method in study.methods:
            if place > 0 and method not in SEEDED:
                continue  # one answer for all seeds
            for index in study.indices():
                yield Task(method, index, seed)


def program(study: Study, task: Task) -> Program:
    """The program of one task. Raises ScenarioError when its point is no valid system."""
    if study.search is None or study.search.method != task.method:
        return _single(study, task)
    return _search(study, study.search, task)


def follow(
    steps: Program, known: Callable[[Cell], Result | None], result: Result | None = None
) -> tuple[int, Cell | Outcome]:
    """Advances a program as far as `known` has the answers: how many, and the cell or the end.

    `result` is that of the cell which the program waits for; None to begin.
    """
    answers = 0
    try:
        cell = next(steps) if result is None else steps.send(result)
        while (answer := known(cell)) is not None:
            answers += 1
            cell = steps.send(answer)
    except StopIteration as end:
        outcome: Outcome = end.value
        return answers, outcome
    return answers, cell


def _cell(study: Study, task: Task, seed: int, more: Mapping[str, Any] | None = None) -> Cell:
    changes = study.overrides(task.index) | dict(more or {})
    drawn = seed if task.method in SEEDED else None
    return Cell(study.base, changes, task.method, drawn, study.hasher.hash(changes))


def _single(study: Study, task: Task) -> Program:
    result = yield _cell(study, task, task.seed)
    return Outcome(result)


def _search(study: Study, search: Search, task: Task) -> Program:
    low, high = search_bounds(search)
    ballots = bisect_by_vote(
        low,
        high,
        search_tolerance(search),
        find=search.find,
        grid=search.spacing,
        whole=is_whole(search),
        seeds=[task.seed + VOTER_STRIDE * voter for voter in range(search.votes)],
    )
    tried: dict[float, Result] = {}
    try:
        value, seed = next(ballots)
        while True:
            result = yield _cell(study, task, seed, {search.key: value_of(search, value)})
            holds = study.condition.holds(result)
            if holds or value not in tried:
                tried[value] = result
            value, seed = ballots.send(holds)
    except StopIteration as end:
        boundary: Boundary = end.value
        return Outcome(None if boundary.value is None else tried[boundary.value], boundary)
