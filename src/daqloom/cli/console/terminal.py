"""Terminal output of commands: tables, progress, and one sentence for each failure."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from json import dumps
from logging import ERROR
from pathlib import Path
from typing import Any, NoReturn, Protocol

from daqloom.base import extras, lazy
from daqloom.base.log import report
from daqloom.base.words import printable, reason_of
from daqloom.cli.console.columns import print_list, print_table
from daqloom.results.errors import MeasureError
from daqloom.results.metrics import with_unit
from daqloom.results.result import (
    FORM_HEAD,
    METRIC_HEAD,
    Result,
    StoppedError,
    form_rows,
    metric_rows,
)
from daqloom.scenario.errors import ScenarioError
from daqloom.tasks import failures
from daqloom.tasks.failures import escape, failure_of

with lazy.imports():
    from rich import console as rich_console
    from rich import progress as rich_progress
    from rich import table

    from daqloom.control.counters import warnings


FAILED, BAD_INPUT = failures.FAILED, failures.BAD_INPUT
INTERRUPTED = 130
PIPE_CLOSED = 141
"""Exit code that a shell shows for a program ended by SIGPIPE."""

FILE_SUFFIXES = {".html", ".htm", ".pdf", ".png", ".svg", ".jpg", ".json", ".csv", ".parquet"}
"""File endings that the name of an output folder must not have."""
SILENT_S = 2.0
"""Time (s) of a run after which progress is shown."""
SPOKEN_EVERY_S = 10.0


def unwritable(error: OSError) -> NoReturn:
    """Exit if output cannot be written, such as on a full disk; raise any other error."""
    if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
        raise error
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    fail(f"cannot write the output: {(error.strerror or 'disk full').lower()}", FAILED)


@contextmanager
def plain_failures(saved: str) -> Iterator[None]:
    """Turn expected failures into one sentence and an exit code.

    A programming error keeps its traceback.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt:
        fail(f"interrupted; {saved}", INTERRUPTED)
    except BrokenPipeError:
        _end_of_reader()
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # rich exits on a closed pipe
            _end_of_reader()
        raise
    except Exception as error:
        if found := failure_of(error):
            fail(*found)
        if isinstance(error, OSError):
            unwritable(error)
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        fail(f"interrupted; {saved}", INTERRUPTED)  # pydantic wraps Ctrl-C in a serializer


def _end_of_reader() -> NoReturn:
    """Exit as if by SIGPIPE, because the reader of the output, such as `head`, has ended."""
    # Without this, the interpreter flushes into the closed pipe again at its exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(PIPE_CLOSED)


def whole_or_stopped(run: Callable[[], Result]) -> Result:
    """Return the result of `run`, or its partial result if Ctrl-C or a failure ended it. Exits
    after Ctrl-C without a partial result."""
    try:
        return run()
    except StoppedError as error:
        if error.result is None:
            fail(str(error), INTERRUPTED)
        return error.result
    except MeasureError as error:
        if error.result is None:
            raise
        return error.result


def present(result: Result, *, json: bool, quiet: bool = False, series: Sequence[str] = ()) -> None:
    """Print a result as tables (`quiet`: without notes), or as JSON with the time series named in
    `series`. Exits with an error code if the run was interrupted or failed."""
    print(result.to_json(series=series)) if json else print_result(result, quiet=quiet)
    if result.interrupted:
        sys.stdout.flush()
        fail("interrupted; the result covers the time until then", INTERRUPTED)
    end_if_failed(result)


def end_if_failed(*results: Result) -> None:
    """Exit if checks of a result failed, or if events of its recording are missing."""
    if sentences := [sentence for result in results for sentence in warnings.failures(result)]:
        sys.stdout.flush()
        fail("; ".join(sentences), FAILED)


def print_json(record: Any) -> None:
    """Print a record as JSON."""
    print(dumps(record, indent=2, allow_nan=False))


def present_list(kind: str, titles: Mapping[str, str], *, json: bool) -> None:
    """Print names with titles, as readable lines or as a JSON object with the list `kind`."""
    print_json(list_record(kind, titles)) if json else print_list(titles)


def list_record(kind: str, titles: Mapping[str, str]) -> dict[str, Any]:
    """Return the JSON object of a list of names with titles."""
    return {"schema": 1, kind: [{"name": n, "title": title} for n, title in titles.items()]}


def note(sentence: str) -> None:
    """Print or log one sentence on standard error."""
    report(escape(sentence))


def fail(sentence: str, code: int) -> NoReturn:
    """Print or log one sentence on standard error and exit."""
    report(escape(sentence), ERROR)
    sys.exit(code)


def check_figures(paths: Sequence[Path], suffixes: tuple[str, ...]) -> None:
    """`check_writable` for each --figure; raises MissingExtraError without the extra `figures`."""
    if paths:
        extras.require("figures")
    for path in paths:
        check_writable(path, "--figure", suffixes)


