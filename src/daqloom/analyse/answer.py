"""Answers of closed forms: values, the conditions for their validity, and the result."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from daqloom.results.result import Result
from daqloom.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a formula: a name, whether it holds, and a sentence with its numbers."""

    name: str
    holds: bool
    sentence: str


class Answer(NamedTuple):
    """The answer of a system's closed forms."""

    metrics: dict[str, Any]
    analysis: dict[str, dict[str, Any]]
    conditions: Mapping[str, Sequence[Condition]]
    """Conditions of formulas, keyed by the name of the formula's entry in `analysis`."""
    warnings: list[str]


def first_failing(conditions: Sequence[Condition]) -> Condition | None:
    """Return the first condition that does not hold; None if all do."""
    return next((condition for condition in conditions if not condition.holds), None)


def evaluate(scenario: Scenario, forms: Callable[[Scenario], Answer]) -> Result:
    """Return the result of closed forms. A formula whose conditions do not hold still gives a
    value, which is marked in `analysis` with the first condition that fails."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = forms(scenario)
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        assumed=scenario.assumptions(),
        method="analyse",
        metrics=answer.metrics,
        analysis={
            name: entry | _validity(answer.conditions[name]) if name in answer.conditions else entry
            for name, entry in answer.analysis.items()
        },
        engine={"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu},
        warnings=answer.warnings,
    )


def _validity(conditions: Sequence[Condition]) -> dict[str, Any]:
    failing = first_failing(conditions)
    return {"valid": True} if failing is None else {"valid": False, "failing": failing.name}
