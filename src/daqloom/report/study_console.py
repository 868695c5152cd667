"""How a study is shown on the terminal: its plan, its progress, its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daqloom.study import unbounded
from daqloom.study.file import Study
from daqloom.study.plan import Plan
from daqloom.study.runner import Progress, Report
from daqloom.study.store import Store

SPOKEN_EVERY_S = 5.0
ANNOUNCED_FROM_S = 2.0
"""What takes longer than this by its plan is announced, for its first run may take long, too."""


def print_plan(study: Study, plan: Plan, store: Path) -> None:
    """One paragraph on standard output."""
    axes = " × ".join(f"{len(axis)} {axis.name}" for axis in study.axes) or "1 point"
    print(f"{study.title}: {study.base.name}, {', '.join(study.methods)}")
    print(f"  points    {axes} = {study.points}, seeds {len(study.seeds)}")
    if study.search:
        search = study.search
        print(f"  search    {search.find} {search.key} where {search.where}")
    print(f"  answers   {plan.tasks_done} of {plan.tasks} complete in {store}")
    most = "at most " if study.search and plan.cells_left else ""
    longest = study.equilibrium.longest_s if study.equilibrium and plan.cells_left else 0.0
    extended = longest > study.base.run.duration
    longer = ", and longer ones where they do not settle" if extended else ""
    print(f"  runs      {plan.cells_done} done, {most}{plan.cells_left} to do{longer}")
    print(f"  time      about {duration(plan.cpu_s)} on one core")
    if plan.refused:
        print(f"  refused   {plan.refused} points; the first: {plan.first_refusal}")


@contextmanager
def watch(study: Study) -> Iterator[Report]:
    """Shows progress on standard error: a line every few seconds, failures at once."""
    spoken = time.monotonic()
    shown = 0
    announced = False

    def report(progress: Progress) -> None:
        nonlocal spoken, shown, announced
        for task, sentence in progress.failures[shown:]:
            point = [f"{key} = {value}" for key, value in study.overrides(task.index).items()]
            where = ", ".join([task.method, f"seed {task.seed}", *point])
            print(f"daqloom: {where}: {sentence}", file=sys.stderr)
        shown = len(progress.failures)
        now = time.monotonic()
        long = not announced and progress.ahead_s > ANNOUNCED_FROM_S
        if long or now - spoken >= SPOKEN_EVERY_S:
            spoken = now
            announced = True
            print(line(progress), file=sys.stderr, flush=True)

    yield report


def line(progress: Progress) -> str:
    """How far a study is, in one line."""
    left = ""
    if progress.left_s is not None:
        left = f", about {duration(progress.left_s)} left"
    elif progress.ahead_s > 0:
        left = f", about {duration(progress.ahead_s)} on one core ahead"
    failed = f", {len(progress.failures)} failed" if progress.failures else ""
    pace = f" ({_count(progress.per_minute)} a minute)" if progress.per_minute else ""
    return (
        f"{progress.finished} of {progress.tasks}: {progress.computed} runs computed{pace}, "
        f"{progress.reused} reused{failed}{left}"
    )


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def print_summary(study: Study, progress: Progress, store: Store) -> None:
    """The last word, on standard output."""
    for sentence in store.damaged:
        print(f"daqloom: {sentence}", file=sys.stderr)
    if study.search:
        low, high = map(str, study.search.bounds)
        told = unbounded.sentence(progress.statuses, study.search.find, low, high)
        if told:
            print(f"daqloom: {told}", file=sys.stderr)
    failed = f", {len(progress.failures)} failed" if progress.failures else ""
    answers = progress.finished - len(progress.failures)
    print(
        f"{study.title}: {answers} answers from {progress.computed} runs computed and "
        f"{progress.reused} reused{failed}"
    )


def duration(seconds: float) -> str:
    """`90` → "1.5 min"."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
