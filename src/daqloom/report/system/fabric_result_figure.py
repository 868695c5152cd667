"""The picture of a run: its timeline, how long writes took, what each cable carried."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from daqloom.metrics import label, unit_of
from daqloom.report import style
from daqloom.report.system import event_figure, link_load_map, phase_figure, write_latency
from daqloom.report.system.link_load import loads
from daqloom.report.system.link_load_map import plural
from daqloom.report.system.sheet import Sheet
from daqloom.simulate.fabric_rates import BUILT_AT_ONCE
from daqloom.topology.levels import level_name, tree_levels
from daqloom.topology.system import fabric_system

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from daqloom.result import Result
    from daqloom.scenario import Scenario
    from daqloom.topology.system import FabricSystem

WIDTH = 1040.0
MARGIN = 24.0
BESIDE = 270.0
"""Width of the histogram at the right of the timeline, in units of the sheet."""
AXIS = 60.0
"""Width of the axis at the left of the histogram, in units of the sheet."""
LOW = 150.0
"""Height of the histogram without a timeline, in units of the sheet."""
BELOW = 52.0
"""Height of a panel's legend and labels, in units of the sheet."""

NUMBERS = (
    "event_rate_hz",
    "throughput_bps",
    "node_throughput_bps",
    "phase_s",
    "barrier_share",
    "collection_latency_s.mean",
)
"""Metrics of the subtitle."""
WRITTEN = {
    "event_rate_hz": "written_event_rate_hz",
    "throughput_bps": "written_throughput_bps",
}
"""Metrics of fragments written in their place, of a run of few rounds."""


def draw(scenario: Scenario, result: Result) -> Figure:
    """The panels for which `result` has the series, from the top down; see `simulate`. Raises
    OutputError where the result is not one of `scenario`."""
    import matplotlib as mpl

    system = fabric_system(scenario)
    measured = result.method == "measure"  # nobody sees into real cables
    on_ethernet = scenario.network.technology == "ethernet"
    counted_s = result.engine.get("virtual_s", scenario.run.duration)
    counted_s -= scenario.run.warmup if on_ethernet else 0.0
    carried = None
    if not measured and not scenario.network.is_racks:
        carried = loads(system.fabric, result, counted_s)
    with mpl.rc_context(style.RC):
        sheet = Sheet(WIDTH, MARGIN)
        name = f"{scenario.name}: " if scenario.name else ""
        sheet.write(name + _about(scenario, system), 13, 20, weight="bold")
        sheet.write(_numbers(result), 10, 44, color=style.GREY)
        _draw_times(sheet, scenario, result)
        if carried is not None:
            title = "Load of each cable, " + (
                "after the warm-up" if on_ethernet else "over the whole run with its warm-up"
            )
            sheet.write(title, 10.5, 4, weight="bold")
            link_load_map.draw(sheet, system.fabric, carried)
        return sheet.finish()


def _draw_times(sheet: Sheet, scenario: Scenario, result: Result) -> None:
    """The timeline, and beside it the histogram."""
    phases, events, latency = (
        result.series.get(name, {}) for name in ("phases", "events", "write_latency")
    )
    titles, metric = write_latency.WRITES, "write_latency_s"
    if not latency.get("count"):
        latency, titles = result.series.get("collection_latency", {}), write_latency.EVENTS
        metric = "collection_latency_s"
    beside = BESIDE if any(latency.get("count", ())) else 0.0
    width = WIDTH - beside
    given = scenario.measure if result.method == "measure" else scenario.run
    warmup_s = given.warmup
    height = 0.0
    if phases.get("node"):
        height = phase_figure.draw(sheet, width, phases, warmup_s)
    elif events.get("builder"):
        height = event_figure.draw(sheet, width, events, warmup_s)
    if beside:
        left, high = (width, height - BELOW) if height else (0.0, LOW)
        axes = sheet.axes(left + AXIS, WIDTH - left - AXIS, high)
        exact = {each: result.metric(f"{metric}.{each}") for each in ("p50", "p99", "max")}
        write_latency.draw(axes, latency, titles, exact)
        height = high + BELOW
    sheet.down(height + 24 if height else 0)


def _about(scenario: Scenario, system: FabricSystem) -> str:
    """Who builds events, and how."""
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
    """The few that one asks for first."""
    parts = []
    is_short = any(BUILT_AT_ONCE in warning for warning in result.warnings)
    for name in NUMBERS:
        name = WRITTEN.get(name, name) if is_short else name
        if value := result.metric(name):
            divisor, unit = style.prefixed(unit_of(name), value)
            parts.append(f"{label(name)} {value / divisor:.3g} {unit}")
    parts.append(f"seed {result.seed}")
    return "; ".join([*parts, "interrupted"] if result.interrupted else parts)
