"""The keys of a study's table [set], without those that do not apply at a point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from daqloom.deployment.scenarios import load
from daqloom.scenario import ScenarioError
from daqloom.scenario.file.overrides import meaningless
from daqloom.scenario.schema.choices import deciding, is_something, keys_of
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.switches import LEVELS
from daqloom.study import StudyError
from daqloom.study.file.axis import VARIANT, Axis, dimension_of_key

DECIDING = {
    *deciding(Scenario),
    *(mark.or_with for key in keys_of(Scenario).values() for mark in key.conditions),
    *(f"network.switch.{level}.model" for level in LEVELS),
} - {""}
"""Keys and tables whose values determine whether other keys apply."""


@dataclass(frozen=True)
class CommonKeys:
    """Keys of [set] that each point sets, because they do not apply at every point."""

    base: Scenario
    values: Mapping[str, Any]
    axes: Sequence[Axis]

    @cached_property
    def _left_out(self) -> dict[tuple[object, ...], Mapping[str, str]]:
        return {}

    def left_out(self, changes: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the keys of [set] that do not apply at a point with `changes`, each with a
        sentence on the reason. The result is cached for each combination of determining keys."""
        label = tuple((key, choice(key, changes[key])) for key in changes if _decides(key))
        if label not in self._left_out:
            found = meaningless(self.base, {**self.values, **changes})
            self._left_out[label] = {key: found[key] for key in self.values if key in found}
        return self._left_out[label]

    def additions(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys that a point sets in addition to `changes`, the keys of the axes."""
        if not self.values:
            return {}
        left_out = self.left_out(changes)
        return {key: value for key, value in self.values.items() if key not in left_out}

    def notes(self) -> Iterator[str]:
        """Yield a sentence on each key that is left out at some points. Raises StudyError for a key
        that applies at no point."""
        if not self.values:
            return
        combinations = [self.left_out(changes) for changes in _combinations(self.axes)]
        for key in self.values:
            reasons = [found[key] for found in combinations if key in found]
            if len(reasons) == len(combinations):
                raise StudyError(f"[set] {reasons[0]}")
            if reasons:
                yield f"[set] {key} is left out at some points: {reasons[0].partition(';')[0]}"


def load_common(scenario: str, values: Mapping[str, Any], axes: Sequence[Axis]) -> CommonKeys:
    """Load a scenario with all keys of [set]. If that is no valid system, load it with as many of
    the keys as are valid, possibly with the first values of axes. Raises ScenarioError."""
    try:
        base = load(scenario, values)
        decides = any(_decides(key) for axis in axes for key in axis.keys)
        return CommonKeys(base, values if decides else {}, axes)
    except ScenarioError as error:
        first = error
    try:
        bare = load(scenario)
    except ScenarioError:
        raise first from None
    for changes in _candidates(values, axes):
        try:
            inapt = meaningless(bare, changes)
            base = load(scenario, {key: changes[key] for key in changes if key not in inapt})
            return CommonKeys(base, values, axes)
        except ScenarioError:
            continue
    raise first


def _candidates(values: Mapping[str, Any], axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """Yield [set]; [set] with the first step of one axis or of all axes; then [set] without one of
    its keys. Variants are not used, because their steps may set different keys."""
    steps = [axis.overrides(0) for axis in axes if axis.name != VARIANT]
    yield dict(values)
    yield from ({**values, **step} for step in steps)
    yield dict(values) | {key: value for step in steps for key, value in step.items()}
    yield from ({key: value for key, value in values.items() if key != one} for one in values)


def _combinations(axes: Sequence[Axis]) -> Iterator[dict[str, Any]]:
    """Yield a combination of axis steps for each combination of values in `DECIDING` keys."""
    distinct = []
    for axis in axes:
        steps = [{k: v for k, v in step.items() if _decides(k)} for step in axis.steps]
        by_choice = {tuple((k, choice(k, v)) for k, v in step.items()): step for step in steps}
        distinct.append(list(by_choice.values()))
    for combination in itertools.product(*distinct):
        yield {key: value for step in combination for key, value in step.items()}


@cache
def _decides(key: str) -> bool:
    """Return whether other keys may not apply, depending on the value of this key."""
    return any(f"{key}.".startswith(f"{each}.") for each in DECIDING)


def choice(key: str, value: object) -> object:
    """Return the part of a value that conditions test: a word, or whether a number is nonzero."""
    is_word = isinstance(value, str | bool) and dimension_of_key(key) is None
    return value if is_word else is_something(value)
