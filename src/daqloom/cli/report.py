"""The `daqloom report` command."""

import sys
from pathlib import Path
from typing import Annotated

from daqloom.base import extras, lazy
from daqloom.cli import complete, options
from daqloom.cli.console.store import read_study
from daqloom.cli.console.terminal import check_folder, check_writable, progress
from daqloom.cli.options import argument, flag, option
from daqloom.study import StudyError

with lazy.imports():
    from daqloom.report.study import assumptions, page, provenance
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
    interactive: Annotated[
        bool, flag("Make figures of the page that the mouse can zoom, turn and inspect.")
    ] = False,
    pdf: Annotated[
        Path | None, option("FILE", "Also write the page as PDF, on sheets of A4.")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the figures and the table of a study, or of several on one page.

    Uses the results in the store. Writes report.html, which opens offline in any browser, figures
    as PNG and PDF, and all numbers as results.parquet. With several studies, each has a folder.

    The page begins with the answer, with the assumed values that move it, and with one figure.
    Details follow: return levels of an hour, a day, a fill; a surface over rate and size; a
    comparison of methods; figures, tables and provenance. Its figures are vectors, for screen and
    paper; --interactive makes plots instead. A browser prints either page.

    \b
    Examples:
      daqloom report atlas-min-buffer --quick
      daqloom report mine.toml --show collection_latency_s.p99 --output figures
      daqloom report shallow.toml deep.toml --output switches
      daqloom report atlas-min-buffer --quick --pdf buffer.pdf
    """
    if len({file.stem for file in files}) < len(files):
        raise StudyError("two of the studies have the same name, of which each needs its own")
    folder = output or Path(f"{'-'.join(file.stem for file in files)}-report")
    check_folder(folder, "--output", "report.html")
    if pdf is not None:
        extras.require("pdf")
        check_writable(pdf, "--pdf", (".pdf",))

    studies = []
    for file in files:
        study, dataset, opened = read_study(file, store, quick=quick, course=True)
        origins = provenance.rows(opened.origins, opened.damage)
        about = [("study", study.name), ("scenario", f"{study.base.name}, {study.base.hash()}")]
        with progress(f"fitting {study.name}", quiet=quiet) as fitted:
            concluded = study_report.findings(dataset, show, fitted)
        with progress(f"assumptions of {study.name}", quiet=quiet) as changed:
            effects = assumptions.effects(study, dataset, show, changed)
        about += origins
        of_study = page.StudyReport(
            dataset, show, study.description, about, concluded, effects=effects
        )
        studies.append(of_study)
    for path in study_report.write_reports(studies, folder, interactive=interactive, pdf=pdf):
        print(path)
    if quiet:
        return
    for each in studies:
        for text in study_report.sentences(each):
            print(text, file=sys.stderr)
