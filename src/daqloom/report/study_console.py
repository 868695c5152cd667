"""How a study is shown on the terminal: its plan, its progress, its end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daqloom.study.file import Study
from daqloom.study.plan import Plan
from daqloom.study.runner import Progress, Report
from daqloom.study.store import Store

SPOKEN_EVERY_S = 5.0


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
    print(f"  runs      {plan.cells_done} done, {most}{plan.cells_left} to do")
    print(f"  time      about {duration(plan.cpu_s)} on one core")
    if plan.refused:
        print(f"  refused   {plan.refused} points; the first: {plan.first_refusal}")


@contextmanager
def watch(study: Study) -> Iterator[Report]:
    """Shows progress on standard error: a line every few seconds, failures at once."""
    spoken = time.monotonic()
    shown = 0

    def report(progress: Progress) -> None:
        nonlocal spoken, shown
        for task, sentence in progress.failures[shown:]:
            where = ", ".join(f"{k} = {v}" for k, v in study.overrides(task.index).items())
            print(f"daqloom: {task.method}, seed {task.seed}, {where}: {sentence}", file=sys.stderr)
        shown = len(progress.failures)
        now = time.monotonic()
        if now - spoken >= SPOKEN_EVERY_S:
            spoken = now
            print(line(progress), file=sys.stderr, flush=True)

    yield report


def line(progress: Progress) -> str:
    """How far a study is, in one line."""
    left = "" if progress.left_s is None else f", about {duration(progress.left_s)} left"
    failed = f", {len(progress.failures)} failed" if progress.failures else ""
    return (
        f"{progress.finished} of {progress.tasks}: {progress.computed} runs computed, "
        f"{progress.reused} reused{failed}{left}"
    )


def print_summary(study: Study, progress: Progress, store: Store) -> None:
    """The last word, on standard output."""
    for sentence in store.damaged:
        print(f"daqloom: {sentence}", file=sys.stderr)
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
