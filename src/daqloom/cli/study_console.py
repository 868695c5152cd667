"""How a study is shown on the terminal: its plan, its progress, its end."""

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from daqloom.report.study.answers import answers
from daqloom.study import unbounded
from daqloom.study.file import Study
from daqloom.study.plan import Plan
from daqloom.study.runner import Progress, Report
from daqloom.words import counted

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
def watch(study: Study, *, quiet: bool = False) -> Iterator[Report]:
    """Shows progress on standard error, failures at once: a bar on a terminal, else a line every
    few seconds."""
    show = _nothing if quiet else _bar if sys.stderr.isatty() else _log
    shown = 0
    with show() as (tell, say):

        def report(progress: Progress) -> None:
            nonlocal shown
            for task, sentence in progress.failures[shown:]:
                point = [f"{key} = {value}" for key, value in study.overrides(task.index).items()]
                where = ", ".join([task.method, f"seed {task.seed}", *point])
                say(f"daqloom: {where}: {sentence}")
            shown = len(progress.failures)
            tell(progress)

        yield report


Shown = Iterator[tuple[Report, Callable[[str], None]]]
"""Takes how far a study is, and sentences about failures."""


@contextmanager
def _nothing() -> Shown:
    yield (lambda progress: None), _print


@contextmanager
def _log() -> Shown:
    spoken = time.monotonic()
    announced = False

    def tell(progress: Progress) -> None:
        nonlocal spoken, announced
        now = time.monotonic()
        long = not announced and progress.ahead_s > ANNOUNCED_FROM_S
        if long or now - spoken >= SPOKEN_EVERY_S:
            spoken = now
            announced = True
            _print(line(progress))

    yield tell, _print


@contextmanager
def _bar() -> Shown:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column
    from rich.text import Text

    said = TextColumn("{task.description}", markup=False, table_column=Column(overflow="fold"))
    console = Console(stderr=True)
    bar = Bar(BarColumn(bar_width=20), TaskProgressColumn(), said, console=console, transient=True)
    task = bar.add_task("", total=None)

    def tell(progress: Progress) -> None:
        bar.update(
            task, completed=progress.finished, total=progress.tasks, description=line(progress)
        )

    with bar:
        yield tell, lambda sentence: console.print(Text(sentence), soft_wrap=True)


def _print(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


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


def print_summary(study: Study, progress: Progress) -> None:
    """What was done, and what the searches found, on standard output."""
    if study.search:
        low, high = map(str, study.search.bounds)
        statuses = Counter[str](boundary.status for boundary in progress.boundaries.values())
        told = unbounded.sentence(statuses, study.search.find, low, high)
        if told:
            print(f"daqloom: {told}", file=sys.stderr)
    failed = f", {len(progress.failures)} failed" if progress.failures else ""
    count = progress.finished - len(progress.failures)
    print(
        f"{study.title}: {counted(count, 'answer')} from {counted(progress.computed, 'run')} "
        f"computed and {progress.reused} reused{failed}"
    )
    for told in answers(study, progress.boundaries):
        print(told)


def duration(seconds: float) -> str:
    """Return a time (s) for people: 90 is "1.5 min"."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
