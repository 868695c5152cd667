"""A resolved scenario as TOML: all keys that apply, with their values. Reading the TOML gives the
same system."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from daqloom.scenario.quantities import TIME
from daqloom.scenario.schema.models import Scenario


def to_toml(scenario: Scenario) -> str:
    """Return the text of a scenario file; it ends with a newline."""
    return document_text(scenario.document())


def document_text(document: Mapping[str, Any]) -> str:
    """Return a document as TOML; it ends with a newline."""
    return "\n".join(_table(document)).lstrip("\n") + "\n"


def assumed_comment(scenario: Scenario) -> str:
    """Return comment lines for the top of a scenario's text, or "": assumed values, and run
    durations that are derived from other keys."""
    run = scenario.run
    lengths = [key for key in ("duration", "warmup") if key not in run.model_fields_set]
    derived = {f"run.{key}": TIME.format(getattr(run, key)) for key in lengths}
    steps = "events of each builder" if scenario.protocol.has_arrivals else "rounds"
    sections = {
        "Assumed, as the scenario does not give:": scenario.assumptions(),
        f"From the other keys, for enough {steps} to settle queues and to count:": derived,
    }
    lines = [
        line
        for head, values in sections.items()
        if values
        for line in (head, *(f"  {key} = {value}" for key, value in values.items()))
    ]
    return "".join(f"# {line}\n" for line in lines) + "\n" if lines else ""


def _table(table: Mapping[str, Any], path: str = "") -> Iterator[str]:
    keys = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if path and keys:
        yield f"\n[{path}]"
    for key, value in keys.items():
        yield f"{key} = {toml_value(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _table(value, f"{path}.{key}" if path else key)


def toml_value(value: Any) -> str:
    """Return the value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(inner) for inner in value) + "]"
    if isinstance(value, str):
        # TOML's basic strings are like JSON's, but DEL must be escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)
