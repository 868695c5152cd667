"""The figure of one result, to a file whose ending says what kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.output import OutputError, write_text
from daqloom.report import style
from daqloom.report.page import page
from daqloom.report.system.buffer_question import Run, regular_events, switch_of
from daqloom.report.system.panel_drawing import draw_panel, part
from daqloom.report.system.panels import Panel, latency, triangles, whole_run
from daqloom.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from daqloom.result import Result

PICTURED = 1.8
"""Length of the picture of regular events, in lengths of one event: then they have settled."""
RACK_ENDINGS = (".png", ".pdf", ".svg", ".html")
FABRIC_ENDINGS = (".png", ".pdf", ".svg")
FABRIC_DPI = 100
"""A large page: whoever prints it takes the PDF."""


def endings(scenario: Scenario) -> tuple[str, ...]:
    """What the name of its figure may end in."""
    return RACK_ENDINGS if scenario.is_rack else FABRIC_ENDINGS


def write(path: Path, scenario: Scenario, result: Result) -> None:
    """Writes triangles for an analysis, occupancy and latency for a run; png, pdf, svg or html.

    Of a fabric: timeline, latency of writes and load of each cable; of a run with faults, or a
    measurement without phases, its course; png, pdf or svg.

    Raises `OutputError` for another ending and where `path` cannot be written.
    """
    ending = path.suffix.lower()
    if ending not in endings(scenario):
        raise OutputError(
            f"cannot write {path}: the name of a figure of {scenario.name} has to end in "
            f"{' or '.join(endings(scenario))}"
        )
    has_course = result.method == "measure" and "phases" not in result.series
    if ("faults" in result.series or has_course) and ending in FABRIC_ENDINGS:
        from daqloom.report.system import course_figure

        style.save(course_figure.draw(result), path)
        return
    if not scenario.is_rack:
        from daqloom.report.system import fabric_result_figure

        style.save(fabric_result_figure.draw(scenario, result), path, FABRIC_DPI)
        return
    title, found = _title(scenario, result), _panels(scenario, result)
    if ending == ".html":
        write_text(path, page(title, scenario.title, [part(panel) for panel in found]))
    else:
        style.save(_draw(title, found), path)


def _panels(scenario: Scenario, result: Result) -> list[Panel]:
    switch = switch_of(scenario)
    if result.method == "analyse":
        event = regular_events(scenario, 0.0).event
        until_s = max(PICTURED * event.length_s, 5 / scenario.event.rate)
        return [triangles(regular_events(scenario, until_s), switch)]
    runs = [Run(switch, result)]
    return [whole_run(runs, switch), latency(runs)]


def _draw(title: str, found: Sequence[Panel]) -> Figure:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(style.RC):
        figure = Figure(figsize=(7 + 2 * len(found), 4.2), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
        for axes, panel in zip(
            figure.subplots(1, len(found), squeeze=False)[0], found, strict=True
        ):
            draw_panel(axes, panel)
    return figure


def _title(scenario: Scenario, result: Result) -> str:
    event = scenario.event
    ended = ", interrupted" if result.interrupted else ""
    return f"{scenario.name}: {event.size / 1e6:g} MB at {style.hertz(event.rate)}{ended}"
