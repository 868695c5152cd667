"""The three methods, each for any scenario: what the choices made call for is picked here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from daqloom.scenario.possible import check_possible

if TYPE_CHECKING:
    from daqloom.measure.outputs import RunEvent
    from daqloom.measure.run import Progress
    from daqloom.result import Result
    from daqloom.scenario.models import Scenario


def analyse(scenario: Scenario) -> Result:
    """Evaluate the closed forms. Raises ScenarioError where none applies."""
    check_possible(scenario)
    if scenario.is_rack:
        from daqloom.analyse import analyse as analyse_rack

        return analyse_rack(scenario)
    from daqloom.analyse.fabric import analyse_fabric

    return analyse_fabric(scenario)


def simulate(
    scenario: Scenario,
    *,
    seed: int | None = None,
    pcap: Mapping[str, Path] | None = None,
    trace: Path | None = None,
    timeline: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Simulate packet by packet; see `daqloom.simulate.run.simulate` for the arguments of racks,
    `daqloom.simulate.fabric.simulate_fabric` for those of fabrics.

    The warnings say where the closed forms contradict a rate, or explain a timeout.
    """
    from daqloom.analyse.beyond import beyond

    check_possible(scenario)
    if scenario.is_rack:
        from daqloom.analyse.resonance import resonating
        from daqloom.simulate.run import simulate as simulate_rack

        result = simulate_rack(scenario, seed=seed, pcap=pcap, trace=trace, progress=progress)
        notes = resonating(scenario, result)
    else:
        from daqloom.simulate.fabric import simulate_fabric

        result = simulate_fabric(
            scenario, seed=seed, trace=trace, timeline=timeline, progress=progress
        )
        notes = []
    exceeding = beyond(result, _bound_hz(scenario))
    return replace(result, warnings=[*result.warnings, *exceeding, *notes])


def _bound_hz(scenario: Scenario) -> float | None:
    """Return the highest event rate by the closed forms; None of a system without any."""
    from daqloom.scenario.errors import ScenarioError

    try:
        return analyse(scenario).metric("event_rate_bound_hz")
    except ScenarioError:
        return None


def measure(
    scenario: Scenario,
    *,
    seed: int | None = None,
    log_dir: Path | None = None,
    trace: Path | None = None,
    timeline: bool = False,
    progress: Callable[[Progress], None] | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
) -> Result:
    """Build events with real processes; see `daqloom.measure.run.measure` for the arguments."""
    from daqloom.measure.run import measure as measure_fabric

    return measure_fabric(
        scenario,
        seed=seed,
        log_dir=log_dir,
        trace=trace,
        timeline=timeline,
        progress=progress,
        on_event=on_event,
    )
