"""The description of a system: models, units, validation. Importing only `ScenarioError` does not
load the models."""

from typing import TYPE_CHECKING

from daqloom.base.lazy import names_of
from daqloom.scenario.errors import ScenarioError

if TYPE_CHECKING:
    from daqloom.scenario.file.explain import known_keys
    from daqloom.scenario.file.load import presets
    from daqloom.scenario.file.show import assumed_comment, to_toml
    from daqloom.scenario.schema.models import Scenario
else:  # else a type checker accepts any name of this module
    __getattr__ = names_of(
        __name__,
        {
            "Scenario": "daqloom.scenario.schema.models",
            "assumed_comment": "daqloom.scenario.file.show",
            "known_keys": "daqloom.scenario.file.explain",
            "presets": "daqloom.scenario.file.load",
            "to_toml": "daqloom.scenario.file.show",
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
