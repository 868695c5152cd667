"""The description of a system: models, units, validation."""

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.load import known_keys, load, presets
from daqloom.scenario.models import Scenario

__all__ = ["Scenario", "ScenarioError", "known_keys", "load", "presets"]
