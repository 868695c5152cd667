"""Axes of a study: scenario keys and the values that the study gives them."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from daqloom.scenario import Scenario
from daqloom.scenario.document import ABSENT, look
from daqloom.scenario.file.explain import dimension_at, knows, nearest
from daqloom.scenario.quantities import Dimension
from daqloom.study import StudyError

LARGEST_NUMBER = 1e15
MOST_VALUES = 100_000
LONGEST_LABEL = 60
VARIANT = "variant"
"""Name of the axis with named steps, from the table [variants]."""

Value = str | int | float | bool

_is_key = functools.cache(knows)


@dataclass(frozen=True)
class Axis:
    """Keys that change together, and their values at each step. A cartesian axis has one key, a
    zipped axis several. The axis of variants has named steps, which may set different keys."""

    name: str
    steps: tuple[Mapping[str, Any], ...]
    labels: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.steps)

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that any step sets."""
        return tuple(dict.fromkeys(key for step in self.steps for key in step))

    def overrides(self, step: int) -> dict[str, Any]:
        """Return the keys that a step sets, and their values."""
        return dict(self.steps[step])

    def coordinates(self, key: str, base: Scenario) -> list[Value]:
        """Return the values of one key at all steps: quantities as SI numbers, lists as JSON. Steps
        that do not set the key have the value of `base`."""
        dimension, of_base = dimension_of_key(key), look(base.content(), key)
        if of_base is ABSENT:  # the key does not apply to the base: its default
            of_base = value_of(base, {}, key)
        values = [step.get(key, of_base) for step in self.steps]
        if dimension:
            return [dimension.parse(v) if isinstance(v, str) else v for v in values]
        return [v if isinstance(v, Value) else json.dumps(v, default=str) for v in values]


def cartesian(key: str, values: object) -> Axis:
    """Return an axis of one key with `[…]`, `{from, to, step}` or `{from, to, count, spacing}`."""
    require_key(key)
    steps = _values(key, values)
    if _has_repeats(steps):
        raise StudyError(f"{key} has a value twice; each point is computed only once")
    return Axis(key, tuple({key: value} for value in steps))


def parallel_axis(table: Mapping[str, object]) -> Axis:
    """Return an axis of several keys with parallel lists, named by the first without repeats."""
    for key in table:
        require_key(key)
    columns = {key: _values(key, values) for key, values in table.items()}
    lengths = {key: len(values) for key, values in columns.items()}
    if len(set(lengths.values())) > 1:
        named = ", ".join(f"{key} has {n}" for key, n in lengths.items())
        raise StudyError(f"zip: {named} values; zipped lists must be equally long")
    name = next((key for key, values in columns.items() if not _has_repeats(values)), None)
    if name is None:
        raise StudyError(
            f"zip: each of {', '.join(columns)} names a value twice, so that no key names the "
            "steps; name them with [variants] instead"
        )
    rows = zip(*columns.values(), strict=True)
    return Axis(name, tuple(dict(zip(columns, row, strict=True)) for row in rows))


def variants(table: Mapping[str, Mapping[str, object]]) -> Axis:
    """Return an axis of named steps; each step sets any number of keys."""
    steps = []
    for label, changes in table.items():
        flat = flatten(changes)
        for key in flat:
            require_key(key)
        steps.append({key: _written(key, value) for key, value in flat.items()})
        if not 0 < len(label) <= LONGEST_LABEL:
            raise StudyError(
                f'variants: the name "{label[:80]}" must have 1 to {LONGEST_LABEL} characters'
            )
    return Axis(VARIANT, tuple(steps), tuple(table))


@functools.cache
def dimension_of_key(key: str) -> Dimension | None:
    """Return the dimension of a scenario key, None if its value is no quantity."""
    return dimension_at(key.split("."))


def require_key(key: str, where: str = "") -> None:
    """Raise StudyError with the prefix `where` if scenarios have no such key."""
    if not _is_key(key):
        raise StudyError(f'{where}unknown key "{key[:80]}"{nearest(key)}')


