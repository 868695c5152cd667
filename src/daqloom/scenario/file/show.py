"""A resolved scenario as TOML: all keys that apply, with their values. Reading the TOML gives the
same system."""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from daqloom.scenario.document import keys
from daqloom.scenario.quantities import TIME
from daqloom.scenario.schema.choices import keys_of
from daqloom.scenario.schema.models import Scenario

LENGTHS = ("run.duration", "run.warmup")
"""Keys whose defaults are computed from others."""


def to_toml(scenario: Scenario) -> str:
    """Return the text of a scenario file; it ends with a newline."""
    return document_text(scenario.document())


def document_text(
    document: Mapping[str, Any], notes: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return a document as TOML; it ends with a newline. Keys with a note become comments, in front
    of it."""
    return "\n".join(_table(document, notes)).lstrip("\n") + "\n"


def template(scenario: Scenario) -> str:
    """Return the text of a scenario file to change, after comments on assumed values. Defaults that
    are assumed or depend on other keys are comments: they stay assumed, and follow those keys."""
    given = set(keys(scenario.model_dump(mode="json", exclude_unset=True)))
    notes = {
        key.path: "follows other keys"
        for key in keys_of(Scenario).values()
        if (key.default_with or key.guessed or key.path in LENGTHS) and key.path not in given
    }
    notes |= dict.fromkeys(scenario.assumptions(), "assumed")
    return assumed_comment(scenario) + document_text(scenario.document(), notes)


def assumed_comment(scenario: Scenario) -> str:
    """Return comment lines for the top of a scenario's text, or "": assumed values, and run
    durations that are derived from other keys."""
    run = scenario.run
    lengths = [key.removeprefix("run.") for key in LENGTHS]
    derived = {
        f"run.{key}": TIME.format(getattr(run, key))
        for key in lengths
        if key not in run.model_fields_set
    }
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


def _table(table: Mapping[str, Any], notes: Mapping[str, str], prefix: str = "") -> Iterator[str]:
    values = {key: value for key, value in table.items() if not isinstance(value, dict)}
    if prefix and values:
        yield f"\n[{prefix.removesuffix('.')}]"
    for key, value in values.items():
        line, note = f"{key} = {toml_value(value)}", notes.get(prefix + key)
        yield f"# {line}  # {note}" if note else line
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _table(value, notes, f"{prefix}{key}.")


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
