"""Engine configurations, made from the tables of a scenario by the names of their fields."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, TypeVar, cast

from daqloom.scenario.schema.part import Part

if TYPE_CHECKING:
    from daqloom import _engine
    from daqloom.scenario.schema.distribution import Distribution

Config = TypeVar("Config")
Value = TypeVar("Value", bound=Enum)

UNITS = ("_s", "_bps", "_hz", "_bytes")
"""Suffixes that a field of the engine has beyond the name of a key."""


def settings(kind: type[Config], /, *tables: Part, **values: object) -> Config:
    """Return an engine configuration of a kind.

    Each of its fields has the value of that name or, if there is none, that of the key of that name
    in one of the tables; "rto_min_s" is the key "rto_min". A word becomes the value of an
    enumeration that it names, a distribution a delay. Raises TypeError for fields without values,
    and the reverse.
    """
    config = kind()
    fields = fields_of(kind)
    if unknown := values.keys() - fields.keys():
        raise TypeError(f"{kind.__name__} has no field {min(unknown)}")
    for name, key in fields.items():
        value = values[name] if name in values else _of_tables(key, tables)
        if value is _NONE:
            raise TypeError(f"{kind.__name__}.{name} has no value, and no table has the key {key}")
        setattr(config, name, _of_engine(value, type(getattr(config, name))))
    return config


_FIELDS: dict[type[object], dict[str, str]] = {}


def fields_of(kind: type[object]) -> dict[str, str]:
    """Return the fields of a kind of configuration: name → key of a scenario."""
    if kind not in _FIELDS:
        _FIELDS[kind] = {
            name: _without_unit(name)
            for base in reversed(kind.__mro__)
            for name, field in vars(base).items()
            if isinstance(field, property) and field.fset is not None
        }
    return _FIELDS[kind]


def _without_unit(name: str) -> str:
    return next((name.removesuffix(unit) for unit in UNITS if name.endswith(unit)), name)


_NONE = object()


def _of_tables(key: str, tables: tuple[Part, ...]) -> object:
    return next((getattr(table, key) for table in tables if key in type(table).model_fields), _NONE)


def _of_engine(value: object, kind: type) -> object:
    if isinstance(value, str) and issubclass(kind, Enum):
        return named(kind, value)
    if hasattr(kind, "set_measured") and not isinstance(value, kind):
        return engine_delay(kind, cast("Distribution", value))
    return value


def engine_delay(kind: type[_engine.Delay], time: Distribution) -> _engine.Delay:
    """Return the engine's delay, of its class `kind`, with a distribution."""
    delay = kind()
    if (measured := time.measured) is not None:
        delay.set_measured(*measured)
        return delay
    delay.kind = named(type(delay.kind), time.kind)
    delay.mean_s = time.mean
    delay.spread_s = time.spread
    return delay


def named(kind: type[Value], word: str) -> Value:
    """Return the value that a scenario's word names, as `named(BufferModel, "shared-memory")`."""
    return kind[word.replace("-", "_")]
