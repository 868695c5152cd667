"""Quantities of a system that is given as a scenario and the keys changed in it."""

import functools
from collections.abc import Mapping
from typing import Any

from daqloom.scenario.models import Scenario
from daqloom.scenario.quantities import Dimension
from daqloom.study.axis import Kind, dimension_of_key


def value(base: Scenario, changes: Mapping[str, Any], key: str) -> Any:
    """What `key` of `base` is with `changes`, as it is given; builds no scenario."""
    if key in changes:
        return changes[key]
    found: Any = base
    for part in key.split("."):
        found = getattr(found, part)
    return found


def number(base: Scenario, changes: Mapping[str, Any], key: str) -> float:
    """The same as a number in SI units."""
    given = value(base, changes, key)
    return _parsed(type(base), key, given) if isinstance(given, str) else float(given)


def text(base: Scenario, key: str, value: float) -> str:
    """The inverse: `value` as a scenario writes it."""
    return _dimension(type(base), key).format(value)


@functools.lru_cache(maxsize=100_000)
def _parsed(kind: Kind, key: str, value: str) -> float:
    return _dimension(kind, key).parse(value)


def _dimension(kind: Kind, key: str) -> Dimension:
    dimension = dimension_of_key(kind, key)
    assert dimension is not None
    return dimension
