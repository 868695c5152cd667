"""From a name or a file, and overrides, to a scenario; every mistake becomes one sentence."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.inputs import is_scheme, read_text
from daqloom.scenario.models import Scenario
from daqloom.scenario.quantities import Dimension, dimension_of
from daqloom.scenario.switches import COMMON_KEYS, Switches

LARGEST_SCENARIO_BYTES = 1 << 20
FILE_KEYS = frozenset({"event.size_histogram", "event.trace", "event.lhc.filling"})

Overrides = Iterable[str] | Mapping[str, Any]


def load(scenario: str | PathLike[str], overrides: Overrides = ()) -> Scenario:
    """Read a scenario by name or by path; raises ScenarioError."""
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
    return _build(document, overrides, source=source, folder=path.parent.absolute())


def override(scenario: Scenario, overrides: Overrides) -> Scenario:
    """`scenario` with some keys changed; raises ScenarioError."""
    document = scenario.model_dump(mode="json", exclude_unset=True)
    return _build(document, overrides, source=scenario.name, folder=Path.cwd())


def find(scenario: str | PathLike[str]) -> Path:
    """The file of a scenario given by name or path; raises ScenarioError if there is none."""
    text = str(scenario)
    path = Path(text)
    if "/" in text or text.endswith(".toml") or not isinstance(scenario, str):
        return path
    shipped = presets()
    if text in shipped:
        return shipped[text]
    nearest = difflib.get_close_matches(text, shipped, n=1)
    hint = f'did you mean "{nearest[0]}"' if nearest else "known are " + ", ".join(shipped)
    raise ScenarioError(
        f'there is no scenario "{text[:80]}"; {hint}? (a file is a path that ends in .toml)'
    )


def presets() -> dict[str, Path]:
    """The scenarios that come with daqloom, by name."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "scenarios"
    # A source tree keeps them at its root; the build copies them into the package.
    folder = installed if installed.is_dir() else package.parents[1] / "scenarios"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def known_keys(model: type[BaseModel] = Scenario, prefix: str = "") -> Iterator[str]:
    """Every dotted name that a file or an override may set."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from known_keys(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def _build(
    document: dict[str, Any], overrides: Overrides, *, source: str, folder: Path
) -> Scenario:
    changes = _parse(overrides)
    try:
        _forget_replaced_models(document, changes)
        for path, value in changes.items():
            _set(document, path, value)
        return Scenario.model_validate(document, context={"folder": folder})
    except ValidationError as error:
        raise ScenarioError(_sentence(error, source, changes)) from None
    except RecursionError:
        raise ScenarioError(f"{source}: values are nested too deeply") from None


def _parse(overrides: Overrides) -> dict[str, Any]:
    """Dotted path → value, every path known."""
    if isinstance(overrides, str):
        overrides = [overrides]
    if not isinstance(overrides, Mapping):
        overrides = dict(_split(text) for text in overrides)
    known = list(known_keys())
    for path in overrides:
        if path in known:
            continue
        inside = [name for name in known if name.startswith(path + ".")]
        if inside:
            raise ScenarioError(
                f'--set {path}: "{path}" is a table; set one of its keys, such as "{inside[0]}"'
            )
        raise ScenarioError(f'--set {path[:80]}: unknown key "{path[:80]}"{_nearest(path)}')
    return {path: _from_here(path, value) for path, value in overrides.items()}


def _from_here(path: str, value: Any) -> Any:
    """A file named in an override is meant from the working folder, not from the scenario's."""
    if path in FILE_KEYS and isinstance(value, str) and value and not is_scheme(value):
        return os.path.abspath(value)
    return value


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


def _forget_replaced_models(document: dict[str, Any], changes: dict[str, Any]) -> None:
    """Another switch model starts from its own numbers, not from those of the one it replaces."""
    for name in Switches.model_fields:
        table = _table(document, "switch", name)
        new = changes.get(f"switch.{name}.model")
        if table and new is not None and new != table.get("model", "infinite"):
            for key in table.keys() - COMMON_KEYS:
                del table[key]


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


def _sentence(error: ValidationError, source: str, changes: dict[str, Any]) -> str:
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    kind, context = first["type"], first.get("ctx", {})
    where = "--set" if path in changes else f"{source}:"
    if kind == "extra_forbidden":
        return f'{where} unknown key "{path[:80]}"{_nearest(path)}'
    if kind == "value_error":
        message = str(context["error"])
        if isinstance(first["input"], dict | BaseModel):
            return f"{where} {path}: {message}" if path else f"{where} {message}"
        return f"{where} {path} = {_quote(first['input'])} {message}"
    value, dimension = first["input"], _dimension(first["loc"])
    if dimension and kind in _BOUNDS:  # pydantic compares and reports the bare SI number
        value = dimension.format(value)
        context = {bound: dimension.format(limit) for bound, limit in context.items()}
    expected = _EXPECTED.get(kind, "is not valid: {msg}").format(msg=first["msg"], **context)
    return f"{where} {path} = {_quote(value)} {expected}"


def _dimension(path: tuple[str | int, ...]) -> Dimension | None:
    """The kind of quantity at a place in the scenario, if it is one."""
    model: Any = Scenario
    for part in path[:-1]:
        field = model.model_fields.get(part)
        model = field.annotation if field else None
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            return None
    return dimension_of(model.model_fields[str(path[-1])]) if path else None


_BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")
_EXPECTED = {
    "greater_than": "is too small; it must be more than {gt}",
    "greater_than_equal": "is too small; it must be at least {ge}",
    "less_than": "is too large; it must be less than {lt}",
    "less_than_equal": "is too large; it must be at most {le}",
    "literal_error": "is not known; expected {expected}",
    "int_type": "is no whole number; write it without a point, a unit or quotes",
    "float_type": "is no number; write it without a unit or quotes",
    "bool_type": "is neither true nor false",
    "string_type": "is no text; put it in quotes",
    "model_type": "is no table; give its keys one by one",
    "tuple_type": "is no list; write it in square brackets",
    "string_too_long": "is too long; at most {max_length} characters",
    "string_too_short": "is too short",
    "string_pattern_mismatch": "may hold only letters, digits, dots, dashes and underscores",
    "too_long": "has too many entries; at most {max_length}",
    "missing": "is missing",
    "finite_number": "is not finite",
}


def _quote(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _nearest(path: str) -> str:
    known = list(known_keys())
    tables = {name.rpartition(".")[0] for name in known} - {""}
    nearest = difflib.get_close_matches(path[:200], [*known, *sorted(tables)], n=1, cutoff=0.6)
    if not nearest:
        last = path.rpartition(".")[2]
        nearest = [name for name in known if name.rpartition(".")[2] == last][:1]
    return f'; did you mean "{nearest[0]}"?' if nearest else "; `daqloom show` prints every key"


def _lower_first(error: Exception) -> str:
    text = str(error)
    return text[:1].lower() + text[1:]
