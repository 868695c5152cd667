"""The report of a study: a page, figures for print and a table for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.base.output import write_text, written_whole
from daqloom.report import matplotlib_renderer
from daqloom.report.study import levels as study_levels
from daqloom.report.study import methods as study_methods
from daqloom.report.study import page as study_page
from daqloom.report.study import port_wait as study_port_wait
from daqloom.report.study import surface as study_surface
from daqloom.report.study.boxes import box_plots, box_plots_caption
from daqloom.report.study.finding import Finding
from daqloom.report.study.lines import lines, lines_beside, lines_caption
from daqloom.report.study.map import heat_map, heat_map_caption
from daqloom.report.study.names import axis_of_names, names, names_caption
from daqloom.report.study.page import Reported
from daqloom.report.study.view import key_name, roles, variable_name
from daqloom.study.file.points import axes_of, methods_of, plane_of, shown_variables
from daqloom.study.run.dataset import to_parquet

if TYPE_CHECKING:
    from xarray import Dataset


DPI_OF_FILES = 200


def write_report(
    dataset: Dataset,
    folder: str | PathLike[str],
    *,
    show: str | None = None,
    description: str = "",
    provenance: Sequence[tuple[str, str]] = (),
    conclusions: Sequence[Finding] | None = None,
) -> list[Path]:
    """Writes the report of a study's `dataset` into `folder` and gives the paths, the page first.

    `dataset` comes from `open_study`, with course=True if the report is to tell return levels; it
    may hold further variables, see docs/how-to/add-your-own-metric-to-a-report.md.

    `show` names the metric (by default as `shown_variables` has it),
    `provenance` are names and values for the end of the page, `conclusions` the sections that
    `findings` makes where none are given. Raises StudyError where there is
    nothing to show, OutputError where `folder` cannot be written.
    """
    concluded = findings(dataset, show) if conclusions is None else conclusions
    return write_reports([Reported(dataset, show, description, provenance, concluded)], folder)


def write_reports(studies: Sequence[Reported], folder: str | PathLike[str]) -> list[Path]:
    """The same of several studies: one page, and for each study a folder of its figures and
    numbers, which has its name."""
    folder = Path(folder)
    drawn = [replace(each, pictures=pictures(each.dataset, each.show)) for each in studies]
    paths = [folder / "report.html"]
    write_text(paths[0], study_page.render(drawn))
    for each in drawn:
        below = folder / str(each.dataset.attrs.get("study")) if len(studies) > 1 else folder
        for one in (*each.pictures, *each.conclusions):
            for ending in ("png", "pdf"):
                paths.append(below / f"{one.name}.{ending}")
                matplotlib_renderer.save(one.figure, paths[-1], DPI_OF_FILES)
        paths.append(below / "results.parquet")
        with written_whole(paths[-1]) as scratch:
            to_parquet(each.dataset, scratch)
    return paths


def pictures(dataset: Dataset, variable: str | None = None) -> list[Finding]:
    """All figures that suit the study."""
    variables = shown_variables(dataset, variable)
    variable = variables[0]
    found: list[Finding] = []
    axes = axes_of(dataset)

    def what(variable: str) -> str:
        name = variable_name(dataset, variable)
        return name[:1].upper() + name[1:]

    if downwards := axis_of_names(dataset):
        caption = names_caption(dataset)
        for each in variables:
            name = "names" if each == variable else f"names-{each}"
            heading = f"{what(each)} by {key_name(downwards)}"
            found.append(Finding(name, heading, (caption,), names(dataset, each)))
        return found
    if axes:
        used = roles(dataset)
        is_beside = len(variables) > 1 and used.panel is None
        drawn = lines_beside(dataset, variables) if is_beside else lines(dataset, variable)
        heading = f"{what(variable)} along {key_name(used.x)}"
        found.append(Finding("lines", heading, (lines_caption(dataset, variable),), drawn))
    if plane := plane_of(dataset):
        heading = f"{what(variable)} over {' and '.join(map(key_name, plane))}"
        caption = heat_map_caption(dataset, variable)
        found.append(Finding("map", heading, (caption,), heat_map(dataset, variable)))
    random = [m for m in methods_of(dataset, variable) if m != "analyse"]
    if axes and random and dataset.sizes["seed"] > 1:
        heading = f"{what(variable)}, seed by seed"
        caption = box_plots_caption(dataset)
        found.append(Finding("seeds", heading, (caption,), box_plots(dataset, variable)))
    return found


def findings(
    dataset: Dataset,
    variable: str | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> list[Finding]:
    """What can be concluded from the study: return levels, where its racks recorded the course of
    a peak; a surface; one method by another. `progress` takes the share of the levels done."""
    found = (
        study_levels.finding(dataset, progress),
        study_surface.finding(dataset, variable),
        study_methods.finding(dataset, variable),
        study_port_wait.finding(dataset),
    )
    return [finding for finding in found if finding is not None]


def spoken(dataset: Dataset, show: str | None, conclusions: Sequence[Finding]) -> list[str]:
    """What the page says in words, for a terminal: one text for its head and for each section."""
    head = study_page.state(dataset, shown_variables(dataset, show)[0])
    return [*head, *(" ".join(each.sentences) for each in conclusions)]
