"""The assumptions of a scenario: numbers of its system that the file does not give."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from daqloom.scenario.choices import Choices, keys_of, named_tables
from daqloom.scenario.document import given
from daqloom.scenario.part import Assumed, Part
from daqloom.scenario.quantities import dimension_of


def assumptions(scenario: Part) -> Iterator[tuple[str, str]]:
    """Return key and value, as text, of each marked default of `scenario` that is used."""
    document = scenario.model_dump(mode="json", exclude_unset=True)
    told, choices = set(given(document)), Choices(document, type(scenario))
    for path, key in keys_of(type(scenario)).items():
        if named_tables(key.field):
            yield from _of_named(path, getattr(scenario, path))
        if (mark := key.assumed) is None or {path, mark.unless_given} & told:
            continue
        if choices.unmet(path) is None and not any(map(choices.fails, mark.when)):
            table, name = _place(scenario, path)
            yield path, _text(table, name)


def _of_named(path: str, tables: dict[str, Part]) -> Iterator[tuple[str, str]]:
    for name, table in tables.items():
        for key, field in type(table).model_fields.items():
            if any(isinstance(mark, Assumed) for mark in field.metadata) and (
                key not in table.model_fields_set
            ):
                yield f"{path}.{name}.{key}", _text(table, key)


def _place(scenario: Part, path: str) -> tuple[BaseModel, str]:
    """Return the table of a key, and the key's name in it."""
    *tables, name = path.split(".")
    table: Any = scenario
    for each in tables:
        table = getattr(table, each)
    return table, name


def _text(table: BaseModel, key: str) -> str:
    value = getattr(table, key)
    dimension = dimension_of(type(table).model_fields[key])
    if dimension:
        return dimension.format(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
