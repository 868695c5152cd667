"""The values that a study gives to a key of the scenario."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from daqloom.scenario.explain import dimension_at, known_keys, nearest
from daqloom.scenario.quantities import Dimension
from daqloom.study.errors import StudyError

MOST_VALUES = 100_000

Value = str | int | float | bool


@dataclass(frozen=True)
class Axis:
    """Keys that change together, and the values they take, one tuple for each step.

    A cartesian axis has one key, a zipped one has several.
    """

    keys: tuple[str, ...]
    steps: tuple[tuple[Value, ...], ...]

    def __len__(self) -> int:
        return len(self.steps)

    def overrides(self, step: int) -> dict[str, Value]:
        """What this step sets."""
        return dict(zip(self.keys, self.steps[step], strict=True))

    def coordinates(self, key: str) -> list[Value]:
        """The values of one key, quantities as SI numbers."""
        place, dimension = self.keys.index(key), dimension_of_key(key)
        values = [step[place] for step in self.steps]
        return [dimension.parse(value) for value in values] if dimension else values


def cartesian(key: str, values: object) -> Axis:
    """An axis of one key from `[…]`, `{from, to, step}` or `{from, to, count, spacing}`."""
    _require_key(key)
    return Axis((key,), tuple((value,) for value in _values(key, values)))


def zipped(table: Mapping[str, object]) -> Axis:
    """An axis of several keys whose lists run side by side."""
    for key in table:
        _require_key(key)
    columns = {key: _values(key, values) for key, values in table.items()}
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        named = ", ".join(f"{key} has {n}" for key, n in lengths.items())
        raise StudyError(f"zip: {named} values; zipped lists must be equally long")
    return Axis(tuple(columns), tuple(zip(*columns.values(), strict=True)))


@functools.cache
def dimension_of_key(key: str) -> Dimension | None:
    """The kind of quantity that a key of the scenario holds, if it is one."""
    return dimension_at(key.split("."))


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"event": {"rate": …}}` as `{"event.rate": …}`: TOML reads a bare dotted key as tables."""
    flat: dict[str, Any] = {}
    known = set(known_keys())
    for name, value in table.items():
        path = prefix + name
        inside = isinstance(value, Mapping) and path not in known
        flat |= flatten(value, path + ".") if inside and not _is_range(value) else {path: value}
    return flat


def _is_range(value: Mapping[str, Any]) -> bool:
    return "from" in value and "to" in value


def _require_key(key: str) -> None:
    if key not in set(known_keys()):
        raise StudyError(f'unknown key "{key[:80]}"{nearest(key)}')


def _values(key: str, values: object) -> list[Value]:
    if isinstance(values, Mapping):
        found = _range(key, values)
    elif isinstance(values, Sequence) and not isinstance(values, str):
        found = [_plain(key, value) for value in values]
    else:
        raise StudyError(
            f"{key} = {values!r}: expected a list of values, or a range such as "
            '{ from = "1 kHz", to = "20 kHz", step = "1 kHz" }'
        )
    if not found:
        raise StudyError(f"{key} has no values; give at least one")
    if len(found) > MOST_VALUES:
        raise StudyError(f"{key} has {len(found)} values; at most {MOST_VALUES} are meant")
    if len(set(found)) < len(found):
        raise StudyError(f"{key} names a value twice; every point is computed once")
    return found


def _plain(key: str, value: object) -> Value:
    if not isinstance(value, str | int | float | bool):
        raise StudyError(f"{key}: {value!r} is no single value")
    dimension = dimension_of_key(key)
    if dimension:
        try:
            return dimension.format(dimension.parse(value))
        except ValueError as error:
            raise StudyError(f'{key} = "{value}" {error}') from None
    return value


def _range(key: str, table: Mapping[str, Any]) -> list[Value]:
    unknown = table.keys() - {"from", "to", "step", "count", "spacing"}
    if unknown or not _is_range(table) or ("step" in table) == ("count" in table):
        raise StudyError(f"{key}: a range has from, to, and step or count (and spacing)")
    first, last = _number(key, table["from"]), _number(key, table["to"])
    if last < first:
        raise StudyError(f"{key}: the range ends below its start")
    if "step" in table:
        numbers = _stepped(key, first, last, _number(key, table["step"]))
    else:
        numbers = _counted(key, first, last, table["count"], table.get("spacing", "linear"))
    dimension = dimension_of_key(key)
    if dimension is None:
        whole = all(number == int(number) for number in numbers)
        return [int(number) if whole else float(number) for number in numbers]
    exact = [round(number) if dimension.whole else float(number) for number in numbers]
    return [dimension.format(dimension.parse(dimension.format(value))) for value in exact]


def _number(key: str, value: object) -> Decimal:
    dimension = dimension_of_key(key)
    if dimension is None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise StudyError(f"{key}: {value!r} is no number")
        return Decimal(repr(value))
    try:
        return Decimal(repr(dimension.parse(value)))
    except ValueError as error:
        raise StudyError(f'{key}: "{value}" {error}') from None


def _stepped(key: str, first: Decimal, last: Decimal, step: Decimal) -> list[Decimal]:
    if step <= 0:
        raise StudyError(f"{key}: the step of a range must be more than 0")
    count = int((last - first) / step) + 1
    if count > MOST_VALUES:
        raise StudyError(f"{key} has {count} values; at most {MOST_VALUES} are meant")
    return [first + step * i for i in range(count)]


def _counted(key: str, first: Decimal, last: Decimal, count: Any, spacing: Any) -> list[Decimal]:
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_VALUES:
        raise StudyError(f"{key}: count is {count!r}; expected 2 to {MOST_VALUES}")
    if spacing not in ("linear", "log") or (spacing == "log" and first <= 0):
        raise StudyError(f'{key}: spacing is "linear", or "log" for a range above 0')
    if spacing == "linear":
        return [first + (last - first) * i / (count - 1) for i in range(count)]
    ratio = float(last / first)
    inner = [first * Decimal(repr(ratio ** (i / (count - 1)))) for i in range(1, count - 1)]
    return [first, *inner, last]
