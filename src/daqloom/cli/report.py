"""The `daqloom report` command."""

import sys
from pathlib import Path
from typing import Annotated

from daqloom.cli import options
from daqloom.cli.console import check_writable, plain_failures, progress
from daqloom.cli.options import option


def report(
    file: options.Study,
    store: options.Store = options.STORE,
    quick: options.Quick = False,
    show: options.Show = None,
    output: Annotated[
        Path | None, option("DIR", "Folder for the report (default STUDY-report).")
    ] = None,
    quiet: options.Quiet = False,
) -> None:
    """Write the figures and the table of a study.

    From the results in the store: report.html, which opens offline in any browser; figures as PNG
    and PDF; all numbers as results.parquet. Where the study has the data, also conclusions: return
    levels of an hour, a day, a fill; a surface over rate and size; a comparison of methods.

    \b
    Examples:
      daqloom report atlas-min-buffer --quick
      daqloom report mine.toml --show collection_latency_s.p99 --output figures
    """
    with plain_failures("complete files stay in the output folder"):
        folder = output or Path(f"{file.stem}-report")
        check_writable(folder / "report.html", "--output")
        from daqloom.cli.store import read_study
        from daqloom.report.study import provenance as study_provenance
        from daqloom.report.study import report as study_report

        study, dataset, opened = read_study(file, store, quick=quick, course=True)
        origins = study_provenance.rows(opened.origins, opened.damaged)
        about = [("study", study.name), ("scenario", f"{study.base.name}, {study.base.hash()}")]
        with progress(f"fitting {study.name}", quiet=quiet) as fitted:
            concluded = study_report.findings(dataset, show, fitted)
        paths = study_report.write_report(
            dataset,
            folder,
            show=show,
            description=study.description,
            provenance=[*about, *origins],
            conclusions=concluded,
        )
        for path in paths:
            print(path)
        if quiet:
            return
        for text in study_report.spoken(dataset, show, concluded):
            print(text, file=sys.stderr)
