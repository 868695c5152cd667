"""Evaluates all closed forms of an event builder on a fabric."""

from collections.abc import Callable

from daqloom.analyse.answer import Answer, evaluate
from daqloom.analyse.fabric.daqpipe import daqpipe
from daqloom.analyse.fabric.shift import shift
from daqloom.analyse.fabric.traffic import traffic
from daqloom.deployment.scenarios import override
from daqloom.results.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import RATE
from daqloom.scenario.schema.models import Scenario
from daqloom.topology.routing import credit_loops
from daqloom.topology.shapes.shape import cables

FORMS: dict[str, Callable[[Scenario], Answer]] = {"shift": shift, "daqpipe": daqpipe}
"""Functions that evaluate closed forms, keyed by building protocol."""


def analyse_fabric(scenario: Scenario) -> Result:
    """Evaluate all closed forms of `scenario`; this takes milliseconds and no random numbers. Two
    cases have no formula: phases with jitter, and builder-paced phases without a barrier. For these
    a ring of nodes is simulated, in at most half a second and always with the same seed. A formula
    whose conditions do not hold gives a bound, marked in `analysis` and `warnings`. Raises
    ScenarioError if fabric, nodes and routes do not match."""
    return evaluate(scenario, _answer)


def _answer(scenario: Scenario) -> Answer:
    answer = FORMS[scenario.building.protocol](_with_one_rate(scenario))
    failing = [
        f"analysis.{name}: {condition.sentence}"
        for name, conditions in answer.conditions.items()
        for condition in conditions
        if not condition.holds
    ]
    found = traffic(scenario)
    blocking = credit_loops.warnings(scenario.network, found.fabric, found.paths, found.hosts)
    return answer._replace(warnings=found.warnings + blocking + answer.warnings + failing)


def _with_one_rate(scenario: Scenario) -> Scenario:
    """Return the scenario with the rate of its cables. Raises ScenarioError if rates differ."""
    if not scenario.network.links.are_alike:
        raise ScenarioError(
            f"{scenario.name}: network.links has cables that differ from the others, and closed "
            "forms need one rate and one delay; leave host, spine, core and named out, or simulate"
        )
    if scenario.network.links.rate and scenario.network.shape != "cables":
        return scenario
    fabric, _ = cables(scenario)
    rates = sorted({cable.rate_bps for cable in fabric.cables})
    if len(rates) > 1:
        raise ScenarioError(
            f"{scenario.name}: cables run at {RATE.format(rates[0])} to {RATE.format(rates[-1])}, "
            "and closed forms need one rate; set network.links.rate, or simulate"
        )
    return override(scenario, {"network.links.rate": RATE.format(rates[0])})
