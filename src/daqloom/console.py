"""How the command line talks to a person: tables, progress, one sentence for every failure."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from daqloom.metrics import UNITS, flatten, for_people

if TYPE_CHECKING:
    from daqloom.result import Result

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130

SILENT_S = 2.0
"""A run that takes longer than this shows its progress."""
SPOKEN_EVERY_S = 10.0


@contextmanager
def plain_failures(saved: str = "nothing was saved") -> Iterator[None]:
    """Turns what can go wrong for a person into one sentence and an exit code.

    A programming error keeps its traceback.
    """
    from daqloom.measure.errors import MeasureError
    from daqloom.output import OutputError
    from daqloom.scenario.errors import ScenarioError
    from daqloom.simulate import SimulationError
    from daqloom.study.errors import StudyFailure

    try:
        yield
        sys.stdout.flush()
    except ScenarioError as error:
        fail(str(error), BAD_INPUT)
    except (SimulationError, MeasureError, StudyFailure, OutputError) as error:
        fail(str(error), FAILED)
    except KeyboardInterrupt:
        fail(f"interrupted; {saved}", INTERRUPTED)
    except BrokenPipeError:
        # The reader went away, as `head` does; the interpreter must not flush into it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except MemoryError:
        fail("out of memory; make the scenario smaller, or run.duration shorter", FAILED)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        fail(f"cannot write the output: {(error.strerror or 'disk full').lower()}", FAILED)
    except Exception as error:
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        fail(f"interrupted; {saved}", INTERRUPTED)  # in a serializer, where pydantic wraps it


def fail(sentence: str, code: int) -> NoReturn:
    """Print one sentence on standard error and exit."""
    print(f"daqloom: {sentence}", file=sys.stderr)
    sys.exit(code)


def check_writable(path: Path, option: str, suffixes: tuple[str, ...] = ()) -> None:
    """Refuse a file that cannot be written before hours are spent on it; raises ScenarioError."""
    from daqloom.scenario.errors import ScenarioError

    if suffixes and path.suffix.lower() not in suffixes:
        raise ScenarioError(f"{option} {path}: the name must end in {' or '.join(suffixes)}")
    try:
        if path.is_dir():
            raise ScenarioError(f"{option} {path} is a folder; expected a file to write")
        folder = next(p for p in path.absolute().parents if p.exists())
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ScenarioError(
            f"{option} {path} cannot be written: {reason}; give a file in another folder"
        ) from None


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """Gives a function that takes the share done, 0 to 1, and shows it once that takes long."""
    with spoken(what) as say:
        yield lambda share: say(share, "")


@contextmanager
def spoken(what: str) -> Iterator[Callable[[float, str], None]]:
    """The same, of a function that also takes what to say of it."""
    started = last = time.monotonic()
    bar: Any = None

    def show(share: float, how: str) -> None:
        nonlocal bar, last
        now = time.monotonic()
        if now - started < SILENT_S:
            return
        how = f", {how}" if how else ""
        if not sys.stderr.isatty():
            if now - last >= SPOKEN_EVERY_S or last == started:
                print(f"{what}: {share:.0%}{how}", file=sys.stderr, flush=True)
                last = now
            return
        if bar is None:
            bar = _bar(what)
        bar.update(bar.tasks[0].id, completed=share, description=what + how)

    try:
        yield show
    finally:
        if bar is not None:
            bar.stop()


def _bar(what: str) -> Any:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.add_task(escape(what), total=1.0)
    bar.start()
    return bar


def print_result(result: Result) -> None:
    """Print a result as tables for people; `--json` is for programs."""
    from rich import box
    from rich.console import Console
    from rich.table import Column, Table

    from daqloom.measure.told import checked, fates

    console = Console(highlight=False)
    console.print(f"[bold]{result.scenario}[/bold]: {result.method}", end="")
    console.print("" if result.seed is None else f", seed {result.seed}")
    if result.analysis:
        forms = Table(Column("closed form", no_wrap=True), "value", "holds", box=box.SIMPLE_HEAD)
        for row in _closed_forms(result.analysis):
            forms.add_row(*row)
        console.print(forms)
    metrics = Table(Column("metric", no_wrap=True), "value", box=box.SIMPLE_HEAD)
    for name, value in _few(flatten(_for_table(result))):
        metrics.add_row(name, for_people(name, value))
    console.print(metrics)
    for sentence in (*checked(result), *fates(result)):
        console.print(sentence)
    for warning in result.warnings:
        console.print(f"note: {warning}", markup=False)
    rate = result.engine.get("packet_hops_per_cpu_s")
    if rate:
        cpu = for_people("cpu_s", result.engine["cpu_s"])
        console.print(f"{cpu} of processor time, {rate / 1e6:.1f} M packet-hops per second")


def _for_table(result: Result) -> dict[str, Any]:
    """Of a measurement without what a sentence tells better, and without causes that did not
    happen."""
    shown: dict[str, Any] = dict(result.metrics)
    if result.method != "measure":
        return shown
    shown.pop("events_accounted", None)
    if not shown.get("idle_share"):
        shown.pop("idle_share", None)
    waiting = {why: share for why, share in shown.get("waiting_share", {}).items() if share}
    return {**shown, "waiting_share": waiting} if "waiting_share" in shown else shown


MOST_OF_A_KIND = 8
"""A rack has hundreds of links and ports; of those that have a number, a table shows so many."""


def _few(metrics: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    counts = Counter(root for root, numbered in map(_kind, metrics) if numbered)
    for name, value in metrics.items():
        root, numbered = _kind(name)
        if not numbered or counts[root] <= MOST_OF_A_KIND:
            yield name, value


def _kind(name: str) -> tuple[str, bool]:
    root, *parts = name.split(".")
    return root, any(part.isdigit() for part in parts)


def _closed_forms(analysis: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for name, entry in analysis.items():
        if name.rpartition("_")[2] in UNITS:  # one number each for several places
            for place, value in entry.items():
                yield f"{name}.{place}", for_people(name, value), ""
            continue
        main = "value_bytes" if "value_bytes" in entry else next(iter(entry))
        holds = ""
        if "valid" in entry:
            holds = "yes" if entry["valid"] else f"no: {entry.get('failing', '')}"
        if "satisfied" in entry:
            holds += ", satisfied" if entry["satisfied"] else ", not satisfied"
        yield name, for_people(main, entry[main]), holds
