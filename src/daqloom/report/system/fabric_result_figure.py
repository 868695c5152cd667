"""Figure of a run on a fabric: timeline, histogram of write latency, and load of each cable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from daqloom.deployment.fabric_system import fabric_system
from daqloom.report import style
from daqloom.report.figure import Figure, Panel, Text
from daqloom.report.system import event_figure, link_load_map, phase_figure, write_latency
from daqloom.report.system.link_load import loads
from daqloom.report.system.link_load_map import plural
from daqloom.results.metrics import label, unit_of
from daqloom.simulate.fabric_rates import BUILT_AT_ONCE
from daqloom.topology.fabric.levels import level_name, tree_levels

if TYPE_CHECKING:
    from daqloom.deployment.fabric_system import FabricSystem
    from daqloom.results.result import Result
    from daqloom.scenario import Scenario

WIDTH = 1040.0
MARGIN = 24.0
BESIDE = 270.0
"""Width of the histogram right of the timeline, in units of the sheet."""
AXIS = 60.0
"""Width of the axis left of the histogram, in units of the sheet."""
LOW = 150.0
"""Height of the histogram if there is no timeline, in units of the sheet."""
BELOW = 52.0
"""Height of the legend and axis labels of a panel, in units of the sheet."""

NUMBERS = (
    "event_rate_hz",
    "throughput_bps",
    "node_throughput_bps",
    "phase_s",
    "barrier_share",
    "collection_latency_s.mean",
)
"""Metrics in the subtitle of the figure."""
WRITTEN = {"event_rate_hz": "written_event_rate_hz", "throughput_bps": "written_throughput_bps"}
"""Metrics of written fragments, by the `NUMBERS` that they replace after a run of few rounds."""


def figure(scenario: Scenario, result: Result) -> Figure:
    """Return the figure, whose panels are those for which `result` has series. Raises OutputError
    if `result` belongs to another scenario."""
    system = fabric_system(scenario)
    measured = result.method == "measure"  # has no loads of cables
    on_ethernet = scenario.network.technology == "ethernet"
    counted_s = result.engine.get("virtual_s", scenario.run.duration)
    counted_s -= scenario.run.warmup if on_ethernet else 0.0
    name = f"{scenario.name}: " if scenario.name else ""
    drawn = [
        _line(name + _about(scenario, system), 0, 13, bold=True),
        _line(_numbers(result), 20, 10, colour=style.GREY),
    ]
    times, y = _times(scenario, result)
    drawn += _down(times, 64)
    y += 64
    if not measured and not scenario.network.is_racks:
        title = "Load of each cable, " + (
            "after the warm-up" if on_ethernet else "over the whole run with its warm-up"
        )
        carried = loads(system.fabric, result, counted_s)
        tables, height = link_load_map.panels(system.fabric, carried, WIDTH)
        drawn += [_line(title, y, 10.5, bold=True), *_down(tables, y + 10)]
        y += 10 + height
    size = (WIDTH + 2 * MARGIN) / 72, (y + 2 * MARGIN) / 72
    return Figure(_down(drawn, MARGIN, right=MARGIN), size)


def _line(text: str, y: float, size: float, **look: Any) -> Panel:
    """Return a panel that has only a line of text."""
    words = Text(0, 1, [text], size=size, across="left", down="top", shares="xy", **look)
    return Panel([words], place=(0, y, WIDTH, size), blank=True)


def _down(panels: Iterable[Panel], down: float, right: float = 0.0) -> list[Panel]:
    """Return copies of the panels, moved down and to the right."""
    found = []
    for panel in panels:
        x, y, width, height = panel.place or (0, 0, 0, 0)
        found.append(replace(panel, place=(x + right, y + down, width, height)))
    return found


def _times(scenario: Scenario, result: Result) -> tuple[list[Panel], float]:
    """Return timeline and histogram, side by side, and the height of both."""
    phases, events, latency = (
        result.series.get(name, {}) for name in ("phases", "events", "write_latency")
    )
    titles, metric = write_latency.WRITES, "write_latency_s"
    if not latency.get("count"):
        latency, titles = result.series.get("collection_latency", {}), write_latency.EVENTS
        metric = "collection_latency_s"
    has_latency = any(latency.get("count", ()))
    width = WIDTH - (BESIDE if has_latency else 0.0)
    given = scenario.measure if result.method == "measure" else scenario.run
    panels = []
    if phases.get("node"):
        panels = [phase_figure.panel(width, phases, given.warmup)]
    elif events.get("builder"):
        panels = [event_figure.panel(width, events, given.warmup)]
    high = panels[0].place[3] if panels and panels[0].place else LOW
    if has_latency:
        left = (width if panels else 0.0) + AXIS
        exact = {each: result.metric(f"{metric}.{each}") for each in ("p50", "p99", "max")}
        beside = write_latency.panel(latency, titles, exact)
        panels.append(replace(beside, place=(left, 0, WIDTH - left, high)))
    return panels, high + BELOW + 24 if panels else 0.0


def _about(scenario: Scenario, system: FabricSystem) -> str:
    """Return a sentence part on nodes, switches, and rules of event building."""
    how = scenario.building.in_words
    if scenario.network.is_racks:
        switches = Counter(system.levels)
        levels = f"{switches['core']} core, {switches['tor']} top-of-rack"
        return f"{system.nodes} nodes, switches: {levels}; {how}"
    switches = Counter(map(level_name, tree_levels(system.fabric)))
    levels = ", ".join(
        f"{count} {level if count == 1 else plural(level)}" for level, count in switches.items()
    )
    return f"{system.nodes} nodes, {levels}; {how}"


def _numbers(result: Result) -> str:
    """Return the metrics `NUMBERS` and the seed in words."""
    parts = []
    is_short = any(BUILT_AT_ONCE in warning for warning in result.warnings)
    for name in NUMBERS:
        name = WRITTEN.get(name, name) if is_short else name
        if value := result.metric(name):
            divisor, unit = style.prefix(unit_of(name), value)
            parts.append(f"{label(name)} {value / divisor:.3g} {unit}")
    parts.append(f"seed {result.seed}")
    return "; ".join([*parts, "interrupted"] if result.interrupted else parts)