def flatten(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Convert `{"event": {"rate": …}}`, as TOML parses dotted keys, to `{"event.rate": …}`."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        path = prefix + name
        inside = isinstance(value, Mapping) and not _is_key(path)
        flat |= flatten(value, path + ".") if inside and not _is_range(value) else {path: value}
    return flat


def _is_range(value: Mapping[str, Any]) -> bool:
    return "from" in value and "to" in value


def _values(key: str, values: object) -> list[Any]:
    if isinstance(values, Mapping):
        found = _range(key, values)
    elif isinstance(values, Sequence) and not isinstance(values, str):
        found = [_written(key, value) for value in values]
    else:
        raise StudyError(
            f"{key} = {str(values)[:80]!r}: expected a list of values, or a range such as "
            '{ from = "1 kHz", to = "20 kHz", step = "1 kHz" }'
        )
    if not found:
        raise StudyError(f"{key} has no values; give at least one")
    if len(found) > MOST_VALUES:
        raise StudyError(f"{key} has {len(found)} values; at most {MOST_VALUES} are allowed")
    return found


def _has_repeats(values: Sequence[Any]) -> bool:
    """Return whether two values are equal; values may be lists, which have no hash."""
    return len({repr(v) if isinstance(v, list) else v for v in values}) < len(values)


def _written(key: str, value: Any) -> Any:
    """Return a value in the notation of a resolved scenario; only quantities change."""
    if not isinstance(value, Value | list):
        raise StudyError(f"{key}: {str(value)[:80]!r} is neither a single value nor a list")
    dimension = dimension_of_key(key)
    if dimension is None:
        return value
    try:
        return dimension.format(dimension.parse(value))
    except ValueError as error:
        raise StudyError(f'{key} = "{str(value)[:80]}" {error}') from None


def _range(key: str, table: Mapping[str, Any]) -> list[Value]:
    unknown = table.keys() - {"from", "to", "step", "count", "spacing"}
    if unknown or not _is_range(table) or ("step" in table) == ("count" in table):
        raise StudyError(
            f"{key}: a range requires from, to, and step or count (and may have spacing)"
        )
    first, last = (_number(key, table[end]) for end in ("from", "to"))
    if last < first:
        raise StudyError(f"{key}: the range ends below its start")
    if "step" in table:
        numbers = _steps(key, first, last, _number(key, table["step"]))
    else:
        numbers = _spaced_values(key, first, last, table["count"], table.get("spacing", "linear"))
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
            raise StudyError(f"{key}: {str(value)[:80]!r} is not a number")
        if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
            raise StudyError(
                f"{key}: a range has numbers up to {LARGEST_NUMBER:g}, found {value:g}"
            )
        return Decimal(repr(value))
    try:
        return Decimal(repr(dimension.parse(value)))
    except ValueError as error:
        raise StudyError(f'{key}: "{str(value)[:80]}" {error}') from None


def _steps(key: str, first: Decimal, last: Decimal, step: Decimal) -> list[Decimal]:
    if step <= 0:
        raise StudyError(f"{key}: the step of a range must be more than 0")
    count = int((last - first) / step) + 1
    if count > MOST_VALUES:
        raise StudyError(f"{key} has {count} values; at most {MOST_VALUES} are allowed")
    return [first + step * i for i in range(count)]


def _spaced_values(
    key: str, first: Decimal, last: Decimal, count: Any, spacing: Any
) -> list[Decimal]:
    if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_VALUES:
        raise StudyError(f"{key}: count is {count!r}; expected 2 to {MOST_VALUES}")
    if spacing not in ("linear", "log") or (spacing == "log" and first <= 0):
        raise StudyError(f'{key}: spacing is "linear", or "log" for a range above 0')
    if spacing == "linear":
        return [first + (last - first) * i / (count - 1) for i in range(count)]
    ratio = float(last / first)
    inner = [first * Decimal(repr(ratio ** (i / (count - 1)))) for i in range(1, count - 1)]
    return [first, *inner, last]


def value_of(base: Scenario, changes: Mapping[str, Any], key: str) -> Any:
    """Return the value of `key` in `base` with `changes`, without building a scenario."""
    if key in changes:
        return changes[key]
    found: Any = base
    for part in key.split("."):
        found = getattr(found, part)
    return found


def number(base: Scenario, changes: Mapping[str, Any], key: str) -> float:
    """Return the value of `key` in `base` with `changes` as a number in SI units."""
    value = value_of(base, changes, key)
    return _parse(key, value) if isinstance(value, str) else float(value)


def text(key: str, value: float) -> str:
    """Return the SI number `value` of `key` in the notation of a scenario file."""
    return _quantity(key).format(value)


@functools.lru_cache(maxsize=100_000)
def _parse(key: str, value: str) -> float:
    return _quantity(key).parse(value)


def _quantity(key: str) -> Dimension:
    dimension = dimension_of_key(key)
    assert dimension is not None
    return dimension
