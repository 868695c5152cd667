"""A resolved scenario as TOML: every key, every default, units; it reads back as the same system.

Switch keys that mean nothing to the switch's model are left out, as in any scenario file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from daqloom.scenario.models import Scenario
from daqloom.scenario.system import System


def to_toml(scenario: System) -> str:
    """The text of a scenario file; ends with a newline."""
    content = scenario.model_dump(mode="json")
    if isinstance(scenario, Scenario):
        for name, table in content["switch"].items():
            used = getattr(scenario.switch, name).applicable_keys
            content["switch"][name] = {key: value for key, value in table.items() if key in used}
    return "\n".join(_table(content)).lstrip("\n") + "\n"


def _table(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    keys = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if path and keys:
        yield f"\n[{path}]"
    for key, value in keys.items():
        yield f"{key} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _table(value, f"{path}.{key}" if path else key)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, str):
        # TOML's basic strings are JSON's, except that they must escape DEL as well.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
