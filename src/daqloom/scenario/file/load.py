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
from daqloom.scenario.toml import IntegerError, TomlError, check_integers, parse_toml, read_toml

LARGEST_SCENARIO_BYTES = 1 << 20


def load(scenario: str | PathLike[str], overrides: Overrides = ()) -> Scenario:
    """Read a scenario by name or by path. Run durations that the file lacks are not filled in; see
    `daqloom.deployment.scenarios`. Raises ScenarioError."""
    path = find(scenario)
    document = read_toml(path, LARGEST_SCENARIO_BYTES)
    source = str(scenario) if path == presets().get(str(scenario)) else str(path)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem)[:64]
    return _build_named(
        document, overrides, name=name, source=source, folder=path.parent.absolute()
    )


def loads(text: str, overrides: Overrides = ()) -> Scenario:
    """Read a scenario from its text; names of files are relative to the working folder. Otherwise
    as `load`."""
    source = "the text of the scenario"
    if len(text.encode(errors="replace")) > LARGEST_SCENARIO_BYTES:
        raise ScenarioError(
            f"{source} is larger than {LARGEST_SCENARIO_BYTES >> 10} KiB, the largest size allowed"
        )
    try:
        document = parse_toml(text)
    except TomlError as error:
        raise ScenarioError(f"{source} {error}") from None
    return _build_named(document, overrides, name="scenario", source=source, folder=Path.cwd())


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


def titles() -> dict[str, str]:
    """Return the titles of the scenarios that come with daqloom, by name."""
    return {name: load(name).title for name in presets()}


def _build_named(
    document: dict[str, Any], overrides: Overrides, *, name: str, source: str, folder: Path
) -> Scenario:
    """Build a scenario from a document, which gets `name` if it has none."""
    if not document:
        raise ScenarioError(f"{source} is empty; expected a scenario such as `daqloom show` prints")
    return _build({"name": name} | document, overrides, source=source, folder=folder)


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
