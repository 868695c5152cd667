"""Dependencies between scenario keys: which keys apply, and with which default, for the values of
other keys. A *choice* is a key on which others depend."""

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from daqloom.scenario.document import ABSENT, copy_of, keys, look, put
from daqloom.scenario.quantities import dimension_of
from daqloom.scenario.schema.part import (
    ASSUMED,
    DefaultWith,
    Guess,
    GuessedWhere,
    Part,
    When,
    meanings,
)
from daqloom.scenario.synonyms import INSTEAD, NOT_SIMULATED


@dataclass(frozen=True)
class Key:
    """A key or table of a format of files, with its conditions and its kind of default."""

    path: str
    """Dotted name; `*` is a name that users choose, `[]` an entry of a list of tables."""
    model: type[BaseModel]
    """Table that contains the key."""
    field: FieldInfo
    conditions: tuple[When, ...]
    """Conditions of the key and of all enclosing tables, with full dotted names of keys."""
    default_with: DefaultWith | None
    assumed: Guess | None
    guessed: GuessedWhere | None

    @property
    def name(self) -> str:
        """Name of the key in its table."""
        return self.path.rpartition(".")[2]

    @property
    def meaning(self) -> str:
        """Description of the key, without a point at the end."""
        return meanings(self.model)[self.name]

    @property
    def table(self) -> type[BaseModel] | None:
        """Model of the table, or of the tables that users name; None for a key."""
        return table_of(self.field) or named_tables(self.field)


def table_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a field that is a table; None for keys and for tables that users name."""
    return _model(without_none(field.annotation))


def named_tables(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a field's tables that users name, such as [flows.NAME]; else None."""
    if get_origin(field.annotation) is not dict:
        return None
    return _model(get_args(field.annotation)[1])


