"""Terminal output for a study: plan, progress and summary."""

import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from daqloom.base import extras
from daqloom.base.words import plural, unit_of_time
from daqloom.cli.console.store import damage_noted
from daqloom.cli.console.terminal import bar, note
from daqloom.report.study.answers import answers
from daqloom.study.file import search_bounds
from daqloom.study.file.study import Study
from daqloom.study.run.executor import executor_for
from daqloom.study.run.plan import Plan
from daqloom.study.run.runner import Progress, Report, run
from daqloom.study.store.store import Store

SPOKEN_EVERY_S = 5.0
ANNOUNCED_FROM_S = 2.0
"""Planned time (s) above which progress is printed at the start, as the first run may be long."""


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
def watch(study: Study, *, quiet: bool = False) -> Iterator[Report]:
    """Show progress on standard error: a bar on a terminal, else a line every few seconds. Failures
    are printed immediately."""
    shown = bar(words_last=True) if sys.stderr.isatty() and not quiet else None
    reported, last_s, announced = 0, time.monotonic(), False

    def write(sentence: str) -> None:
        if shown is None:
            print(sentence, file=sys.stderr, flush=True)
        else:
            shown.console.print(sentence, soft_wrap=True, markup=False, highlight=False)

    def report(progress: Progress) -> None:
        nonlocal reported, last_s, announced
        for task, sentence in progress.failures[reported:]:
            point = [f"{key} = {value}" for key, value in study.steps(task.index).items()]
            where = ", ".join([task.method, f"seed {task.seed}", *point])
            write(f"daqloom: {where}: {sentence}")
        reported = len(progress.failures)
        now = time.monotonic()
        is_due = now - last_s >= SPOKEN_EVERY_S
        if shown is not None:
            done, total = progress.finished, progress.tasks
            shown.update(shown.tasks[0].id, completed=done, total=total, description=line(progress))
        elif not quiet and (is_due or (not announced and progress.ahead_s > ANNOUNCED_FROM_S)):
            last_s, announced = now, True
            write(line(progress))

    try:
        yield report
    finally:
        if shown is not None:
            shown.stop()


@contextmanager
def computation(
    study: Study,
    store: Path,
    workers: int,
    scheduler: str | None = None,
    share: tuple[int, int] = (0, 1),
    *,
    quiet: bool = False,
) -> Iterator[tuple[Progress, Store]]:
    """Compute the results that a store lacks and show the progress. Yields the final progress and
    the open store. Raises MissingExtraError before the first run."""
    extras.require("studies")
    with damage_noted(Store.open(store, create=True)) as opened:
        opened.prepare()
        executor = executor_for(study, opened, workers, scheduler, note)
        try:
            with watch(study, quiet=quiet) as report:
                progress = run(study, opened, executor, report, share)
        finally:
            executor.close()
        yield progress, opened


def line(progress: Progress) -> str:
    """Return the progress of a study as one line."""
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


def print_summary(study: Study, progress: Progress) -> None:
    """Print the computed cells and the results of searches."""
    if study.search:
        low, high = map(str, study.search.bounds)
        statuses = Counter[str](boundary.status for boundary in progress.boundaries.values())
        warning = search_bounds.sentence(statuses, study.search.find, low, high)
        if warning:
            print(f"daqloom: {warning}", file=sys.stderr)
    failed = f", {len(progress.failures)} failed" if progress.failures else ""
    count = progress.finished - len(progress.failures)
    print(
        f"{study.title}: {plural(count, 'answer')} from {plural(progress.computed, 'run')} "
        f"computed and {progress.reused} reused{failed}"
    )
    for answer in answers(study, progress.boundaries):
        print(answer)


def duration(seconds: float) -> str:
    """Return a readable time: 90 (s) is "1.5 min"."""
    length, unit = unit_of_time(seconds)
    return f"{seconds / length:.1f} {unit}" if unit != "s" else f"{seconds:.0f} s"
