"""Overrides of a scenario's keys, such as `event.size=2 MB`."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from daqloom.scenario.document import forget, keys, look, put
from daqloom.scenario.dumps import shipped_fabrics
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.explain import known_keys, knows, named_as, nearest
from daqloom.scenario.filling import is_scheme
from daqloom.scenario.schema.choices import Choices, deciding
from daqloom.scenario.schema.models import FILES, Scenario
from daqloom.scenario.schema.switches import COMMON_KEYS, LEVELS, OF_A_PRODUCT, USUAL, Switch
from daqloom.scenario.toml import IntegerError, TomlError, parse_toml

_PLACES = ("certificates", "source_files", "sink_files")
FILE_KEYS = FILES.keys() | {f"measure.{key}" for key in _PLACES}
"""Scenario keys whose value is the name of a file or a folder."""

Overrides = Iterable[str] | Mapping[str, Any]


def option_of(overrides: Overrides) -> str:
    """Return the prefix of messages on overrides: "--set " for text, "" for a mapping."""
    return "" if isinstance(overrides, Mapping) else "--set "


def parse(overrides: Overrides, system: type[BaseModel] = Scenario) -> dict[str, Any]:
    """Return the overrides as dotted path → value; raises ScenarioError for an unknown path."""
    option = option_of(overrides)
    if isinstance(overrides, str):
        overrides = [overrides]
    if not isinstance(overrides, Mapping):
        overrides = dict(_split(text) for text in overrides)
    for path in overrides:
        if knows(path, system):
            continue
        known = [named_as(path, key) for key in known_keys(system)]
        inside = [name for name in known if name.startswith(path + ".")]
        if inside:
            refusal = f'{option}{path}: "{path}" is a table; set one of its keys, such as'
            raise ScenarioError(f'{refusal} "{inside[0]}"')
        shown = path[:80]
        raise ScenarioError(f'{option}{shown}: unknown key "{shown}"{nearest(path, system)}')
    return {path: _from_here(path, value) for path, value in overrides.items()}


def _from_here(path: str, value: Any) -> Any:
    """Return an override's value; a file name, relative to the working folder, becomes absolute."""
    if path not in FILE_KEYS or not isinstance(value, str) or not value:
        return value
    return value if is_scheme(value) or value in shipped_fabrics() else os.path.abspath(value)


def _split(text: str) -> tuple[str, Any]:
    path, equals, value = (part.strip() for part in text.partition("="))
    if not (equals and path):
        raise ScenarioError(
            f'--set {text[:80]}: expected dotted.path=value, such as "event.size=2 MB"'
        )
    try:
        parsed = parse_toml(f"value = {value}")
    except IntegerError:
        raise ScenarioError(f"--set {path[:80]} is a whole number of more than 64 bits") from None
    except TomlError:
        parsed = {}  # unquoted text
    # Further keys mean that the text contained a line break and assignments of its own.
    return path, parsed["value"] if parsed.keys() == {"value"} else value


def merge(document: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Set the keys `changes` (dotted path → value) in a scenario's `document`. Remove other keys
    that no longer apply, because the changes select another model or protocol."""
    _forget_replaced_models(document, changes)
    for path, value in changes.items():
        put(document, path, value)  # validation reports a missing table
    if deciding(Scenario) & changes.keys():
        for path, _ in list(Choices(document, Scenario).without_meaning()):
            if path not in changes:
                forget(document, path)


def meaningless(scenario: Scenario, changes: Mapping[str, Any]) -> dict[str, str]:
    """Return those of `changes` that do not apply to `scenario` with the other changes, as dotted
    path → a sentence with the reason."""
    document = scenario.model_dump(mode="json", exclude_unset=True)
    merge(document, changes)
    choices = Choices(document, Scenario)
    found = dict(choices.without_meaning())
    sentences = {path: choices.refusal(path, found[path]) for path in changes if path in found}
    for table in (f"network.switch.{level}" for level in LEVELS):
        keys = look(document, table)
        if isinstance(keys, dict):
            for key, refusal in Switch.foreign_keys(keys).items():
                if f"{table}.{key}" in changes:
                    sentences.setdefault(f"{table}.{key}", f"{table}.{refusal}")
    return sentences


def _forget_replaced_models(document: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Remove the numbers of a switch if an override replaces the switch's model."""
    for table in (f"network.switch.{level}" for level in LEVELS):
        if _is_replaced(document, changes, f"{table}.model", "infinite"):
            for key in look(document, table).keys() - COMMON_KEYS:
                forget(document, f"{table}.{key}")
    if _is_replaced(document, changes, "network.switch.model", USUAL):
        for path in OF_A_PRODUCT & set(keys(document)):
            forget(document, path)


def _is_replaced(
    document: dict[str, Any], changes: Mapping[str, Any], model: str, usual: str
) -> bool:
    table, new = look(document, model.rpartition(".")[0]), changes.get(model)
    return isinstance(table, dict) and new is not None and new != table.get("model", usual)
