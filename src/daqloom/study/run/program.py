"""What a study computes, as programs that ask for cells and are given their results.

A program is a generator: it yields the cell it needs next, is sent that cell's result, and returns
its outcome. It neither computes nor stores; so a study that was interrupted is simply begun anew,
with every answer already in the store.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from daqloom.results.result import Result
from daqloom.study.file.axis import number, text
from daqloom.study.file.bisection import Boundary, bisect_by_vote
from daqloom.study.file.cell import SEEDED, Cell
from daqloom.study.file.file import Equilibrium, Search, Study
from daqloom.study.file.saturation import DURATION
from daqloom.study.statistics.equilibrium import extend, stationary

VOTER_STRIDE = 1_000_003
"""Voters of one repetition draw from seeds far from those of any other."""


@dataclass(frozen=True)
class Run:
    """One system, run for as long as it takes. `saturated`: offered more than it can carry, hence
    cut short. `equilibrium`: whether the course of the metric that [equilibrium] names had settled;
    empty where nobody asked."""

    result: Result
    saturated: bool = False
    equilibrium: Literal["", "stationary", "drifting"] = ""


@dataclass(frozen=True)
class Outcome:
    """What a program found: the run at its point, or at the boundary that it searched."""

    run: Run | None
    boundary: Boundary | None = None


Program: TypeAlias = Generator[Cell, Result, Outcome]


@dataclass(frozen=True)
class Task:
    """One method at one point with one seed."""

    method: str
    index: tuple[int, ...]
    seed: int


def tasks(study: Study) -> Iterator[Task]:
    """All that a study asks for, in the order in which it is computed. Seeds come last, so that a
    study stopped half-way has every point once before any twice."""
    for place, seed in enumerate(study.seeds):
        for method in study.methods:
            if place > 0 and not study.is_seeded(method):
                continue  # one answer for all seeds
            for index in study.indices():
                yield Task(method, index, seed)


def program(study: Study, task: Task) -> Program:
    """The program of one task. Raises ScenarioError when its point is no valid system."""
    if study.search is None or task.method not in study.search.methods:
        return _single(study, task)
    return _search(study, study.search, task)


def follow(
    steps: Program, known: Callable[[Cell], Result | None], result: Result | None = None
) -> tuple[int, Cell | Outcome]:
    """Advances a program as far as `known` has the answers: how many, and the cell or the end.
    `result` is that of the cell which the program waits for; None to begin."""
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


def _cell(study: Study, task: Task, seed: int, changes: Mapping[str, Any]) -> Cell:
    drawn = seed if task.method in SEEDED else None
    return Cell(study.base, changes, task.method, drawn, study.hasher.hash(changes))


def _run(
    study: Study, task: Task, seed: int, more: Mapping[str, Any]
) -> Generator[Cell, Result, Run]:
    """The point with `more` keys set: short where it is saturated, extended until it is settled."""
    changes = study.overrides(task.index) | dict.fromkeys(study.seed_sets, seed) | dict(more)
    saturation, simulated = study.saturation, task.method == "simulate"
    saturated = saturation is not None and saturation.excess_hz(changes) > 0
    if saturation and saturated and simulated:
        changes = saturation.bounded(changes)
    if saturated or not simulated or study.equilibrium is None:
        return Run((yield _cell(study, task, seed, changes)), saturated)
    wanted = study.equilibrium
    durations = extend(number(study.base, changes, DURATION), wanted.longest_s)
    try:
        duration_s = next(durations)
        while True:
            extended = changes | {DURATION: text(DURATION, duration_s)}
            result = yield _cell(study, task, seed, extended)
            duration_s = durations.send(_is_settled(result, wanted))
    except StopIteration as end:
        return Run(result, False, "stationary" if end.value else "drifting")


def _is_settled(result: Result, wanted: Equilibrium) -> bool:
    """Whether the course of the metric is stationary; where it has none, nothing is known to be."""
    course = result.series["course"].get(wanted.metric)
    return course is not None and stationary(course, confidence=wanted.confidence).is_stationary


def _single(study: Study, task: Task) -> Program:
    return Outcome((yield from _run(study, task, task.seed, {})))


def _search(study: Study, search: Search, task: Task) -> Program:
    low, high = search.range
    ballots = bisect_by_vote(
        low,
        high,
        search.precision,
        find=search.find,
        grid=search.spacing,
        whole=search.is_whole,
        seeds=[task.seed + VOTER_STRIDE * voter for voter in range(search.votes)],
    )
    tried: dict[float, Run] = {}
    try:
        value, seed = next(ballots)
        while True:
            run = yield from _run(study, task, seed, {search.key: search.value(value)})
            holds = study.condition.holds(run.result)
            if holds or value not in tried:
                tried[value] = run
            value, seed = ballots.send(holds)
    except StopIteration as end:
        boundary: Boundary = end.value
        return Outcome(None if boundary.value is None else tried[boundary.value], boundary)
