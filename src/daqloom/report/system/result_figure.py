"""Figure of a single result, as a picture or a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.base import lazy
from daqloom.base.output import OutputError, write_text
from daqloom.report import matplotlib_renderer, style
from daqloom.report.figure import Figure, Panel, in_grid
from daqloom.report.page import Section, page
from daqloom.report.system import course_figure
from daqloom.report.system.buffer_question import Run, regular_events, switch_of
from daqloom.report.system.panels import comparison, latency, triangles, whole_run
from daqloom.scenario import Scenario
from daqloom.scenario.schema.parts import Parts

with lazy.imports():
    from daqloom.report.system import fabric_result_figure

if TYPE_CHECKING:
    from daqloom.results.result import Result
    from daqloom.study.methods.same_events import Comparison

PICTURED = 1.8
"""Length of the figure of regular events in event durations; by then, the occupancy is periodic."""
RACK_ENDINGS = (".png", ".pdf", ".svg", ".html")
FABRIC_ENDINGS = (".png", ".pdf", ".svg")
FABRIC_DPI = 100


def endings(scenario: Scenario) -> tuple[str, ...]:
    """Return the file name extensions that a figure of the scenario may have."""
    return RACK_ENDINGS if Parts.INCAST in scenario.parts else FABRIC_ENDINGS


def write(path: Path, scenario: Scenario, result: Result) -> None:
    """Write the figure of a result. A rack has triangles of an analysis, or occupancy and latency
    of a run. A fabric, not as a page, has timeline, write latency and cable loads. A run with
    faults, or a measurement without phases, has its course. Raises `OutputError` if `path` cannot
    be written or ends in another extension."""
    ending = path.suffix.lower()
    if ending not in endings(scenario):
        raise OutputError(
            f"cannot write {path}: the name of a figure of {scenario.name} has to end in "
            f"{' or '.join(endings(scenario))}"
        )
    is_measured = result.method == "measure"
    has_course = "faults" in result.series or (is_measured and "phases" not in result.series)
    if ending == ".html":
        sections = [] if is_measured else panel_sections(_panels(scenario, result))
        if has_course:
            course = Section("Course of the run", figure=course_figure.figure(result))
            sections.insert(0, course)
        write_text(path, page(_title(scenario, result), scenario.title, sections))
    elif has_course:
        matplotlib_renderer.save(course_figure.figure(result), path)
    elif Parts.INCAST in scenario.parts:
        found = _panels(scenario, result)
        size = 7 + 2 * len(found), 4.2
        drawn = Figure(in_grid(found, len(found)), size, _title(scenario, result))
        matplotlib_renderer.save(drawn, path)
    else:
        drawn = fabric_result_figure.figure(scenario, result)
        matplotlib_renderer.save(drawn, path, FABRIC_DPI)


def write_comparison(path: Path, title: str, found: Comparison) -> None:
    """Write a comparison's occupancies to a png, pdf or svg file. Raises OutputError on failure."""
    panel = replace(comparison(found), title=title)
    matplotlib_renderer.save(Figure([panel], (10, 4.2)), path)


def panel_sections(panels: Iterable[Panel]) -> list[Section]:
    """Return a page section for each panel, with the panel's title and description."""
    sections = []
    for panel in panels:
        figure = Figure([replace(panel, title="", cell=(0, 0, 1, 1))], (12, 4.6))
        sections.append(Section(panel.title, [panel.about], figure=figure))
    return sections


def _panels(scenario: Scenario, result: Result) -> list[Panel]:
    switch = switch_of(scenario)
    if result.method == "analyse":
        event = regular_events(scenario, 0.0).event
        until_s = max(PICTURED * event.length_s, 5 / scenario.event.rate)
        return [triangles(regular_events(scenario, until_s), switch)]
    runs = [Run(switch, result)]
    return [whole_run(runs, switch), latency(runs)]


def _title(scenario: Scenario, result: Result) -> str:
    event = scenario.event
    ended = ", interrupted" if result.interrupted else ""
    return f"{scenario.name}: {event.size / 1e6:g} MB at {style.hertz(event.rate)}{ended}"
