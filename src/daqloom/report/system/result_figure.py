"""The figure of one result, to a file whose ending says what kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.output import OutputError, write_text
from daqloom.report import style
from daqloom.report.page import page, section
from daqloom.report.system import panels
from daqloom.report.system.buffer_question import Regular, Run, regular_events, switch_of
from daqloom.report.system.panel_drawing import draw_panel, interactive
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

    Of a fabric: timeline, latency of writes and load of each cable; png, pdf or svg.

    Raises `OutputError` for another ending and where `path` cannot be written.
    """
    ending = path.suffix.lower()
    if ending not in endings(scenario):
        raise OutputError(
            f"cannot write {path}: the name of a figure of {scenario.name} has to end in "
            f"{' or '.join(endings(scenario))}"
        )
    if ending == ".html":
        write_text(path, _page(scenario, result))
    elif scenario.is_rack:
        style.save(_draw_rack(scenario, result), path)
    else:
        from daqloom.report.system import fabric_result_figure

        style.save(fabric_result_figure.draw(scenario, result), path, FABRIC_DPI)


def _draw_rack(scenario: Scenario, result: Result) -> Figure:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    switch = switch_of(scenario)
    with mpl.rc_context(style.RC):
        if result.method == "analyse":
            figure = Figure(figsize=(9, 4.2), layout="constrained")
            axes = figure.add_subplot()
            draw_panel(axes, panels.triangles(_regular(scenario), switch))
            axes.set_title(_title(scenario))
            return figure
        figure = Figure(figsize=(11, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
        draw_panel(left, panels.whole_run([Run(switch, result)], switch))
        left.set_title(_title(scenario) + (", interrupted" if result.interrupted else ""))
        draw_panel(right, panels.latency([Run(switch, result)]))
        right.set_title("Time to collect an event")
    return figure


def _page(scenario: Scenario, result: Result) -> str:
    switch = switch_of(scenario)
    if result.method == "analyse":
        parts = [
            section(
                "Regular events, initially empty switch",
                "Each layer is one event: filled by all sources at once, drained by one builder's "
                "link.",
                interactive(panels.triangles(_regular(scenario), switch)),
            )
        ]
    else:
        runs = [Run(switch, result)]
        parts = [
            section(
                "Buffer of the top-of-rack switch",
                "Peak occupancy in each interval.",
                interactive(panels.whole_run(runs, switch)),
            ),
            section(
                "Time to collect an event",
                "Share of events with a longer latency.",
                interactive(panels.latency(runs)),
            ),
        ]
    ended = ", interrupted" if result.interrupted else ""
    return page(_title(scenario) + ended, scenario.title, parts)


def _title(scenario: Scenario) -> str:
    event = scenario.event
    return f"{scenario.name}: {event.size / 1e6:g} MB at {style.hertz(event.rate)}"


def _regular(scenario: Scenario) -> Regular:
    event = regular_events(scenario, 0.0).event
    return regular_events(scenario, max(PICTURED * event.length_s, 5 / scenario.event.rate))
