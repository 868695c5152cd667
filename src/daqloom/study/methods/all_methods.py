"""Application of several methods to one scenario, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from daqloom.deployment.fabric_system import fabric_system
from daqloom.results.errors import MeasureError
from daqloom.results.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.study.methods import methods as apply

if TYPE_CHECKING:
    from daqloom.measure.run import Progress
    from daqloom.scenario import Scenario

Method = Literal["analyse", "simulate", "measure"]
METHODS: tuple[Method, ...] = get_args(Method)

MOST_LOCAL_UNITS = 16
"""Maximum number of processes that a measurement starts on this machine by default."""


@dataclass(frozen=True)
class MethodResults:
    """Results of one scenario by several methods, in the order of `METHODS`."""

    scenario: Scenario
    results: tuple[Result, ...]
    failure: MeasureError | None = None
    """Error of a measurement that has no result."""

    def result_of(self, method: Method) -> Result | None:
        """Return the result of a method, None if it has none."""
        return next((result for result in self.results if result.method == method), None)


def usual_methods(scenario: Scenario) -> tuple[Method, ...]:
    """Return the default methods: no measurement if it would start too many processes on this
    machine, and only the simulation without event building. Raises ScenarioError."""
    if not scenario.protocol.builds:
        return ("simulate",)
    if scenario.measure.launch == "local" and fabric_system(scenario).nodes > MOST_LOCAL_UNITS:
        return ("analyse", "simulate")
    return METHODS


def chosen_methods(names: str) -> tuple[Method, ...]:
    """Parse names such as "simulate, measure". Raises ScenarioError."""
    chosen = {name.strip() for name in names.split(",")}
    if unknown := sorted(chosen - set(METHODS)):
        raise ScenarioError(
            f'--methods = "{names}": there is no method "{unknown[0]}"; expected some of '
            f"{', '.join(METHODS)}"
        )
    return tuple(method for method in METHODS if method in chosen)


def run_methods(
    scenario: Scenario,
    methods: Iterable[Method],
    *,
    simulated: Callable[[float], None] | None = None,
    measured: Callable[[Progress], None] | None = None,
) -> MethodResults:
    """Apply `methods`; `simulated` and `measured` are called with the progress of simulation and
    measurement. If the measurement fails, the results of other methods are returned with its
    reason. Raises the exceptions of the methods, MeasureError only if there is no other result, and
    StoppedError after Ctrl-C."""

    def run_method(method: Method) -> Result:
        if method == "analyse":
            return apply.analyse(scenario)
        if method == "simulate":
            return apply.simulate(scenario, progress=simulated)
        return apply.measure(scenario, progress=measured)

    results: list[Result] = []
    failure = None
    for method in methods:
        try:
            results.append(run_method(method))
        except MeasureError as error:
            if error.result is not None:
                results.append(error.result)
            elif not results:
                raise
            else:
                failure = error
    return MethodResults(scenario, tuple(results), failure)
