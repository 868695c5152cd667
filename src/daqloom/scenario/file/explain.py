"""Sentences on what is wrong with a scenario: key, value, what was expected."""

import functools
import re
from collections.abc import Collection, Iterator, Sequence

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from daqloom.base.words import closest
from daqloom.scenario import synonyms
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.file.show import toml_value
from daqloom.scenario.quantities import Dimension, dimension_of
from daqloom.scenario.schema.choices import all_keys, named_tables, table_of
from daqloom.scenario.schema.models import Scenario


def refusal(
    error: ValidationError,
    source: str,
    overridden: Collection[str],
    option: str = "",
    system: type[BaseModel] = Scenario,
) -> ScenarioError:
    """Return an error with a sentence on the first mistake, and a note on each other mistake. A
    sentence names place, key, value and remedy. The place is `source`, or `option` for an
    overridden key."""
    mistakes = mistakes_of(error)
    of_keys: dict[str, list[str]] = {}  # a key with alternative types has a mistake for each
    for each in mistakes:
        key = _key_at(each["loc"], system)
        if _is_across_keys(each):  # a table may have several mistakes
            key += f": {each['ctx']['error']}"
        if key not in of_keys:
            of_keys[key] = [
                _sentence(one, source, overridden, option, system) for one in _apart(each)
            ]
    first, *others = (text for texts in of_keys.values() for text in texts)
    return ScenarioError(first, *others)


def mistakes_of(error: ValidationError) -> list[ErrorDetails]:
    """Return the mistakes of an error. Missing keys are left out for tables with an unknown key,
    which may be the missing key misspelt."""
    mistakes = error.errors(include_url=False)
    tables = {each["loc"][:-1] for each in mistakes if each["type"] == "extra_forbidden"}
    return [e for e in mistakes if e["type"] != "missing" or e["loc"][:-1] not in tables]


def _is_across_keys(mistake: ErrorDetails) -> bool:
    """Return whether a mistake concerns several keys of a table; its text begins with a key."""
    return mistake["type"] == "value_error" and isinstance(mistake["input"], dict | BaseModel)


def _key_at(place: Sequence[str | int], system: type[BaseModel]) -> str:
    """Return the dotted name of the key that contains the location of a mistake."""
    names = [str(part) for part in place]
    paths = (".".join(names[:length]) for length in range(1, len(names)))
    return next((path for path in paths if knows(path, system)), ".".join(names))


def _apart(mistake: ErrorDetails) -> Iterator[ErrorDetails]:
    """Yield a mistake, and a further mistake for each note of its error."""
    yield mistake
    for note in getattr(mistake.get("ctx", {}).get("error"), "__notes__", ()):
        yield {**mistake, "ctx": {"error": note}}


def _sentence(
    first: ErrorDetails,
    source: str,
    overridden: Collection[str],
    option: str,
    system: type[BaseModel],
) -> str:
    path = ".".join(str(part) for part in first["loc"])
    kind, context = first["type"], first.get("ctx", {})
    is_overridden = any(path == key or path.startswith(f"{key}.") for key in overridden)
    if _is_across_keys(first):
        named = str(context["error"]).split(" ", 1)[0]
        is_overridden |= f"{path}.{named}".lstrip(".") in overridden
    where = option if is_overridden else f"{source}: " if source else ""
    if kind == "missing":
        inside, _, key = path.rpartition(".")
        entries = f"has too few entries; expected at least {int(key) + 1}" if key.isdigit() else ""
        return f"{where}{inside} = {_quote(first['input'])} {entries or f'lacks the key {key}'}"
    if kind == "extra_forbidden":
        return f'{where}unknown key "{path[:80]}"{nearest(path, system)}'
    if kind == "value_error":
        message = str(context["error"])
        if isinstance(first["input"], dict | BaseModel):
            return f"{where}{path}: {message}" if path else f"{where}{message}"
        return f"{where}{path} = {_quote(first['input'])} {message}"
    value, dimension = first["input"], dimension_at(first["loc"], system)
    if dimension and kind in _BOUNDS:  # pydantic reports bare SI numbers
        value = value if isinstance(value, str) else dimension.format(value)
        context = {bound: dimension.format(limit) for bound, limit in context.items()}
    expected = _EXPECTED.get(kind, "is not valid: {msg}").format(msg=first["msg"], **context)
    hint = (
        suggestion(value, re.findall("'([^']*)'", str(context["expected"])))
        if kind == "literal_error"
        else ""
    )
    return f"{where}{path} = {_quote(value)} {expected}{hint}"