def check_folder(path: Path, option: str, page: str) -> None:
    """Raise ScenarioError if an output folder has the name of a file, or `page` cannot be written
    in it."""
    if path.suffix.lower() in FILE_SUFFIXES and not path.is_dir():
        raise ScenarioError(
            f"{option} {path} is the name of a file; expected a folder, which gets {page} and the "
            f'figures as files of their own, such as "{path.with_suffix("")}"'
        )
    check_writable(path / page, option)


def check_writable(path: Path, option: str, suffixes: tuple[str, ...] = ()) -> None:
    """Raise ScenarioError if a file cannot be written, before a long computation starts."""
    if suffixes and path.suffix.lower() not in suffixes:
        raise ScenarioError(f"{option} {path}: the name must end in {' or '.join(suffixes)}")
    try:
        if path.is_dir():
            raise ScenarioError(f"{option} {path} is a folder; expected a file to write")
        folder = next(p for p in path.absolute().parents if p.exists())
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise ScenarioError(
            f"{option} {path} cannot be written: {reason_of(error)}; give a file in another folder"
        ) from None


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Callable[[float], None]]:
    """Yield a function of the completed share, 0 to 1. Progress is shown only for long runs."""
    with staged_progress(what, quiet=quiet) as report:
        yield lambda share: report(share)


class ReportStage(Protocol):
    """Function that reports progress: completed share (0 to 1), text, stage of the work."""

    def __call__(self, share: float, how: str = "", stage: str = "") -> None:
        """Show the progress, at most once per interval."""


@contextmanager
def staged_progress(what: str, *, quiet: bool = False, at_once: str = "") -> Iterator[ReportStage]:
    """Show progress as `progress` does, together with a text and a stage.

    On a terminal, progress is a bar. With `at_once` the bar is shown from the start, otherwise
    after some seconds. Other output gets a line every few seconds and for each new stage.
    """
    what, started = printable(what), time.monotonic()
    last, spoken_of = started, None
    shown: Any = None
    terminal = sys.stderr.isatty()
    if terminal and at_once and not quiet:
        shown = bar(f"{what}, {at_once}")

    def show(share: float, how: str = "", stage: str = "") -> None:
        nonlocal shown, last, spoken_of
        now = time.monotonic()
        if quiet or (shown is None and now - started < SILENT_S):
            return
        how = f", {how}" if how else ""
        if not terminal:
            if now - last >= SPOKEN_EVERY_S or stage != spoken_of:
                print(f"{what}: {share:.0%}{how}", file=sys.stderr, flush=True)
                last, spoken_of = now, stage
            return
        if shown is None:
            shown = bar(what)
        shown.update(shown.tasks[0].id, completed=share, description=what + how)

    try:
        yield show
    finally:
        if shown is not None:
            shown.stop()


def bar(what: str = "", *, words_last: bool = False) -> Any:
    """Start a progress bar of `rich.progress` on standard error, with text before or behind it."""
    text = rich_progress.TextColumn(
        "{task.description}", markup=False, table_column=table.Column(overflow="fold")
    )
    done = (rich_progress.BarColumn(bar_width=20), rich_progress.TaskProgressColumn())
    columns = (*done, text) if words_last else (text, *done)
    started = rich_progress.Progress(
        *columns, console=rich_console.Console(stderr=True), transient=True
    )
    started.add_task(what, total=None if words_last else 1.0)
    started.start()
    return started


MEMORY_PARTS = ("connection", "packet", "message", "event")


def print_result(result: Result, *, quiet: bool = False) -> None:
    """Print a result as readable tables; `quiet` leaves out the notes."""
    console = rich_console.Console(highlight=False)
    console.print(f"[bold]{result.scenario}[/bold]: {result.method}", end="")
    console.print("" if result.seed is None else f", seed {result.seed}")
    if result.analysis:
        print_table(FORM_HEAD, form_rows(result.analysis), words=[2], numbers="left", framed=True)
    if result.metrics:
        rows = metric_rows(result.method, result.metrics)
        print_table(METRIC_HEAD, rows, numbers="left", framed=True)
    for sentence in (*warnings.checks(result), *warnings.fates(result)):
        console.print(sentence)
    if quiet:
        return
    for warning in result.warnings:
        console.print(f"note: {warning}", markup=False)
    if result.assumed:
        console.print(assumptions(result), markup=False)
    rate = result.engine.get("packet_hops_per_cpu_s")
    if rate:
        cpu = with_unit(result.engine["cpu_s"], "s")
        console.print(f"{cpu} of CPU time, {rate / 1e6:.1f} M packet hops per second")
        sizes = {part: result.engine[f"{part}_memory_bytes"] for part in MEMORY_PARTS}
        most = max(sizes, key=lambda part: sizes[part])
        peak = with_unit(result.engine["peak_rss_bytes"], "B")
        console.print(f"peak memory {peak}, of which {most}s {with_unit(sizes[most], 'B')}")


def assumptions(result: Result) -> str:
    """List assumed values on one line."""
    return "assumed: " + ", ".join(f"{key} = {value}" for key, value in result.assumed.items())
