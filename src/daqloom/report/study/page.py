"""The page of a study: figures, table, provenance, in one file that opens without a network."""

from __future__ import annotations

import html
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daqloom.report.page import page, picture, section, table
from daqloom.report.study import interactive as study_interactive
from daqloom.report.study import table as study_table
from daqloom.report.study import view
from daqloom.report.study.figures import search_caption
from daqloom.report.study.finding import Finding
from daqloom.study import points
from daqloom.study.attributes import attribute

if TYPE_CHECKING:
    from xarray import Dataset

MOST_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Part:
    """Contents of a page on one study. `pictures` are heading, caption and PNG each, `findings`
    have theirs; `provenance` are names and values."""

    dataset: Dataset
    pictures: Sequence[tuple[str, str, bytes]]
    variable: str | None = None
    description: str = ""
    provenance: Sequence[tuple[str, str]] = ()
    findings: Sequence[tuple[Finding, bytes]] = ()

    @property
    def title(self) -> str:
        """Title of the study, else its name."""
        about = self.dataset.attrs
        return str(about.get("title") or about.get("study") or "Study")


def render(parts: Sequence[Part]) -> str:
    """The page's text: conclusions, then figures and tables, then what they rest on; one study
    below the other."""
    body = [text for part in parts for text in _fragments(part, named=len(parts) > 1)]
    title = " and ".join(part.title for part in parts)
    lead = [finding.sentences[0] for part in parts for finding, _ in part.findings]
    return page(title, "; ".join(_subtitle(part.dataset) for part in parts), body, lead)


def _fragments(part: Part, *, named: bool) -> list[str]:
    dataset = part.dataset
    variables = points.shown_variables(dataset, part.variable)
    fragments = [f"<h2>{html.escape(part.title)}</h2>"] * named
    fragments += [f"<p>{html.escape(text)}</p>" for text in (part.description.strip(),) if text]
    for finding, png in part.findings:
        fragments += _concluded(finding, png)
    names = ", ".join(view.variable_name(dataset, name) for name in variables)
    fragments += [
        picture(heading, caption, png, f"{heading}: {names}")
        for heading, caption, png in part.pictures
    ]
    fragments += _turned(dataset, variables)
    fragments += _results(dataset, part.variable)
    if stated := state(dataset, variables[0]):
        fragments += ["<h2>What the numbers rest on</h2>"]
        fragments += [f"<p>{html.escape(text)}</p>" for text in stated]
    if part.provenance:
        told = table(("what", "value"), part.provenance)
        fragments += ["<h2>Provenance of the numbers</h2>", f'<div class="told">{told}</div>']
    return fragments


def _subtitle(dataset: Dataset) -> str:
    axes = [f"{dataset.sizes[axis]} × {view.key_name(axis)}" for axis in points.axes_of(dataset)]
    seeds = dataset.sizes["seed"]
    return ", ".join(
        [
            f"scenario {dataset.attrs.get('scenario', 'unknown')}",
            *axes,
            f"{seeds} seed" + ("s" if seeds > 1 else ""),
        ]
    )


def state(dataset: Dataset, variable: str) -> list[str]:
    """What was searched, what was assumed, and what is not computed yet."""
    sentences = [text for text in (search_caption(dataset),) if text]
    if assumed := attribute(dataset, "assumed", {}):
        told = ", ".join(f"{key} = {value}" for key, value in assumed.items())
        sentences.append(f"Assumed, as neither scenario nor study gives it: {told}.")
    for method in points.methods_of(dataset, variable):
        known = dataset[variable].sel({"by": method}).notnull().any("seed")
        if not bool(known.all()):
            label = view.LOOKS[method].label
            sentences.append(f"The {label} gives {int(known.sum())} of {known.size} points.")
    return sentences


def _concluded(finding: Finding, png: bytes) -> list[str]:
    answer, *others = finding.sentences
    more = [f"<p>{html.escape(text)}</p>" for text in others]
    shown = table(finding.head, finding.rows[:MOST_ROWS])
    drawn = picture(finding.heading, answer, png, f"{finding.heading}: {answer}", answer=True)
    words = " words" if finding.head[-1] in ("notes", "verdict") else ""
    return [drawn, *more, f'<div class="scroll{words}">{shown}</div>']


def _turned(dataset: Dataset, variables: Sequence[str]) -> list[str]:
    if points.plane_of(dataset) is None:  # the lines are all there is
        return []
    third, held = study_interactive.surface_held(dataset)
    sentences = ["Drag to turn; click a name in the legend to show or hide it."]
    if third:
        sentences.append(f"The legend has the steps of {view.key_name(third)}.")
    text = " ".join([*sentences, *view.held_caption(dataset, held)])
    return [section("Interactive", text, study_interactive.surface(dataset, variables[0]))]


def _results(dataset: Dataset, variable: str | None) -> list[str]:
    rows = list(itertools.islice(study_table.rows(dataset, variable), MOST_ROWS + 1))
    parts = ["<h2>Results</h2>"]
    if bool(points.saturated(dataset).any()):
        parts.append("<p>* saturated: demands more events than the links carry.</p>")
    if any(bool(points.drifting(dataset, str(method)).any()) for method in dataset["by"].values):
        parts.append("<p>† not stationary at the end of the runs.</p>")
    if study_table.MODEL in dataset.coords:
        parts.append("<p>Cost is relative to the shallow switch.</p>")
    if view.has_error(dataset, points.shown_variable(dataset, variable)):
        parts.append("<p>Means over the seeds ± their standard deviation.</p>")
    if len(rows) > MOST_ROWS:
        parts.append(f"<p>The first {MOST_ROWS:,} rows; the Parquet file has all rows.</p>")
    shown = table(study_table.head(dataset, variable), rows[:MOST_ROWS])
    return [*parts, f'<div class="scroll">{shown}</div>']
