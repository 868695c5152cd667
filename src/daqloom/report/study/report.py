"""Report of a study: a page, figures for print, and a table for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom.base.output import write_text, written_whole
from daqloom.report import matplotlib_renderer
from daqloom.report.page import Section, write_pdf
from daqloom.report.study import assumptions, summary
from daqloom.report.study import levels as study_levels
from daqloom.report.study import methods as study_methods
from daqloom.report.study import page as study_page
from daqloom.report.study import port_wait as study_port_wait
from daqloom.report.study import surface as study_surface
from daqloom.report.study.boxes import box_plots, box_plots_caption
from daqloom.report.study.interactive import surface
from daqloom.report.study.lines import lines, lines_caption, lines_in_panels
from daqloom.report.study.map import heat_map, heat_map_caption
from daqloom.report.study.names import axis_of_names, names, names_caption
from daqloom.report.study.page import StudyReport
from daqloom.report.study.view import key_name, roles, variable_name
from daqloom.study.file.points import axes_of, methods_of, plane_of, shown_variables
from daqloom.study.run.dataset import to_parquet

if TYPE_CHECKING:
    from xarray import Dataset

    from daqloom.report.figure import Figure

DPI_OF_FILES = 200


def write_report(
    dataset: Dataset,
    folder: str | PathLike[str],
    *,
    show: str | None = None,
    description: str = "",
    provenance: Sequence[tuple[str, str]] = (),
    conclusions: Sequence[Section] | None = None,
    interactive: bool = False,
    pdf: str | PathLike[str] | None = None,
) -> list[Path]:
    """Write the report of a study's `dataset` into `folder`; return the paths, the page first.

    `dataset` comes from `open_study`, with course=True for return levels; it may have further
    variables, see docs/how-to/add-your-own-metric-to-a-report.md. `show` names the metric (default:
    see `shown_variables`). `provenance` has names and values for the end of the page, `conclusions`
    sections (default: `findings`). An `interactive` page has plots in place of pictures. `pdf`: a
    file for the page on paper. Raises StudyError if nothing can be shown, OutputError if `folder`
    or `pdf` cannot be written.
    """
    concluded = findings(dataset, show) if conclusions is None else conclusions
    one = StudyReport(dataset, show, description, provenance, concluded)
    return write_reports([one], folder, interactive=interactive, pdf=pdf)


def write_reports(
    studies: Sequence[StudyReport],
    folder: str | PathLike[str],
    *,
    interactive: bool = False,
    pdf: str | PathLike[str] | None = None,
) -> list[Path]:
    """Write a report of several studies: one page, and for each study a folder with the study's
    name, figures and numbers; see `write_report`."""
    folder = Path(folder)
    drawn = [replace(each, pictures=pictures(each.dataset, each.show)) for each in studies]
    paths = [folder / "report.html"]
    page = study_page.render(drawn, interactive=interactive)
    write_text(paths[0], page)
    if pdf is not None:
        paths.append(Path(pdf))
        write_pdf(paths[-1], study_page.render(drawn) if interactive else page)
    for each in drawn:
        below = folder / str(each.dataset.attrs.get("study")) if len(studies) > 1 else folder
        for one in (*each.pictures, *each.conclusions):
            assert one.figure is not None
            for ending in ("png", "pdf"):
                paths.append(below / f"{one.name}.{ending}")
                matplotlib_renderer.save(one.figure, paths[-1], DPI_OF_FILES)
        paths.append(below / "results.parquet")
        with written_whole(paths[-1]) as scratch:
            to_parquet(each.dataset, scratch)
    return paths


def pictures(dataset: Dataset, variable: str | None = None) -> list[Section]:
    """Return a report section for each kind of figure that can show the study."""
    variables = shown_variables(dataset, variable)
    variable = variables[0]
    axes = axes_of(dataset)
    sections: list[Section] = []

    def add(name: str, shown: str, how: str, caption: str, figure: Figure, **more: Any) -> None:
        label = variable_name(dataset, shown)
        heading = f"{label[:1].upper()}{label[1:]}{how}"
        described = f"{heading}: {', '.join(variable_name(dataset, each) for each in variables)}"
        sections.append(Section(heading, (caption,), False, figure, described, name=name, **more))

    if rows := axis_of_names(dataset):
        for each in variables:
            name = "names" if each == variable else f"names-{each}"
            drawn = names(dataset, each)
            add(name, each, f" by {key_name(rows)}", names_caption(dataset), drawn)
        return sections
    if axes:
        used = roles(dataset)
        has_panels = len(variables) > 1 and used.panel is None
        drawn = lines_in_panels(dataset, variables) if has_panels else lines(dataset, variable)
        caption = lines_caption(dataset, variable)
        add("lines", variable, f" along {key_name(used.x)}", caption, drawn)
    if plane := plane_of(dataset):
        caption, drawn = heat_map_caption(dataset, variable), heat_map(dataset, variable)
        over = f" over {' and '.join(map(key_name, plane))}"
        add("map", variable, over, caption, drawn, turned=surface(dataset, variable))
    random = [m for m in methods_of(dataset, variable) if m != "analyse"]
    if axes and random and dataset.sizes["seed"] > 1:
        caption, drawn = box_plots_caption(dataset), box_plots(dataset, variable)
        add("seeds", variable, ", seed by seed", caption, drawn)
    return sections


def findings(
    dataset: Dataset,
    variable: str | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> list[Section]:
    """Return the conclusions from a study: return levels for racks with recorded time series, a
    fitted surface, a comparison of methods. `progress` is called with the share of levels done."""
    found = (
        study_levels.section(dataset, progress),
        study_surface.section(dataset, variable),
        study_methods.section(dataset, variable),
        study_port_wait.section(dataset),
    )
    return [section for section in found if section is not None]


def sentences(study: StudyReport) -> list[str]:
    """Return the page's sentences for a terminal: from its top and from each section."""
    variables = shown_variables(study.dataset, study.show)
    return [
        *summary.sentences(study.dataset, variables),
        *assumptions.sentences(study.assumptions),
        *study_page.state(study.dataset, variables[0]),
        *(" ".join(each.sentences) for each in study.conclusions),
    ]
