"""What a study has to know of the kind of its system: that of racks and that of fabrics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from daqloom.scenario import FabricScenario, Scenario
from daqloom.scenario.system import System
from daqloom.study.fabrics import Fabrics
from daqloom.study.racks import Racks

Of = TypeVar("Of", bound=System, contravariant=True)
Changes = Mapping[str, Any]
"""Dotted key → value, as a study's file gives them."""


class Saturation(Protocol):
    """Which points are offered more than they can carry."""

    def excess_hz(self, changes: Changes) -> float:
        """Offered event rate less what can be carried; above 0 the point is saturated."""

    def bounded(self, changes: Changes) -> dict[str, Any]:
        """`changes`, with a run that is short enough where they are saturated."""


class Traits(Protocol[Of]):
    """Of one kind of systems."""

    versions: Mapping[str, int]
    """Of the models, by method: raised when the same scenario and seed give another result, so that
    cells of before are computed anew."""
    courses: Sequence[str]
    """Metrics of a simulation whose course over time is recorded."""
    costly: Sequence[str]
    """Keys that decide what a run costs."""

    analysis_s: float
    """Time on one core of an analysis, roughly."""
    foreign: Collection[str]
    """Metrics, by the first part of their names, that no result of such a system has."""

    def operating_point(self, base: Of) -> dict[str, float]:
        """What figures mark, by key, in SI units."""

    def saturation(self, base: Of) -> Saturation:
        """Of `base` with changes."""

    def simulation_s(self, base: Of, changes: Changes) -> float:
        """Estimated time on one core of a simulation; builds no scenario."""


_TRAITS: dict[type[System], Traits[Any]] = {Scenario: Racks(), FabricScenario: Fabrics()}


def traits_of(base: System) -> Traits[Any]:
    """Those of the kind that `base` is of."""
    return _TRAITS[type(base)]
