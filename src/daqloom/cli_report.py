"""The `daqloom report` command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from daqloom import cli_options as options
from daqloom.console import check_writable, plain_failures


def report(
    file: options.Study,
    store: options.Store = options.STORE,
    quick: options.Quick = False,
    show: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="The metric to draw, such as event_rate_hz."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the report; by default STUDY-report."),
    ] = None,
) -> None:
    """Write the figures and the table of a study.

    From what the store holds: report.html, which opens in any browser without a network; the
    figures as PNG and PDF; all numbers as results.parquet. Where the study has the numbers for it,
    also what can be concluded: how high in an hour, a day, a fill; a surface over rate and size;
    one method by another.

    \b
    Examples:
      daqloom report atlas-min-buffer --quick
      daqloom report mine.toml --show collection_latency_s.p99 --output figures
    """
    with plain_failures("files that are complete stay in the output folder"):
        folder = output or Path(f"{file.stem}-report")
        check_writable(folder / "report.html", "--output")
        from daqloom.report import study_provenance, study_report
        from daqloom.report.study_figures import search_caption
        from daqloom.study.dataset import to_dataset
        from daqloom.study.file import load_study
        from daqloom.study.kinds import traits_of
        from daqloom.study.runner import replay

        study = load_study(file, quick=quick)
        with study_provenance.witnessed(store) as opened:
            dataset = to_dataset(study, replay(study, opened), course=True)
            origins = study_provenance.rows(opened.origins)
        about = [("study", study.name), ("scenario", f"{study.base.name}, {study.base.hash()}")]
        point = traits_of(study.base).operating_point(study.base)
        concluded = study_report.findings(dataset, show, point)
        paths = study_report.write(
            dataset,
            folder,
            show=show,
            description=study.description,
            mark=point,
            provenance=[*about, *origins],
            conclusions=concluded,
        )
        for path in paths:
            print(path)
        for sentence in (search_caption(dataset), *(each.sentences[0] for each in concluded)):
            if sentence:
                print(sentence, file=sys.stderr)
