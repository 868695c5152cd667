"""The report of a study: a page, figures for print and a table for other programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.output import written_whole
from daqloom.report import style
from daqloom.report.study import figures as study_figures
from daqloom.report.study import levels as study_levels
from daqloom.report.study import methods as study_methods
from daqloom.report.study import page as study_page
from daqloom.report.study import port_wait as study_port_wait
from daqloom.report.study import surface as study_surface
from daqloom.report.study.finding import Finding
from daqloom.report.study.names import axis_of_names
from daqloom.report.study.view import key_name, roles, variable_name
from daqloom.study.dataset import to_parquet
from daqloom.study.points import axes_of, methods_of, plane_of, shown_variables

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset


DPI_OF_FILES = 200
DPI_OF_PAGE = 110


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


@dataclass(frozen=True, eq=False)
class Reported:
    """A study of a report; the fields are the arguments of `write_report`."""

    dataset: Dataset
    show: str | None
    description: str
    provenance: Sequence[tuple[str, str]]
    conclusions: Sequence[Finding]


def write_reports(studies: Sequence[Reported], folder: str | PathLike[str]) -> list[Path]:
    """The same of several studies: one page, and for each study a folder of its figures and
    numbers, which has its name."""
    folder = Path(folder)
    parts: list[study_page.Part] = []
    files: list[tuple[Path, Figure | Dataset]] = []
    for each in studies:
        below = folder / str(each.dataset.attrs.get("study")) if len(studies) > 1 else folder
        drawn = figures(each.dataset, each.show)
        parts.append(
            study_page.Part(
                each.dataset,
                [(head, text, style.png(figure, DPI_OF_PAGE)) for _, head, text, figure in drawn],
                each.show,
                each.description,
                each.provenance,
                [(one, style.png(one.figure, DPI_OF_PAGE)) for one in each.conclusions],
            )
        )
        files += [(below / name, figure) for name, _, _, figure in drawn]
        files += [(below / one.name, one.figure) for one in each.conclusions]
        files.append((below / "results", each.dataset))
    paths = [folder / "report.html"]
    with written_whole(paths[0]) as scratch:
        scratch.write_text(study_page.render(parts), encoding="utf-8")
    for path, content in files:
        paths += _written(path, content)
    return paths


def _written(path: Path, content: Figure | Dataset) -> Iterator[Path]:
    from matplotlib.figure import Figure

    endings = ("png", "pdf") if isinstance(content, Figure) else ("parquet",)
    for ending in endings:
        file = path.with_name(f"{path.name}.{ending}")
        with written_whole(file) as scratch:
            if isinstance(content, Figure):
                # Without a date: the same results give the same bytes.
                about = {"CreationDate": None} if ending == "pdf" else {}
                content.savefig(scratch, dpi=DPI_OF_FILES, metadata=about)
            else:
                to_parquet(content, scratch)
        yield file


def figures(dataset: Dataset, variable: str | None = None) -> list[tuple[str, str, str, Figure]]:
    """All figures that suit the study: name of the file, heading, caption, figure."""
    variables = shown_variables(dataset, variable)
    variable = variables[0]
    found: list[tuple[str, str, str, Figure]] = []
    axes = axes_of(dataset)

    def what(variable: str) -> str:
        name = variable_name(dataset, variable)
        return name[:1].upper() + name[1:]

    if downwards := axis_of_names(dataset):
        caption = study_figures.names_caption(dataset)
        for each in variables:
            name = "names" if each == variable else f"names-{each}"
            drawn = study_figures.names(dataset, each)
            found.append((name, f"{what(each)} by {key_name(downwards)}", caption, drawn))
        return found
    if axes:
        caption = study_figures.lines_caption(dataset, variable)
        used = roles(dataset)
        if len(variables) > 1 and used.panel is None:
            drawn = study_figures.lines_beside(dataset, variables)
        else:
            drawn = study_figures.lines(dataset, variable)
        found.append(("lines", f"{what(variable)} along {key_name(used.x)}", caption, drawn))
    if plane := plane_of(dataset):
        over = " and ".join(map(key_name, plane))
        caption = study_figures.heat_map_caption(dataset, variable)
        drawn = study_figures.heat_map(dataset, variable)
        found.append(("map", f"{what(variable)} over {over}", caption, drawn))
    random = [m for m in methods_of(dataset, variable) if m != "analyse"]
    if axes and random and dataset.sizes["seed"] > 1:
        caption = study_figures.box_plots_caption(dataset)
        drawn = study_figures.box_plots(dataset, variable)
        found.append(("seeds", f"{what(variable)}, seed by seed", caption, drawn))
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
