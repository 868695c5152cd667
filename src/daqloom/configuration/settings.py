"""Engine configurations whose fields are set from scenario keys of equal name."""

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
"""Unit suffixes that engine fields have in addition to the name of the scenario key."""


def settings(kind: type[Config], /, *tables: Part, **values: object) -> Config:
    """Return an engine configuration of the class `kind`. Each field is set from the argument of
    equal name in `values`, else from the key of equal name in one of `tables`; the field
    "rto_min_s" has the key "rto_min". Words are converted to enumeration values, distributions to
    delays. Raises TypeError for a field without value or a value without field."""
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
    """Return the writable fields of an engine configuration: field → scenario key."""
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
        return enumerator(kind, value)
    if hasattr(kind, "set_measured") and not isinstance(value, kind):
        return engine_delay(kind, cast("Distribution", value))
    return value


def engine_delay(kind: type[_engine.Delay], time: Distribution) -> _engine.Delay:
    """Return an instance of the engine's delay class `kind` for a time distribution."""
    delay = kind()
    if (measured := time.measured_times) is not None:
        delay.set_measured(*measured)
        return delay
    delay.kind = enumerator(type(delay.kind), time.kind)
    delay.mean_s = time.mean
    delay.spread_s = time.spread
    return delay


def enumerator(kind: type[Value], word: str) -> Value:
    """Return the value of an enumeration for a word of a scenario, such as "shared-memory"."""
    return kind[word.replace("-", "_")]
