"""Recording of a command's run in a folder of its own, with a summary at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from daqloom.base import extras, lazy
from daqloom.base.output import OutputError
from daqloom.cli.console.terminal import note
from daqloom.results.errors import MeasureError

with lazy.imports():
    from daqloom.control.record import folders, past, record, summary


@contextmanager
def run_record(name: str, *, quiet: bool = False) -> Iterator[Path | None]:
    """Yield the folder for the record of a run, and print the summary of the run at the end. None
    if there is no place for it, with a note: no run fails for lack of a record."""
    try:
        folder = folders.new_run_folder(name)
    except OutputError as error:
        note(f"the run is not recorded: {error}")
        yield None
        return
    note_missing_series()
    with folders.locked_run_folder(folder):
        try:
            yield folder
        finally:
            if not (folder / record.SUMMARY).exists():  # it never began
                shutil.rmtree(folder, ignore_errors=True)
            elif not quiet:
                print_summary(folder)


def note_missing_series() -> None:
    """Print a note if this installation keeps no series of runs."""
    if extras.is_installed("live") and not extras.is_installed("studies"):
        note(
            "the record of the run has its events but no series of rates; `pip install "
            "'daqloom[studies]'` adds them"
        )


def print_summary(folder: Path) -> None:
    """Print the summary of a run and the place of its record."""
    with suppress(MeasureError):
        run = past.read_run(folder)
        for sentence in summary.sentences(run.summary, run.about.began, folder.name):
            note(sentence)
    name = folder.name if folder.parent == folders.runs_root() else folder
    note(f"the record is in {folder}; `daqloom runs show {name}` shows it")