def suggestion(value: object, known: Collection[str]) -> str:
    """Return the end of a sentence on an unknown value: a suggestion of a known value."""
    if not isinstance(value, str):
        return ""
    if absent := synonyms.NOT_SIMULATED.get(value.lower()):
        return f"; {absent}"
    other_name = next((v for v in synonyms.VALUES.get(value.lower(), ()) if v in known), "")
    # A known value inside the given one: "linear-shift", "tcp cubic".
    inside = max((v for v in known if len(v) > 3 and v in value.lower()), key=len, default="")
    close = other_name or closest(value.lower(), known) or inside
    return f'; did you mean "{close}"?' if close else ""


def dimension_at(path: Sequence[str | int], system: type[BaseModel] = Scenario) -> Dimension | None:
    """Return the dimension (unit) of a key's value; None if the value is no quantity."""
    field = system.model_fields.get(str(path[0])) if path else None
    if field is None or len(path) == 1:
        return dimension_of(field) if field else None
    if named := named_tables(field):
        return dimension_at(path[2:], named)
    if inner := table_of(field):
        return dimension_at(path[1:], inner)
    return None


_BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal")
_EXPECTED = {
    "greater_than": "is too small; it must be more than {gt}",
    "greater_than_equal": "is too small; it must be at least {ge}",
    "less_than": "is too large; it must be less than {lt}",
    "less_than_equal": "is too large; it must be at most {le}",
    "literal_error": "is not known; expected {expected}",
    "int_type": "is not a whole number; write it without a point, a unit or quotes",
    "float_type": "is not a number; write it without a unit or quotes",
    "bool_type": "is neither true nor false",
    "string_type": "is not text; put it in quotes",
    "model_type": "is not a table; give its keys one by one",
    "tuple_type": "is not a list; write it in square brackets",
    "string_too_long": "is too long; at most {max_length} characters",
    "string_too_short": "is too short",
    "string_pattern_mismatch": "may hold only letters, digits, dots, dashes and underscores",
    "too_long": "has too many entries; at most {max_length}",
    "finite_number": "is not finite",
}


def _quote(value: object) -> str:
    text = f'"{value}"' if isinstance(value, str) else toml_value(value)
    return text if len(text) <= 80 else text[:77] + "..."


def nearest(path: str, system: type[BaseModel] = Scenario) -> str:
    """Return the end of a sentence on an unknown key, which suggests a similar known key."""
    known = [named_as(path, key) for key in known_keys(system) if _may_be(path, key)]
    tables = {name.rpartition(".")[0] for name in known} - {""}
    table, _, last = path.rpartition(".")
    if system is Scenario and (absent := synonyms.NOT_SIMULATED.get(last.lower())):
        return f"; {absent}"
    others = (name if "." in name else f"{table}.{name}" for name in synonyms.KEYS.get(last, ()))
    close = next((name for name in others if knows(name, system)), "")
    close = close or _most_similar(path, known, tables)
    if not close:
        parts = set(path.split("."))
        alike = (name for name in known if name.rpartition(".")[2] == last)
        close = max(alike, key=lambda name: len(parts & set(name.split("."))), default="")
    everything = "; `daqloom show` prints every key" if system is Scenario else ""
    return f'; did you mean "{close}"?' if close else everything


def _most_similar(path: str, known: Sequence[str], tables: Collection[str]) -> str:
    """Return the key or table most similar to a path, "" if there is none. In a known table only
    the last part is compared, because a common table name makes any two keys similar."""
    everything = (*known, *sorted(tables))
    table, _, last = path.rpartition(".")
    if table not in tables:
        whole = next((name for name in everything if name.endswith(f".{path}")), "")
        return whole or closest(path, everything)
    in_table = {name.removeprefix(f"{table}."): name for name in everything}
    names = {name: key for name, key in in_table.items() if name != key and "." not in name}
    return names.get(closest(last, names), "")


def _may_be(path: str, key: str) -> bool:
    """Return whether `path` may mean `key`; a key with a part `*` needs the same first part."""
    return "*" not in key or path.split(".")[0] == key.split(".")[0]


def named_as(path: str, key: str) -> str:
    """Return `key` with its wildcards replaced by the names in `path`."""
    names = path.split(".")
    parts = enumerate(key.split("."))
    return ".".join(names[i] if part == "*" and i < len(names) else part for i, part in parts)


def knows(path: str, system: type[BaseModel] = Scenario) -> bool:
    """Return whether a dotted name is a key that a file or an override may set."""
    plain, by_name = _known_keys(system)
    return path in plain or any(named_as(path, key) == path for key in by_name)


@functools.cache
def _known_keys(model: type[BaseModel]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the plain keys, and the keys with `*` in tables that users name."""
    keys = frozenset(known_keys(model))
    by_name = frozenset(key for key in keys if "*" in key)
    return keys - by_name, by_name


def known_keys(model: type[BaseModel] = Scenario) -> Iterator[str]:
    """Yield all dotted names that a file or an override may set; `*` is a name of the user."""
    return (key.path for key in all_keys(model) if not key.table and "[" not in key.path)
