"""The methods analyse, simulate and measure for any scenario."""

from dataclasses import replace
from typing import Any

from daqloom.base import lazy
from daqloom.results.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.unused_keys import unused_warnings
from daqloom.scenario.schema.check import check_possible
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import Parts

with lazy.imports():
    from daqloom import analyse as closed_forms
    from daqloom.analyse import resonance
    from daqloom.analyse.fabric import analyse as fabric
    from daqloom.measure import run as measurement
    from daqloom.simulate import run as simulation


def analyse(scenario: Scenario) -> Result:
    """Evaluate the closed forms of the system. Without one, the result has only a warning."""
    check_possible(scenario)
    parts = scenario.parts
    if Parts.INCAST in parts:
        return _with_unused(closed_forms.analyse(scenario), scenario)
    if not parts & Parts.ANALYSED:
        return _without_closed_form(scenario)
    return _with_unused(fabric.analyse_fabric(scenario), scenario)


def _with_unused(result: Result, scenario: Scenario) -> Result:
    ignored = unused_warnings(scenario, "analyse")
    return replace(result, warnings=[*result.warnings, *ignored])


def _without_closed_form(scenario: Scenario) -> Result:
    protocol, network = scenario.building.protocol, scenario.network
    hint = ""
    if scenario.protocol.packs and scenario.transport.kind == "rdma" and not scenario.flows:
        hint = ', or fix its paths, as by network.routing = "d-mod-k"'
    subject = f'building.protocol = "{protocol}" has'
    if not scenario.protocol.builds:
        subject = "flows have"
    elif scenario.flows:
        subject = f'building.protocol = "{protocol}" beside [flows] has'
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        assumed=scenario.assumptions(),
        method="analyse",
        metrics={},
        warnings=[
            f'{subject} no closed form with transport.kind = "{scenario.transport.kind}" over '
            f'network.technology = "{network.technology}" and network.shape = "{network.shape}": '
            f"simulate the system{hint}"
        ],
    )


def simulate(scenario: Scenario, **options: Any) -> Result:
    """Simulate packet by packet; see `daqloom.simulate.run.simulate` for the options. Warnings
    report event rates above closed-form bounds, and timeouts that resonate with events."""
    check_possible(scenario)
    result = simulation.simulate(scenario, **options)
    notes = resonance.resonating(scenario, result) if Parts.INCAST in scenario.parts else []
    exceeding = resonance.beyond(result, _bound_hz(scenario))
    ignored = unused_warnings(scenario, "simulate")
    return replace(result, warnings=[*result.warnings, *exceeding, *notes, *ignored])


def _bound_hz(scenario: Scenario) -> float | None:
    """Return the closed-form bound of the event rate; None for a system without closed form."""
    try:
        return analyse(scenario).metric("event_rate_bound_hz")
    except ScenarioError:
        return None


def measure(scenario: Scenario, **options: Any) -> Result:
    """Build events with real processes; see `daqloom.measure.run.measure` for the options."""
    return measurement.measure(scenario, **options)
