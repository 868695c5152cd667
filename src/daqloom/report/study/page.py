"""Page of a study: figures, table and provenance in one file that needs no network."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from daqloom.base.words import plural
from daqloom.report.page import Section, page
from daqloom.report.study import assumptions, summary, view
from daqloom.report.study import table as study_table
from daqloom.report.study.lines import search_caption
from daqloom.study.file import points
from daqloom.study.file.points import attribute
from daqloom.study.run.dataset import COST

if TYPE_CHECKING:
    from xarray import Dataset

    from daqloom.study.methods.assumptions import Effects

MOST_ROWS = 2000


@dataclass(frozen=True, eq=False)
class StudyReport:
    """A study with its parts of a report; see `write_report` for the first fields."""

    dataset: Dataset
    show: str | None = None
    description: str = ""
    provenance: Sequence[tuple[str, str]] = ()
    conclusions: Sequence[Section] = ()
    pictures: Sequence[Section] = ()
    effects: Effects | None = None
    """Effects of assumed values on the main variable."""

    @property
    def title(self) -> str:
        """Title of the study; its name if it has no title."""
        about = self.dataset.attrs
        return str(about.get("title") or about.get("study") or "Study")

    @property
    def assumptions(self) -> Section | None:
        """Section on the assumed values; None if there are none."""
        steps = view.hold(self.dataset, points.axes_of(self.dataset)).items()
        where = view.place_text(self.dataset, points.step_values(self.dataset, steps))
        return assumptions.section(attribute(self.dataset, "assumed", {}), self.effects, where)

    @property
    def lead(self) -> list[str]:
        """Sentences at the top of the page."""
        found = [one.sentences[0] for one in self.conclusions if one.is_answer]
        variables = points.shown_variables(self.dataset, self.show)
        partial = missing_seeds(self.dataset, variables[0])
        return [*summary.sentences(self.dataset, variables), *found, *partial]


def render(studies: Sequence[StudyReport], *, interactive: bool = False) -> str:
    """Return the page of all studies: answers, assumptions and a figure of each; then conclusions,
    figures, tables, and basis of the numbers."""
    several = len(studies) > 1
    body = [part for each in studies for part in _sections(each, named=several)]
    top = [part for each in studies for part in _top(each, named=several)]
    title = " and ".join(each.title for each in studies)
    lead = [f"{each.title}: {text}" if several else text for each in studies for text in each.lead]
    subtitle = "; ".join(_subtitle(each.dataset) for each in studies)
    return page(title, subtitle, body, lead, top, interactive=interactive)


def _top(study: StudyReport, *, named: bool) -> Iterator[Section]:
    """Yield the sections above the details: assumptions, and the first figure of a single study."""
    if found := study.assumptions:
        heading = f"{found.heading}, {study.title}" if named else found.heading
        yield replace(found, heading=heading)
    if not named:
        yield from study.pictures[:1]


def _sections(study: StudyReport, *, named: bool) -> Iterator[Section]:
    dataset = study.dataset
    variables = points.shown_variables(dataset, study.show)
    description = study.description.strip()
    if named or description:
        yield Section(study.title if named else "The study", [description])
    for each in study.conclusions:
        described = f"{each.heading}: {each.sentences[0]}"
        yield replace(_with_look(each), described=described)
    yield from study.pictures if named else study.pictures[1:]
    yield _results(dataset, study.show)
    if basis := state(dataset, variables[0]):
        yield Section("Basis of the numbers", basis)
    if rows := study.provenance:
        yield Section("Provenance of the numbers", head=("what", "value"), rows=rows, look="pairs")


def _subtitle(dataset: Dataset) -> str:
    axes = [f"{dataset.sizes[axis]} × {view.key_name(axis)}" for axis in points.axes_of(dataset)]
    scenario = f"scenario {dataset.attrs.get('scenario', 'unknown')}"
    return ", ".join([scenario, *axes, plural(dataset.sizes["seed"], "seed")])


def state(dataset: Dataset, variable: str) -> list[str]:
    """Return sentences on the search, and on points without a result."""
    sentences = [text for text in (search_caption(dataset),) if text]
    for method in points.methods_of(dataset, variable):
        known = dataset[variable].sel({"by": method}).notnull().any("seed")
        if not bool(known.all()):
            label = view.LOOKS[method].label
            sentences.append(f"The {label} gives {int(known.sum())} of {known.size} points.")
    return sentences + missing_seeds(dataset, variable)


def missing_seeds(dataset: Dataset, variable: str) -> list[str]:
    """Return a sentence for each method with points that have some of their seeds only."""
    found = []
    values = dataset[variable].notnull()
    if variable in points.BOUNDARIES:  # a search has ended, though it may have found none
        values = dataset["boundary_status"] != ""
    for method in points.methods_of(dataset, variable):
        known = values.sel({"by": method})
        partial = known.any("seed") & ~known.all("seed")
        if count := int(partial.sum()):
            left = int((~known).where(partial, other=False).sum())
            label, seeds = view.LOOKS[method].label, plural(known.sizes["seed"], "seed")
            found.append(
                f"The {label} lacks {plural(left, 'result')} of {seeds} at {count} of "
                f"{partial.size} points, whose numbers are of the other seeds; `daqloom study run` "
                "computes what is missing."
            )
    return found


def _with_look(section: Section) -> Section:
    has_words = section.head and section.head[-1] in ("notes", "verdict")
    look = "scroll words" if has_words else "scroll"
    return replace(section, rows=section.rows[:MOST_ROWS], look=look)


def _results(dataset: Dataset, variable: str | None) -> Section:
    rows = list(itertools.islice(study_table.rows(dataset, variable), MOST_ROWS + 1))
    notes = []
    if bool(points.saturation_flags(dataset).any()):
        notes.append("* saturated: demands more events than the links carry.")
    if any(bool(points.drifting(dataset, str(method)).any()) for method in dataset["by"].values):
        notes.append("† not stationary at the end of the runs.")
    if COST in dataset.coords:
        notes.append("Costs: network.switch.tor.cost, for products relative to the qfx5120-48y.")
    if view.has_error(dataset, points.shown_variable(dataset, variable)):
        notes.append("Means over the seeds ± their standard deviation.")
    if len(rows) > MOST_ROWS:
        notes.append(f"The first {MOST_ROWS:,} rows; the Parquet file has all rows.")
    head = study_table.head(dataset, variable)
    return Section("Results", notes, head=head, rows=rows[:MOST_ROWS], look="scroll")
