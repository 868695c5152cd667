"""The `daqloom study` commands."""

import re
from pathlib import Path
from typing import Annotated

import typer

from daqloom.base import lazy
from daqloom.base.output import write_text
from daqloom.cli import options
from daqloom.cli.app import group
from daqloom.cli.console.columns import print_list
from daqloom.cli.console.store import damage_noted
from daqloom.cli.console.terminal import check_writable, note, print_json
from daqloom.cli.options import flag, option
from daqloom.study import StudyError

with lazy.imports():
    from daqloom.cli.console import study as console_study
    from daqloom.study.file import cell
    from daqloom.study.file import load as study_load
    from daqloom.study.run import plan as run_plan
    from daqloom.study.run import slurm
    from daqloom.study.store import conversion
    from daqloom.study.store import store as store_store


app = group(help="Sweep, search and repeat: one file, one command, resumable.")


@app.command("list")
def list_(json: options.JsonList = False) -> None:
    """List the studies that come with daqloom, and the published figures that they reproduce."""
    studies = {name: study_load.load_study(name) for name in study_load.shipped_studies()}
    if json:
        listed = [
            {"name": name, "title": each.title, "figure": each.figure}
            for name, each in studies.items()
        ]
        print_json({"schema": 1, "studies": listed})
    else:
        print_list(
            {
                name: each.title + (f" ({each.figure})" if each.figure else "")
                for name, each in studies.items()
            }
        )


@app.command()
def show(file: options.Study) -> None:
    """Print the file of a study, to begin one of your own with.

    \b
    Example:
      daqloom study show atlas-min-buffer > mine.toml
    """
    print(study_load.find_study(file).read_text(encoding="utf-8"), end="")


@app.command()
def plan(
    file: options.Study, quick: options.Quick = False, store: options.Store = options.STORE
) -> None:
    """Show the points of a study, the number of computed ones, and the estimated remaining time.

    \b
    Example:
      daqloom study plan atlas-min-buffer --quick
    """
    study = study_load.load_study(file, quick=quick)
    for sentence in study.notes:
        note(sentence)
    if store.exists():
        with damage_noted(store_store.Store.open(store, create=False)) as opened:
            console_study.print_plan(study, run_plan.plan(study, opened), store)
    else:
        console_study.print_plan(study, run_plan.plan(study, None), store)


@app.command(saved=options.IN_STORE)
def run(
    file: options.Study,
    quick: options.Quick = False,
    store: options.Store = options.STORE,
    workers: options.Workers = 0,
    scheduler: Annotated[
        str | None, option("ADDRESS", "Address of a Dask scheduler, such as tcp://node1:8786.")
    ] = None,
    part: Annotated[str, option("I/N", "Compute only the I-th of N shares, I from 0.")] = "0/1",
    quiet: options.Quiet = False,
) -> None:
    """Compute the results that the store does not have. Ctrl-C loses only the runs in progress.

    \b
    Examples:
      daqloom study run atlas-min-buffer --quick
      daqloom study run mine.toml --workers 8 --store /data/store
    """
    study = study_load.load_study(file, quick=quick)
    share = _part(part)
    for sentence in study.notes:
        note(sentence)
    with console_study.computation(study, store, workers, scheduler, share, quiet=quiet) as (
        progress,
        _,
    ):
        console_study.print_summary(study, progress)
    if progress.failures:
        raise typer.Exit(1)


@app.command(saved="the same command begins anew")
def convert(store: options.Store = options.STORE) -> None:
    """Convert a store of an earlier version of daqloom; no study may write to it meanwhile.

    \b
    Example:
      daqloom study convert --store /shared/store
    """
    done = conversion.convert(store)
    print(
        f"{store}: {done.results} results converted; {done.old} is read no more and can be deleted"
    )
    if done.damaged:
        lines = "line is" if done.damaged == 1 else "lines are"
        note(
            f"{done.damaged} damaged {lines} left out; its results are computed anew where a "
            "study needs them"
        )


@app.command("export-slurm")
def export_slurm(
    file: options.Study,
    output: Annotated[Path, option("FILE", "Script to write.")],
    elements: Annotated[int, option("N", "Number of jobs in the array.")] = 100,
    hours: Annotated[float, flag("Time limit of a job.")] = 24.0,
    memory: Annotated[int, option("MB", "Memory of a job.")] = 1000,
    quick: options.Quick = False,
    store: options.Store = options.STORE,
) -> None:
    """Write a Slurm job array whose jobs fill one store, without Dask.

    \b
    Example:
      daqloom study export-slurm mine.toml --elements 200 --output mine.sh && sbatch mine.sh
    """
    check_writable(output, "--output")
    if not output.absolute().parent.is_dir():
        raise StudyError(f"--output {output}: there is no folder {output.parent}; make it first")
    if not cell.TIMED.isdisjoint(study_load.load_study(file, quick=quick).methods):
        raise StudyError(
            "jobs of an array would run side by side or on unequal nodes, which distorts "
            "timings; measure with `daqloom study run` on one machine"
        )
    script = slurm.job_array(
        study_load.find_study(file),
        store,
        elements=elements,
        quick=quick,
        hours=hours,
        memory_mb=memory,
    )
    write_text(output, script)
    print(f"{output}: {elements} jobs; submit it with sbatch")


def _part(text: str) -> tuple[int, int]:
    share = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    if not share or not int(share[1]) < int(share[2]):
        raise StudyError(f"--part {text}: expected I/N with I from 0 and less than N, such as 0/4")
    return int(share[1]), int(share[2])
