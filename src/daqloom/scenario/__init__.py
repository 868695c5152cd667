"""The description of a system: models, units, validation."""

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.explain import known_keys
from daqloom.scenario.load import presets
from daqloom.scenario.models import Scenario
from daqloom.scenario.show import assumed_comment, to_toml

__all__ = [
    "Scenario",
    "ScenarioError",
    "assumed_comment",
    "known_keys",
    "presets",
    "to_toml",
]
