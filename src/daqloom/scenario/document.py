"""A scenario as nested tables, as a TOML file contains them; keys have dotted names."""

from collections.abc import Iterator, Mapping
from typing import Any

ABSENT = object()
"""Value that `look` returns for a key that the document lacks."""


def look(document: Mapping[str, Any], path: str) -> Any:
    """Return the value of a key, or a table; ABSENT if the document lacks it."""
    found: Any = document
    for name in path.split("."):
        if not isinstance(found, Mapping) or name not in found:
            return ABSENT
        found = found[name]
    return found


def keys(document: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yield the dotted names of the keys, not the tables, of a document."""
    for name, value in document.items():
        if isinstance(value, Mapping):
            yield from keys(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def put(document: dict[str, Any], path: str, value: Any) -> bool:
    """Set a key and create missing tables. Return False if a table's name has a plain value."""
    *tables, name = path.split(".")
    table: Any = document
    for each in tables:
        table = table.setdefault(each, {})
        if not isinstance(table, dict):
            return False
    table[name] = value
    return True


def forget(document: dict[str, Any], path: str) -> None:
    """Remove a key that the document gives."""
    table, _, name = path.rpartition(".")
    del (look(document, table) if table else document)[name]


def copy_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a document: new tables with the same values."""
    inner = {name: copy_of(value) for name, value in document.items() if isinstance(value, Mapping)}
    return {**document, **inner}


def without_empty_tables(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without tables that have no key."""
    tables = [name for name, value in document.items() if isinstance(value, dict)]
    inner = {**document, **{name: without_empty_tables(document[name]) for name in tables}}
    return {name: value for name, value in inner.items() if value != {}}
