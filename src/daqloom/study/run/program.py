"""Programs of a study: generators that yield the cells they need and receive the results. A program
yields a cell, receives the cell's result, yields the next cell, and finally returns its outcome. It
neither computes nor stores results. After an interruption, programs start again and receive earlier
results from the store."""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from daqloom.results.result import Result
from daqloom.study.file.axis import number, text
from daqloom.study.file.bisection import Boundary, bisect_by_vote, driven
from daqloom.study.file.cell import SEEDED, Cell
from daqloom.study.file.saturation import DURATION, RATE
from daqloom.study.file.study import Study
from daqloom.study.file.tables import Search
from daqloom.study.statistics.equilibrium import extend, stationary

VOTER_STRIDE = 1_000_003
"""Distance between seeds of successive voters, so that repetitions do not share voters' seeds."""


@dataclass(frozen=True)
class Run:
    """Result for one system after any extension of the run. `saturated`: whether the offered rate
    exceeds the capacity, so that the run was shortened. `equilibrium`: whether the metric of the
    study's table [equilibrium] was stationary; empty without this table."""

    result: Result
    saturated: bool = False
    equilibrium: Literal["", "stationary", "drifting"] = ""


@dataclass(frozen=True)
class Outcome:
    """Outcome of a program: the run at its point or, for a search, the run at the boundary."""

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
    """Yield all tasks of a study in the order of computation. All points are computed with one seed
    before the next seed, so that a stopped study has covered all points."""
    for place, seed in enumerate(study.seeds):
        for method in study.methods:
            if place > 0 and not study.is_seeded(method):
                continue  # one answer for all seeds
            for index in study.indices():
                yield Task(method, index, seed)


def program(study: Study, task: Task) -> Program:
    """Return the program of one task. Raises ScenarioError if its point is no valid system."""
    if study.search is None or task.method not in study.search.methods:
        return _single(study, task)
    return _search(study, study.search, task)


def follow(
    steps: Program, known: Callable[[Cell], Result | None], result: Result | None = None
) -> tuple[int, Cell | Outcome]:
    """Advance a program as far as `known` returns results. Return the number of these results, and
    the cell that lacks one or the program's outcome. `result` is the awaited result; None for a new
    program."""
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
    """Run a task's point with the keys `more` changed. A saturated run is shortened; others are
    extended until they are stationary."""
    changes = study.overrides(task.index) | dict.fromkeys(study.seed_sets, seed) | dict(more)
    saturation, simulated = study.saturation, task.method == "simulate"
    saturated = saturation is not None and saturation.excess_hz(changes) > 0
    if saturation and saturated and simulated:
        changes = saturation.shorten(changes)
    if saturated or not simulated or study.equilibrium is None:
        return Run((yield _cell(study, task, seed, changes)), saturated)
    equilibrium, results = study.equilibrium, list[Result]()

    def is_settled(duration_s: float) -> Generator[Cell, Result, bool]:
        extended = changes | {DURATION: text(DURATION, duration_s)}
        results.append((yield _cell(study, task, seed, extended)))
        course, confidence = results[-1].series["course"], equilibrium.confidence
        values = course.get(equilibrium.metric)  # not stationary without values
        return values is not None and stationary(values, confidence=confidence).is_stationary

    durations = extend(number(study.base, changes, DURATION), equilibrium.longest_s)
    settled = yield from driven(durations, is_settled)
    return Run(results[-1], False, "stationary" if settled else "drifting")


def _single(study: Study, task: Task) -> Program:
    return Outcome((yield from _run(study, task, task.seed, {})))


def _search(study: Study, search: Search, task: Task) -> Program:
    runs: dict[float, Run] = {}

    def holds(vote: tuple[float, int]) -> Generator[Cell, Result, bool]:
        value, seed = vote
        run = yield from _run(study, task, seed, {search.key: search.value(value)})
        # A run beyond the capacity is too short for conditions such as events_waiting == 0.
        is_excess = run.saturated and search.key == RATE
        outcome = study.condition.holds(run.result) and not is_excess
        if outcome or value not in runs:
            runs[value] = run
        return outcome

    ballots = bisect_by_vote(
        *search.range,
        search.precision,
        find=search.find,
        grid=search.spacing,
        whole=search.is_whole,
        seeds=[task.seed + VOTER_STRIDE * voter for voter in range(search.votes)],
    )
    boundary = yield from driven(ballots, holds)
    return Outcome(None if boundary.value is None else runs[boundary.value], boundary)
