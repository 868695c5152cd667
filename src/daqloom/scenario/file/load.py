"""Loading of a scenario by name or path, with overrides; mistakes raise ScenarioError."""

import re
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from daqloom.base.words import did_you_mean
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.explain import refusal
from daqloom.scenario.file.overrides import Overrides, merge, option_of, parse
from daqloom.scenario.package_files import package_files
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.toml import IntegerError, check_integers, read_toml

LARGEST_SCENARIO_BYTES = 1 << 20


def load(scenario: str | PathLike[str], overrides: Overrides = ()) -> Scenario:
    """Read a scenario by name or by path. Run durations that the file lacks are not filled in; see
    `daqloom.deployment.scenarios`. Raises ScenarioError."""
    path = find(scenario)
    document = read_toml(path, LARGEST_SCENARIO_BYTES)
    if not document:
        raise ScenarioError(f"{path} is empty; expected a scenario such as `daqloom show` prints")
    document.setdefault("name", re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)[:64])
    source = str(scenario) if path == presets().get(str(scenario)) else str(path)
    folder = path.parent.absolute()
    return _build(document, overrides, source=source, folder=folder)


def override(scenario: Scenario, overrides: Overrides) -> Scenario:
    """Return `scenario` with keys overridden and validated as by `load`. Raises ScenarioError."""
    document = scenario.model_dump(mode="json", exclude_unset=True)
    return _build(document, overrides, source=scenario.name, folder=Path.cwd())


def find(scenario: str | PathLike[str]) -> Path:
    """Return the file of a scenario given by name or path. Raises ScenarioError for an unknown
    name."""
    text = str(scenario)
    path = Path(text)
    if "/" in text or text.endswith(".toml") or not isinstance(scenario, str):
        return path
    known = presets()
    if text in known:
        return known[text]
    hint = did_you_mean(text, known, "known are " + ", ".join(known))
    hint += " (a file is a path that ends in .toml)"
    raise ScenarioError(f'there is no scenario "{text[:80]}"; {hint}')


def presets() -> dict[str, Path]:
    """Return the scenarios that come with daqloom, by name."""
    return package_files("scenarios")


def _build(
    document: dict[str, Any], overrides: Overrides, *, source: str, folder: Path
) -> Scenario:
    changes = parse(overrides)
    try:
        check_integers(changes)
        merge(document, changes)
        return Scenario.model_validate(document, context={"folder": folder})
    except ValidationError as error:
        raise refusal(error, source, changes, option_of(overrides)) from None
    except IntegerError as error:
        raise ScenarioError(f"{option_of(overrides) or 'the change '}{error}") from None
    except RecursionError:
        raise ScenarioError(f"{source}: values are nested too deeply") from None
