"""What is wrong with a scenario, in one sentence: key, value, what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterator, Sequence
from typing import get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from daqloom.scenario.models import Scenario
from daqloom.scenario.quantities import Dimension, dimension_of


def sentence(
    error: ValidationError,
    source: str,
    overridden: Container[str],
    option: str = "",
    system: type[BaseModel] = Scenario,
) -> str:
    """The first thing that `error` says: where, key, value, what to do.

    Where: `source`, or `option` for a key in `overridden`.
    """
    first = error.errors(include_url=False)[0]
    path = ".".join(str(part) for part in first["loc"])
    kind, context = first["type"], first.get("ctx", {})
    where = option if path in overridden else f"{source}: "
    if kind == "extra_forbidden":
        return f'{where}unknown key "{path[:80]}"{nearest(path, system)}'
    if kind == "value_error":
        message = str(context["error"])
        if isinstance(first["input"], dict | BaseModel):
            return f"{where}{path}: {message}" if path else f"{where}{message}"
        return f"{where}{path} = {_quote(first['input'])} {message}"
    value, dimension = first["input"], dimension_at(first["loc"], system)
    if dimension and kind in _BOUNDS:  # pydantic compares and reports the bare SI number
        value = dimension.format(value)
        context = {bound: dimension.format(limit) for bound, limit in context.items()}
    expected = _EXPECTED.get(kind, "is not valid: {msg}").format(msg=first["msg"], **context)
    return f"{where}{path} = {_quote(value)} {expected}"


def dimension_at(path: Sequence[str | int], system: type[BaseModel] = Scenario) -> Dimension | None:
    """The kind of quantity at a place in the scenario, if it is one."""
    field = system.model_fields.get(str(path[0])) if path else None
    if field is None or len(path) == 1:
        return dimension_of(field) if field else None
    if named := named_tables(field):
        return dimension_at(path[2:], named)
    inner = field.annotation
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        return dimension_at(path[1:], inner)
    return None


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
    known = [named_as(path, key) for key in known_keys(system)]
    tables = {name.rpartition(".")[0] for name in known} - {""}
    close = difflib.get_close_matches(path[:200], [*known, *sorted(tables)], n=1, cutoff=0.6)
    if not close:
        last = path.rpartition(".")[2]
        close = [name for name in known if name.rpartition(".")[2] == last][:1]
    return f'; did you mean "{close[0]}"?' if close else "; `daqloom show` prints every key"


def named_as(path: str, key: str) -> str:
    """`key` with the names that `path` has where any may stand."""
    given = path.split(".")
    parts = enumerate(key.split("."))
    return ".".join(given[i] if part == "*" and i < len(given) else part for i, part in parts)


def named_tables(field: FieldInfo) -> type[BaseModel] | None:
    """What each of the tables is like that a field holds by name, if it does."""
    if get_origin(field.annotation) is not dict:
        return None
    model = get_args(field.annotation)[1]
    return model if isinstance(model, type) and issubclass(model, BaseModel) else None


def knows(path: str, system: type[BaseModel] = Scenario) -> bool:
    """Whether a file or an override may set the dotted name."""
    return any(named_as(path, key) == path for key in known_keys(system))


def known_keys(model: type[BaseModel] = Scenario, prefix: str = "") -> Iterator[str]:
    """Every dotted name that a file or an override may set; `*` stands for any one name."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from known_keys(field.annotation, f"{prefix}{name}.")
        elif named := named_tables(field):
            yield from known_keys(named, f"{prefix}{name}.*.")
        else:
            yield prefix + name
