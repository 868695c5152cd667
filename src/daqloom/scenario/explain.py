"""What is wrong with a scenario, in one sentence: key, value, what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterator, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from daqloom.scenario.models import Scenario
from daqloom.scenario.quantities import Dimension, dimension_of


def sentence(
    error: ValidationError,
    source: str,
    overridden: Container[str],
    system: type[BaseModel] = Scenario,
) -> str:
    """The first thing that `error` says: where (`source`, or --set), key, value, what to do."""
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    kind, context = first["type"], first.get("ctx", {})
    where = "--set" if path in overridden else f"{source}:"
    if kind == "extra_forbidden":
        return f'{where} unknown key "{path[:80]}"{nearest(path, system)}'
    if kind == "value_error":
        message = str(context["error"])
        if isinstance(first["input"], dict | BaseModel):
            return f"{where} {path}: {message}" if path else f"{where} {message}"
        return f"{where} {path} = {_quote(first['input'])} {message}"
    value, dimension = first["input"], dimension_at(first["loc"], system)
    if dimension and kind in _BOUNDS:  # pydantic compares and reports the bare SI number
        value = dimension.format(value)
        context = {bound: dimension.format(limit) for bound, limit in context.items()}
    expected = _EXPECTED.get(kind, "is not valid: {msg}").format(msg=first["msg"], **context)
    return f"{where} {path} = {_quote(value)} {expected}"


def dimension_at(path: Sequence[str | int], system: type[BaseModel] = Scenario) -> Dimension | None:
    """The kind of quantity at a place in the scenario, if it is one."""
    model: Any = system
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


def nearest(path: str, system: type[BaseModel] = Scenario) -> str:
    """The end of a sentence about an unknown key: the known one that it resembles."""
    known = list(known_keys(system))
    tables = {name.rpartition(".")[0] for name in known} - {""}
    close = difflib.get_close_matches(path[:200], [*known, *sorted(tables)], n=1, cutoff=0.6)
    if not close:
        last = path.rpartition(".")[2]
        close = [name for name in known if name.rpartition(".")[2] == last][:1]
    return f'; did you mean "{close[0]}"?' if close else "; `daqloom show` prints every key"


def known_keys(model: type[BaseModel] = Scenario, prefix: str = "") -> Iterator[str]:
    """Every dotted name that a file or an override may set."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from known_keys(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name
