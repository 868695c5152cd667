"""The description of a system: models, units, validation. An import of `ScenarioError` does not
import the models."""

from typing import TYPE_CHECKING

from daqloom.lazy import names_of
from daqloom.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from daqloom.scenario.explain import known_keys
    from daqloom.scenario.load import presets
    from daqloom.scenario.models import Scenario
    from daqloom.scenario.show import assumed_comment, to_toml
else:  # a type checker would take any name of this module to exist
    __getattr__ = names_of(
        __name__,
        {
            "Scenario": "daqloom.scenario.models",
            "assumed_comment": "daqloom.scenario.show",
            "known_keys": "daqloom.scenario.explain",
            "presets": "daqloom.scenario.load",
            "to_toml": "daqloom.scenario.show",
        },
    )

__all__ = [
    "Scenario",
    "ScenarioError",
    "assumed_comment",
    "known_keys",
    "presets",
    "to_toml",
]
