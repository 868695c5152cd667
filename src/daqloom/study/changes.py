"""Quantities of a system that is given as a scenario and the keys changed in it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from daqloom.scenario import Scenario
from daqloom.scenario.quantities import Dimension
from daqloom.study.axis import dimension_of_key


def number(base: Scenario, changes: Mapping[str, Any], key: str) -> float:
    """The number `key` of `base` with `changes`, in SI units; builds no scenario."""
    if key in changes:
        value = changes[key]
        return _parsed(key, value) if isinstance(value, str) else float(value)
    value = base
    for part in key.split("."):
        value = getattr(value, part)
    return float(value)


def text(key: str, value: float) -> str:
    """The inverse: `value` as a scenario writes it."""
    return _dimension(key).format(value)


@functools.lru_cache(maxsize=100_000)
def _parsed(key: str, value: str) -> float:
    return _dimension(key).parse(value)


def _dimension(key: str) -> Dimension:
    dimension = dimension_of_key(key)
    assert dimension is not None
    return dimension
