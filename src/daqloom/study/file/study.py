"""Study: a validated study file, with its points and their scenarios."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from daqloom.deployment.scenarios import override
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import Parts
from daqloom.study.file import kinds
from daqloom.study.file.axis import Axis
from daqloom.study.file.cell import SEEDED
from daqloom.study.file.common_keys import CommonKeys
from daqloom.study.file.condition import Condition
from daqloom.study.file.hasher import ScenarioHasher
from daqloom.study.file.saturation import Saturation
from daqloom.study.file.tables import Equilibrium, Search

CHOICES = {"building.protocol", "transport.kind", "network.technology", "network.shape"}
"""Scenario keys that determine the parts of a system, by which metrics are declared."""


@dataclass(frozen=True)
class Study:
    """A validated study: all keys are known and all values parsed."""

    name: str
    title: str
    description: str
    figure: str
    base: Scenario
    """The scenario with the keys of [set] that are valid without the axes."""
    methods: tuple[str, ...]
    axes: tuple[Axis, ...]
    search: Search | None
    equilibrium: Equilibrium | None
    seeds: tuple[int, ...]
    common: CommonKeys
    """Keys of [set] that apply at only some points."""
    show: tuple[str, ...] = ()
    bars: str = "deviation"
    seed_sets: tuple[str, ...] = ()
    """Keys that are set to each seed, in addition to run.seed."""
    notes: tuple[str, ...] = ()
    """Sentences on keys of [set] that are left out at some points."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the number of steps of each axis."""
        return tuple(len(axis) for axis in self.axes)

    @property
    def points(self) -> int:
        """Return the number of combinations of the axes."""
        return math.prod(self.shape)

    def indices(self) -> Iterator[tuple[int, ...]]:
        """Return all combinations of steps; the last axis changes fastest."""
        return itertools.product(*(range(len(axis)) for axis in self.axes))

    def is_seeded(self, method: str) -> bool:
        """Return whether a method has an answer for each seed, or one answer for all seeds."""
        return method in SEEDED or bool(self.seed_sets)

    def steps(self, index: tuple[int, ...]) -> dict[str, Any]:
        """Return the keys that the axes set at a point, and their values."""
        changes: dict[str, Any] = {}
        for axis, step in zip(self.axes, index, strict=True):
            changes |= axis.overrides(step)
        return changes

    def overrides(self, index: tuple[int, ...]) -> dict[str, Any]:
        """Return all keys that a point sets in `base`, also those of [set], and their values."""
        changes = self.steps(index)
        return self.common.additions(changes) | changes

    def scenario(self, index: tuple[int, ...]) -> Scenario:
        """Return the system at a point. Raises ScenarioError."""
        return override(self.base, self.overrides(index))

    @cached_property
    def hasher(self) -> ScenarioHasher:
        """Object that computes the scenario hashes of points."""
        return ScenarioHasher(self.base)

    @cached_property
    def saturation(self) -> Saturation | None:
        """Finds saturated points, whose offered rate exceeds the capacity; None on a fabric."""
        return kinds.saturation(self.base)

    @cached_property
    def condition(self) -> Condition:
        """Condition of the search, which all methods of the search can evaluate."""
        assert self.search is not None
        where, methods = self.search.where, self.search.methods
        first, *_ = [Condition.parse(where, method, self.parts) for method in methods]
        return first

    @property
    def parts(self) -> Parts:
        """Parts that the study's systems may have, for checks of metric names."""
        return ~Parts.NONE if CHOICES & set(self.keys) else self.base.parts

    @property
    def keys(self) -> list[str]:
        """Return the keys that axes and the search set."""
        keys = [key for axis in self.axes for key in axis.keys]
        return [*keys, self.search.key] if self.search else keys

    def assumptions(self) -> dict[str, str]:
        """Return `Scenario.assumptions` at the first point, without varied keys."""
        own = self.keys
        first = self.scenario((0,) * len(self.axes))
        return {key: value for key, value in first.assumptions().items() if key not in own}
