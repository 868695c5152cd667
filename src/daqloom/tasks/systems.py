"""Tasks about scenarios: list, explain, validate, analyse, simulate."""

from collections.abc import Sequence

from daqloom.base import lazy
from daqloom.deployment import scenarios as read
from daqloom.scenario.file import load
from daqloom.system import System
from daqloom.tasks.program import Answer, Tasks, report

with lazy.imports():
    from daqloom.terms import explain as terms


def scenarios() -> Answer:
    """Return the list of the shipped scenarios."""
    listed = [{"name": name, "title": title} for name, title in load.titles().items()]
    return {"schema": 1, "scenarios": listed}


def explain(term: str) -> Answer:
    """Return the explanations of a term."""
    return terms.as_record(term, terms.explain(term))


def validate(scenario: str, overrides: Sequence[str]) -> Answer:
    """Return the scenario as TOML with all defaults, and its assumed values."""
    system = system_of(scenario, overrides)
    assumed = system.scenario.assumptions()
    return {"schema": 1, "scenario": system.name, "assumed": assumed, "toml": system.show()}


def analyse(scenario: str, overrides: Sequence[str]) -> Answer:
    """Return the result of the closed forms."""
    return system_of(scenario, overrides).analyse().to_dict()


def simulate(scenario: str, overrides: Sequence[str]) -> Answer:
    """Return the result of a simulation; print its progress."""
    return system_of(scenario, overrides).simulate(progress=report).to_dict()


SYSTEM_TASKS: Tasks = {
    task.__name__: task for task in (scenarios, explain, validate, analyse, simulate)
}


def system_of(scenario: str, overrides: Sequence[str]) -> System:
    """Return a system by its name, the path of its file, or its TOML text."""
    is_text = "=" in scenario or "\n" in scenario
    return System((read.loads if is_text else read.load)(scenario, overrides))
