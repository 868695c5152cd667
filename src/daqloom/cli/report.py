"""The `daqloom report` command."""

import sys
from pathlib import Path
from typing import Annotated

from daqloom.base import lazy
from daqloom.cli import complete, options
from daqloom.cli.console.store import read_study
from daqloom.cli.console.terminal import check_folder, progress
from daqloom.cli.options import argument, option
from daqloom.study import StudyError

with lazy.imports():
    from daqloom.report.study import page, provenance
    from daqloom.report.study import report as study_report


def report(
    files: Annotated[
        list[Path],
        argument(
            "STUDY…",
            "TOML files, or names from `daqloom study list`; several studies share one page.",
            autocompletion=complete.studies,
        ),
    ],
    store: options.Store = options.STORE,
    quick: options.Quick = False,
    show: options.Show = None,
    output: Annotated[
        Path | None, option("DIR", "Folder for the report (default STUDY-report).")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the figures and the table of a study, or of several on one page.

    Uses the results in the store. Writes report.html, which opens offline in any browser, figures
    as PNG and PDF, and all numbers as results.parquet. With several studies, each has a folder. The
    report begins with conclusions if the study has the data for them: return levels of an hour, a
    day, a fill; a surface over rate and size; a comparison of methods.

    \b
    Examples:
      daqloom report atlas-min-buffer --quick
      daqloom report mine.toml --show collection_latency_s.p99 --output figures
      daqloom report shallow.toml deep.toml --output switches
    """
    if len({file.stem for file in files}) < len(files):
        raise StudyError("two of the studies have the same name, of which each needs its own")
    folder = output or Path(f"{'-'.join(file.stem for file in files)}-report")
    check_folder(folder, "--output", "report.html")

    studies = []
    for file in files:
        study, dataset, opened = read_study(file, store, quick=quick, course=True)
        origins = provenance.rows(opened.origins, opened.damage)
        about = [("study", study.name), ("scenario", f"{study.base.name}, {study.base.hash()}")]
        with progress(f"fitting {study.name}", quiet=quiet) as fitted:
            concluded = study_report.findings(dataset, show, fitted)
        of_study = page.StudyReport(dataset, show, study.description, [*about, *origins], concluded)
        studies.append(of_study)
    for path in study_report.write_reports(studies, folder):
        print(path)
    if quiet:
        return
    for each in studies:
        for text in study_report.sentences(each.dataset, show, each.conclusions):
            print(text, file=sys.stderr)
