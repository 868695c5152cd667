"""What a study has to know of the kind of its system: that of racks and that of fabrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from daqloom.scenario import Scenario
from daqloom.study.fabrics import Fabrics
from daqloom.study.racks import Racks

Changes = Mapping[str, Any]
"""Dotted key → value, as a study's file gives them."""


class Saturation(Protocol):
    """Which points are offered more than they can carry."""

    def excess_hz(self, changes: Changes) -> float:
        """Offered event rate less what can be carried; above 0 the point is saturated."""

    def bounded(self, changes: Changes) -> dict[str, Any]:
        """`changes`, with a run that is short enough where they are saturated."""


class Traits(Protocol):
    """What a study has to know of systems on one kind of network."""

    versions: Mapping[str, int]
    """Of the models, by method: raised when the same scenario and seed give another result, so that
    cells of before are computed anew."""
    courses: Sequence[str]
    """Metrics of a simulation whose course over time is recorded."""
    costly: Sequence[str]
    """Keys that decide what a run costs."""

    analysis_s: float
    """Time on one core of an analysis, roughly."""

    def operating_point(self, base: Scenario) -> dict[str, float]:
        """Return the operating point that figures mark: SI numbers by key."""

    def saturation(self, base: Scenario) -> Saturation:
        """Return what tells saturated points of `base` with changes."""

    def simulation_s(self, base: Scenario, changes: Changes) -> float:
        """Estimated time on one core of a simulation; builds no scenario."""


_RACKS: Traits = Racks()
_FABRICS: Traits = Fabrics()


def traits_of(base: Scenario) -> Traits:
    """Return the traits of the network that `base` has."""
    return _RACKS if base.is_rack else _FABRICS
