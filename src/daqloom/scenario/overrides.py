"""Keys set from outside the file: `event.size=2 MB`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from daqloom.scenario.dumps import shipped_fabrics
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.explain import known_keys, knows, named_as, nearest
from daqloom.scenario.infiniband_switches import USUAL, filled_in
from daqloom.scenario.inputs import is_scheme
from daqloom.scenario.switches import COMMON_KEYS, Switches

FILE_KEYS = frozenset(
    {
        "event.size_histogram",
        "event.trace",
        "event.lhc.filling",
        "fabric.dumps",
        "nodes.latency_file",
        "measure.certificates",
        "measure.source_files",
        "measure.sink_files",
    }
)
"""Keys that name a file or a folder."""

Overrides = Iterable[str] | Mapping[str, Any]


def option_of(overrides: Overrides) -> str:
    """How a sentence about one of the keys begins: only texts are typed after --set."""
    return "" if isinstance(overrides, Mapping) else "--set "


def parse(overrides: Overrides, system: type[BaseModel]) -> dict[str, Any]:
    """Dotted path → value; raises ScenarioError for a path that is not known."""
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
            raise ScenarioError(
                f'{option}{path}: "{path}" is a table; set one of its keys, such as "{inside[0]}"'
            )
        shown = path[:80]
        raise ScenarioError(f'{option}{shown}: unknown key "{shown}"{nearest(path, system)}')
    return {path: _from_here(path, value) for path, value in overrides.items()}


def _from_here(path: str, value: Any) -> Any:
    """A file named in an override is meant from the working folder, not from the scenario's."""
    if path not in FILE_KEYS or not isinstance(value, str) or not value:
        return value
    return value if is_scheme(value) or value in shipped_fabrics() else os.path.abspath(value)


def _split(text: str) -> tuple[str, Any]:
    path, equals, value = text.partition("=")
    if not equals:
        raise ScenarioError(
            f'--set {text[:80]}: expected dotted.path=value, such as "event.size=2 MB"'
        )
    value = value.strip()
    try:
        parsed = tomllib.loads(f"value = {value}")
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        parsed = {}
    # More than the one key means that the text smuggled in a line of its own.
    return path.strip(), parsed["value"] if parsed.keys() == {"value"} else value


def merge(document: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Put `changes` (dotted path → value) into a scenario's `document`."""
    _forget_replaced_models(document, changes)
    for path, value in changes.items():
        _set(document, path, value)


def _forget_replaced_models(document: dict[str, Any], changes: Mapping[str, Any]) -> None:
    """Another switch starts from its own numbers, not from those of the one it replaces."""
    for name in Switches.model_fields:
        path = ("switch", name)
        if _is_replaced(document, changes, path, "model", "infinite"):
            table = document["switch"][name]
            document["switch"][name] = {key: table[key] for key in table.keys() & COMMON_KEYS}
    if _is_replaced(document, changes, ("fabric",), "switch", USUAL):
        for key in filled_in(document["fabric"]).keys() & document["fabric"].keys():
            del document["fabric"][key]


def _is_replaced(
    document: dict[str, Any],
    changes: Mapping[str, Any],
    path: tuple[str, ...],
    key: str,
    usual: str,
) -> bool:
    table, new = _table(document, *path), changes.get(".".join((*path, key)))
    return bool(table) and new is not None and new != (table or {}).get(key, usual)


def _table(document: dict[str, Any], *path: str) -> dict[str, Any] | None:
    table: Any = document
    for name in path:
        table = table.get(name) if isinstance(table, dict) else None
    return table if isinstance(table, dict) else None


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    *tables, key = path.split(".")
    for name in tables:
        inner = document.setdefault(name, {})
        if not isinstance(inner, dict):
            return  # validation will say that this is no table
        document = inner
    document[key] = value
