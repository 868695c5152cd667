"""From a name or a file, and overrides, to a scenario; every mistake is a ScenarioError."""

from __future__ import annotations

import difflib
import re
import tomllib
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.explain import sentence
from daqloom.scenario.fabric import FabricScenario
from daqloom.scenario.inputs import read_text
from daqloom.scenario.models import Scenario
from daqloom.scenario.overrides import Overrides, merge, option_of, parse
from daqloom.scenario.shipped import shipped
from daqloom.scenario.system import System

LARGEST_SCENARIO_BYTES = 1 << 20
FABRIC_TABLES = frozenset({"fabric", "shift", "daqpipe", "flows", "nodes", "fragments"})
"""A scenario with one of these is that of a fabric."""

AnySystem = TypeVar("AnySystem", bound=System)


def load(scenario: str | PathLike[str], overrides: Overrides = ()) -> Scenario:
    """Read the scenario of a rack by name or by path; raises ScenarioError."""
    return rack(load_system(scenario, overrides))


def rack(system: Scenario | FabricScenario) -> Scenario:
    """The same, if it is the scenario of a rack; raises ScenarioError otherwise."""
    if not isinstance(system, Scenario):
        raise ScenarioError(
            f"{system.name} is the scenario of a fabric; expected that of a rack, such as "
            "atlas-lab (`daqloom analyse` and `daqloom simulate` take both)"
        )
    return system


def load_system(
    scenario: str | PathLike[str], overrides: Overrides = ()
) -> Scenario | FabricScenario:
    """Read any scenario by name or by path; raises ScenarioError."""
    path = find(scenario)
    try:
        text = read_text(path, LARGEST_SCENARIO_BYTES)
    except ValueError as error:
        raise ScenarioError(str(error)) from None
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise ScenarioError(f"{path} is no valid TOML: {_lower_first(error)}") from None
    if not document:
        raise ScenarioError(f"{path} is empty; expected a scenario such as `daqloom show` prints")
    document.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)[:64])
    source = str(scenario) if path == presets().get(str(scenario)) else str(path)
    folder = path.parent.absolute()
    if FABRIC_TABLES & document.keys():
        return _build(FabricScenario, document, overrides, source=source, folder=folder)
    return _build(Scenario, document, overrides, source=source, folder=folder)


def override(scenario: AnySystem, overrides: Overrides) -> AnySystem:
    """`scenario` with some keys changed; raises ScenarioError."""
    document = scenario.model_dump(mode="json", exclude_unset=True)
    return _build(type(scenario), document, overrides, source=scenario.name, folder=Path.cwd())


def find(scenario: str | PathLike[str]) -> Path:
    """The file of a scenario given by name or path; raises ScenarioError if there is none."""
    text = str(scenario)
    path = Path(text)
    if "/" in text or text.endswith(".toml") or not isinstance(scenario, str):
        return path
    known = presets()
    if text in known:
        return known[text]
    nearest = difflib.get_close_matches(text, known, n=1)
    hint = f'did you mean "{nearest[0]}"?' if nearest else "known are " + ", ".join(known)
    raise ScenarioError(
        f'there is no scenario "{text[:80]}"; {hint} (a file is a path that ends in .toml)'
    )


def presets() -> dict[str, Path]:
    """The scenarios that come with daqloom, by name."""
    return shipped("scenarios")


def _build(
    kind: type[AnySystem],
    document: dict[str, Any],
    overrides: Overrides,
    *,
    source: str,
    folder: Path,
) -> AnySystem:
    changes = parse(overrides, kind)
    try:
        merge(document, changes)
        return kind.model_validate(document, context={"folder": folder})
    except ValidationError as error:
        raise ScenarioError(sentence(error, source, changes, option_of(overrides), kind)) from None
    except RecursionError:
        raise ScenarioError(f"{source}: values are nested too deeply") from None


def _lower_first(error: Exception) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]