def _entry_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of the entries if a key is a list of tables, else None."""
    return _model(get_args(field.annotation)[0]) if get_origin(field.annotation) is tuple else None


def _model(annotation: Any) -> type[BaseModel] | None:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_model else None


def without_none(annotation: Any) -> Any:
    """Return the type `T` of an annotation `T | None`; other annotations are unchanged."""
    either = get_args(annotation)
    if NoneType not in either or len(either) != 2:
        return annotation
    present = next(each for each in either if each is not NoneType)
    return get_args(present)[0] if get_origin(present) is Annotated else present


@functools.cache
def all_keys(model: type[BaseModel]) -> tuple[Key, ...]:
    """Return all keys and tables of a format, each table before its keys."""
    return tuple(_keys(model, "", ()))


@functools.cache
def keys_of(model: type[BaseModel]) -> dict[str, Key]:
    """Return all keys and tables by dotted name, without those in tables that users name and in
    lists of tables."""
    return {key.path: key for key in all_keys(model) if not re.search(r"[*\[]", key.path)}


def _keys(model: type[BaseModel], prefix: str, around: tuple[When, ...]) -> Iterator[Key]:
    for name, field in model.model_fields.items():
        marks = [_from_root(mark, prefix) for mark in field.metadata]
        conditions = around + tuple(mark for mark in marks if isinstance(mark, When))
        default = next((mark for mark in marks if isinstance(mark, DefaultWith)), None)
        assumed = next((mark for mark in marks if isinstance(mark, Guess)), None)
        guessed = next((mark for mark in marks if isinstance(mark, GuessedWhere)), None)
        yield Key(prefix + name, model, field, conditions, default, assumed, guessed)
        for find, below in ((table_of, "."), (named_tables, ".*."), (_entry_of, "[].")):
            if table := find(field):
                yield from _keys(table, f"{prefix}{name}{below}", conditions)


def _from_root(part: Any, prefix: str) -> Any:
    """Return a field's metadata, or a part of it, with relative names (".key") of the table
    `prefix` replaced by full dotted names."""
    if isinstance(part, str):
        return prefix + part[1:] if part.startswith(".") else part
    if isinstance(part, tuple):
        return tuple(_from_root(each, prefix) for each in part)
    if isinstance(part, When | DefaultWith | Guess):
        names = [field.name for field in fields(part)]
        return replace(part, **{name: _from_root(getattr(part, name), prefix) for name in names})
    return part


class Choices:
    """Evaluates for a document which keys apply, and the defaults that depend on other keys."""

    def __init__(self, document: Mapping[str, Any], model: type[BaseModel]) -> None:
        self._document = document
        self._keys = keys_of(model)
        self._failing: dict[When, When | None] = {}
        """Cached results of `_fails`, because many keys share a condition."""

    def value(self, path: str) -> Any:
        """Return the value of a key, or its default."""
        value = look(self._document, path)
        return self.default(self._keys[path]) if value is ABSENT else value

    def default(self, key: Key) -> Any:
        """Return the default of a key, given the document's other keys."""
        if mark := key.default_with:
            choice = self.value(mark.key)
            holds = mark.when is None or self.fails(mark.when) is None
            if holds and isinstance(choice, str) and choice in mark.values:
                return mark.values[choice]
        if key.guessed and key.guessed.holds(self.value):
            return key.guessed.default
        return {} if named_tables(key.field) else key.field.get_default(call_default_factory=False)

    def unmet(self, path: str) -> When | None:
        """Return a condition of a key that does not hold; None if the key applies."""
        found = map(self.fails, self._keys[path].conditions)
        return next((condition for condition in found if condition is not None), None)

    def fails(self, condition: When) -> When | None:
        """Return the condition that does not hold: this one, or one of the key that it tests. None
        if all hold."""
        if condition not in self._failing:
            self._failing[condition] = self._fails(condition)
        return self._failing[condition]

    def _fails(self, condition: When) -> When | None:
        if condition.or_with and is_something(self.value(condition.or_with)):
            return None
        if (above := self.unmet(condition.key)) is not None:
            return None if condition.or_without else above
        value = self.value(condition.key)
        annotation = self._keys[condition.key].field.annotation
        if get_origin(annotation) is Literal and value not in get_args(annotation):
            return None  # the tested key is invalid
        holds = value in condition.among if condition.among else is_something(value)
        return None if holds else condition

    def without_meaning(self) -> Iterator[tuple[str, When]]:
        """Yield the document's keys that do not apply, each with a condition that does not hold."""
        for path in keys(self._document):
            if path in self._keys and (condition := self.unmet(path)) is not None:
                yield path, condition

    def refusal(self, path: str, condition: When) -> str:
        """Return an error sentence on a key that does not apply."""
        if absent := NOT_SIMULATED.get(str(self.value(path)).lower()):
            return f"{path} means nothing here: {absent}; leave it out"
        value = self.value(condition.key)
        shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
        nothing = f"{path} means nothing with {condition.key} = {shown}"
        if key := INSTEAD.get((path, str(value))):
            return f"{nothing}; {key}"
        if condition.key == "network.shape":
            return (
                f"{nothing}; leave it out, or let `daqloom show BASE --set network.shape={value}` "
                "write the keys of this shape, where BASE is the scenario before the change"
            )
        among = " or ".join(f'"{each}"' for each in condition.among)
        return f"{nothing}; leave it out, or set {condition.key}{' to ' if among else ''}{among}"

    def with_defaults(self) -> tuple[dict[str, Any], list[str]]:
        """Return the document with defaults that depend on other keys, and the added names."""
        whole = copy_of(self._document)
        filled = []
        for path, key in self._keys.items():
            has_default = key.default_with or key.guessed
            if not has_default or look(whole, path) is not ABSENT or self.unmet(path):
                continue
            value = self.default(key)
            if value != key.field.default and put(whole, path, value):
                filled.append(path)
        return whole, filled


def is_something(value: object) -> bool:
    """Return whether a value in the notation of a file is neither 0 nor empty."""
    if isinstance(value, str):  # "0 B", "0 b/s"
        return value.strip() not in ("", "0") and not value.strip().startswith(("0 ", "0.0 "))
    return bool(value)


@functools.cache
def deciding(model: type[BaseModel]) -> frozenset[str]:
    """Return the keys whose values determine whether other keys apply, or their defaults."""
    return frozenset(
        mark.key
        for key in keys_of(model).values()
        for mark in (*key.conditions, *((key.default_with,) if key.default_with else ()))
    )


def assumptions(scenario: Part) -> Iterator[tuple[str, str]]:
    """Yield (key, value as text) for each guessed default that `scenario` uses."""
    document = scenario.model_dump(mode="json", exclude_unset=True)
    set_keys, choices = set(keys(document)), Choices(document, type(scenario))
    for path, key in keys_of(type(scenario)).items():
        if named_tables(key.field):
            table, name = _place(scenario, path)
            yield from _of_named(path, getattr(table, name))
        guessed = key.guessed and key.guessed.holds(choices.value)
        mark = ASSUMED if guessed else key.assumed
        if mark is None or {path, mark.unless_given} & set_keys:
            continue
        if choices.unmet(path) is None and not any(map(choices.fails, mark.when)):
            table, name = _place(scenario, path)
            yield path, _text(table, name)


def _of_named(path: str, tables: dict[str, Part]) -> Iterator[tuple[str, str]]:
    for name, table in tables.items():
        for key, field in type(table).model_fields.items():
            is_marked = any(isinstance(mark, Guess) for mark in field.metadata)
            if is_marked and key not in table.model_fields_set:
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
