"""The `daqloom reproduce` command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from daqloom.base import lazy
from daqloom.cli import complete, options
from daqloom.cli.console.columns import print_table
from daqloom.cli.console.terminal import check_figures, note, print_json
from daqloom.cli.options import argument, figures, flag
from daqloom.study import StudyError

with lazy.imports():
    import xarray

    from daqloom.cli.console import study as console_study
    from daqloom.report import matplotlib_renderer
    from daqloom.report.study import reproduction
    from daqloom.study.file import study as study_study
    from daqloom.study.reproduction import compute, papers, record, table
    from daqloom.study.reproduction import update as stored_update
    from daqloom.study.run import dataset as run_dataset
    from daqloom.study.run import runner

FIGURES = (".png", ".pdf", ".svg")
DPI = 200


def reproduce(
    names: Annotated[
        list[str] | None,
        argument(
            "NAME…",
            "Names of published numbers, or words in several, such as atlas-fig3 or fig4; without "
            "a name, lists all.",
            autocompletion=complete.published_numbers,
        ),
    ] = None,
    quick: Annotated[
        bool, flag("Compute the quick form: shorter and fewer runs, in seconds.", "--quick")
    ] = False,
    store: options.Store = options.STORE,
    workers: options.Workers = 0,
    figure: Annotated[
        list[Path] | None,
        figures(f"Also draw published and computed values: {', '.join(FIGURES)}"),
    ] = None,
    update: Annotated[
        bool,
        flag("Write the computed values to the records, for maintainers of a source tree."),
    ] = False,
    json: options.JsonList = False,
    quiet: options.Quiet = False,
) -> None:
    """List published numbers beside those of daqloom, or compute some of them.

    The list has the values that daqloom gave when the record was written. With a NAME, the studies
    of that number are computed as far as the store lacks them, only at the points that the number
    needs. A number comes out if its published interval and ours overlap; a published value without
    an error counts with 5 %.

    \b
    Examples:
      daqloom reproduce
      daqloom reproduce atlas-fig3 --quick
      daqloom reproduce atlas-fig6-fit --quick --figure fit.png
    """
    check_figures(figure or (), FIGURES)
    if not names and (figure or update or quick):
        raise StudyError(
            "--quick, --figure and --update need a NAME; `daqloom reproduce` lists all"
        )
    paths = record.shipped_records()
    meant = record.select(names) if names else paths
    chosen = {name: record.load_record(paths[name]) for name in meant}
    found = {name: each.stored.full for name, each in chosen.items()}
    for name, each in chosen.items() if names else ():
        if each.ours is None:
            note(f"{name}: {each.elsewhere}")
            continue
        datasets = _datasets(store, workers, quiet=quiet)
        found[name] = values = compute.compute(paths[name], each, datasets, quick=quick)
        if update:
            stored_update.write(paths[name], values, quick=quick)
    if json:
        listed = [table.as_json(name, each, found[name]) for name, each in chosen.items()]
        print_json({"schema": 1, "numbers": listed})
    elif names:
        _print_found(chosen, found, quick=quick)
    else:
        _print_list(chosen)
    for path in figure or ():
        drawn = reproduction.figure([(each, found[name]) for name, each in chosen.items()])
        matplotlib_renderer.save(drawn, path, DPI)
        if not json:
            print(f"\n{path}  published and computed values")


def _datasets(store: Path, workers: int, *, quiet: bool) -> Any:
    def dataset(study: study_study.Study) -> xarray.Dataset:
        with console_study.computation(study, store, workers, quiet=quiet) as (progress, opened):
            if progress.failures:
                raise typer.Exit(1)  # each was printed at once
            return run_dataset.to_dataset(study, runner.replay(study, opened))

    return dataset


def _print_list(found: dict[str, record.Record]) -> None:
    for paper in dict.fromkeys(each.paper for each in found.values()):
        print(f"{papers.PAPERS[paper].citation}\n")
        rows = [
            (name, each.where, *table.summary(each, each.stored.full))
            for name, each in found.items()
            if each.paper == paper
        ]
        print_table(("name", *table.HEAD), rows, words=[1])
        print()


def _print_found(
    chosen: dict[str, record.Record], found: dict[str, record.Values | None], *, quick: bool
) -> None:
    for place, (name, each) in enumerate(chosen.items()):
        if place:
            print()
        print(f"{name}: {each.title}")
        values, recorded = found[name], each.stored.full
        rows = [
            (f"{'quick form' if quick else 'computed'} {step}".rstrip(), *cells)
            for step, *cells in table.rows(each, values, verdicts=not quick)
        ]
        if recorded != values:
            rows += [
                (f"recorded {step}".rstrip(), *cells) for step, *cells in table.rows(each, recorded)
            ]
        print_table(("", *table.HEAD[1:]), rows)
        print()
        for title, text in table.about(each):
            print(f"  {title:<9} {text}")
