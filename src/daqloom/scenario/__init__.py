"""The description of a system: models, units, validation."""

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.explain import known_keys
from daqloom.scenario.fabric import FabricScenario
from daqloom.scenario.load import load, load_system, presets, rack
from daqloom.scenario.models import Scenario
from daqloom.scenario.show import to_toml

__all__ = [
    "FabricScenario",
    "Scenario",
    "ScenarioError",
    "known_keys",
    "load",
    "load_system",
    "presets",
    "rack",
    "to_toml",
]
