"""The `daqloom study` commands."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from daqloom import cli_options as options
from daqloom.console import plain_failures

if TYPE_CHECKING:
    from daqloom.study.executor import Executor
    from daqloom.study.file import Study
    from daqloom.study.store import Store

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Sweep, search and repeat: one file, one command, resumable.",
)


@app.command("list")
def list_() -> None:
    """List the studies that come with daqloom."""
    with plain_failures():
        from daqloom.study.file import load_study, shipped_studies

        names = shipped_studies()
        width = max(map(len, names), default=0)
        for name in names:
            print(f"{name:<{width}}  {load_study(name).title}")


@app.command()
def plan(
    file: options.Study, quick: options.Quick = False, store: options.Store = options.STORE
) -> None:
    """Say what a study computes, what is done already, and how long the rest may take.

    \b
    Example:
      daqloom study plan atlas-min-buffer --quick
    """
    with plain_failures():
        from daqloom.report.study_console import print_plan
        from daqloom.study.file import load_study
        from daqloom.study.plan import plan as make_plan
        from daqloom.study.store import Store

        study = load_study(file, quick=quick)
        if store.exists():
            with Store.open(store, create=False) as opened:
                print_plan(study, make_plan(study, opened), store)
        else:
            print_plan(study, make_plan(study, None), store)


@app.command()
def run(
    file: options.Study,
    quick: options.Quick = False,
    store: options.Store = options.STORE,
    workers: Annotated[
        int, typer.Option(min=0, metavar="N", help="Processes on this machine; 0: all cores.")
    ] = 0,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="A Dask scheduler to use, such as tcp://node1:8786."),
    ] = None,
    part: Annotated[
        str,
        typer.Option(metavar="I/N", help="Only the I-th of N shares, I from 0."),
    ] = "0/1",
) -> None:
    """Compute what the store does not hold yet. Ctrl-C loses no more than the runs under way.

    \b
    Examples:
      daqloom study run atlas-min-buffer --quick
      daqloom study run mine.toml --workers 8 --store /data/store
    """
    with plain_failures("what was computed is in the store; the same command goes on from there"):
        from daqloom.report.study_console import print_summary, watch
        from daqloom.study.executor import Deferred, TimedApart
        from daqloom.study.file import load_study
        from daqloom.study.runner import run as run_study
        from daqloom.study.store import Store

        study = load_study(file, quick=quick)
        share = _part(part)
        with Store.open(store, create=True) as opened:
            opened.prepare()
            others = Deferred(lambda: _executor(study, opened, store, workers, scheduler))
            executor = TimedApart(others, opened)
            try:
                with watch(study) as report:
                    progress = run_study(study, opened, executor, report, share)
            finally:
                executor.close()
            print_summary(study, progress, opened)
        if progress.failures:
            raise typer.Exit(1)


@app.command("export-slurm")
def export_slurm(
    file: options.Study,
    output: Annotated[Path, typer.Option(metavar="FILE", help="The script to write.")],
    elements: Annotated[int, typer.Option(metavar="N", help="Jobs of the array.")] = 100,
    hours: Annotated[float, typer.Option(help="Time limit of a job.")] = 24.0,
    memory: Annotated[int, typer.Option(metavar="MB", help="Memory of a job.")] = 1000,
    quick: options.Quick = False,
    store: options.Store = options.STORE,
) -> None:
    """Write a Slurm job array that fills the same store, without Dask.

    \b
    Example:
      daqloom study export-slurm mine.toml --elements 200 --output mine.sh && sbatch mine.sh
    """
    with plain_failures():
        from daqloom.console import check_writable
        from daqloom.output import written_whole
        from daqloom.study.cell import TIMED
        from daqloom.study.errors import StudyError
        from daqloom.study.file import find_study, load_study
        from daqloom.study.slurm import job_array

        check_writable(output, "--output")
        if not output.absolute().parent.is_dir():
            raise StudyError(
                f"--output {output}: there is no folder {output.parent}; make it first"
            )
        if not TIMED.isdisjoint(load_study(file, quick=quick).methods):
            raise StudyError(
                "jobs of an array would be timed side by side, or on unequal nodes; measure with "
                "`daqloom study run` on one machine"
            )
        script = job_array(
            find_study(file), store, elements=elements, quick=quick, hours=hours, memory_mb=memory
        )
        with written_whole(output) as scratch:
            scratch.write_text(script)
        print(f"{output}: {elements} jobs; hand it to sbatch")


def _part(text: str) -> tuple[int, int]:
    from daqloom.study.errors import StudyError

    share = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not share or not int(share[1]) < int(share[2]):
        raise StudyError(f"--part {text}: expected I/N with I from 0 and less than N, such as 0/4")
    return int(share[1]), int(share[2])


def _executor(
    study: Study, opened: Store, path: Path, workers: int, scheduler: str | None
) -> Executor:
    from daqloom.study.cell import TIMED

    if (workers == 1 and scheduler is None) or TIMED.issuperset(study.methods):
        from daqloom.study.executor import InProcess

        return InProcess(opened)
    from daqloom.study.workers import DaskExecutor

    executor = DaskExecutor(path, workers=workers, address=scheduler)
    if not executor.workers:
        print("daqloom: the scheduler has no worker yet; waiting for the first", file=sys.stderr)
    return executor
