"""Check that a scenario's events can be built by real processes."""

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.building import BUILT
from daqloom.scenario.schema.check import check_possible
from daqloom.scenario.schema.models import Scenario


def check_measurable(scenario: Scenario) -> Scenario:
    """Return the scenario if its events can be built. Raises ScenarioError otherwise."""
    check_possible(scenario)
    if not scenario.protocol.builds:
        raise ScenarioError(
            f"{scenario.name} does not describe an event builder that can be measured; expected "
            f"building.protocol = " + " or ".join(f'"{each}"' for each in BUILT.among)
        )
    return scenario
