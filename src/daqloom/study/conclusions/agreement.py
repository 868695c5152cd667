"""Comparison of two methods over all points of a study: one common factor, and points that differ.
In the ATLAS study, laboratory and models differ by a constant factor k ≈ 1.5, except at low load
and near saturation (section 4, figs. 4 to 6)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from daqloom.base import lazy
from daqloom.study import StudyError
from daqloom.study.file.points import (
    ABOVE,
    MethodMeans,
    axes_of,
    load,
    means_by_method,
    step_values,
)
from daqloom.study.statistics.gev import Array

with lazy.imports():
    from scipy import stats

if TYPE_CHECKING:
    from xarray import Dataset

TOLERANCE = 0.1
"""Relative deviation of a point's ratio from the factor up to which two methods agree."""

LOW_LOAD = 0.2
"""Utilisation below which bursts seldom overlap, so that peaks depend on chance."""

SATURATION = 0.9
"""Utilisation above which queues do not empty: their mean length grows as 1 / (1 - load)."""

METHOD_NAMES = {
    "analyse": "the formula",
    "simulate": "the simulation",
    "measure": "the measurement",
}


@dataclass(frozen=True, eq=False)
class Scale:
    """Factor k of b = k · a, fitted through the origin."""

    k: float
    error: float
    """Standard error of k."""
    residuals: Array
    """b - k a, in units of b, shape (n,)."""

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of k by Student's t with n - 1 degrees of freedom."""
        half = float(stats.t.ppf(0.975, self.residuals.size - 1)) * self.error
        return self.k - half, self.k + half


class Load(Enum):
    """Range of the utilisation of a point."""

    LOW = "low load"
    MEDIUM = "medium load"
    SATURATED = "near saturation"


@dataclass(frozen=True)
class Verdict:
    """Comparison of two methods at one point."""

    ratio: float
    """b / a; infinite if only a is zero, 1 if both are zero."""
    parts: bool
    """Whether the ratio deviates from the factor by more than the tolerance; false for two
    zeros."""
    load: Load
    sentence: str


@dataclass(frozen=True, eq=False)
class Agreement:
    """Comparison of two methods over all points: second ≈ k · first."""

    methods: tuple[str, str]
    scale: Scale
    at: list[dict[str, Any]]
    """Axis values of each of the n points for which both methods have a value."""
    first: Array
    second: Array
    """Values of the second method: means over seeds in the variable's unit, shape (n,), like
    `first`."""
    load: Array
    """Offered rate divided by the capacity of the system, shape (n,); NaN if unknown."""
    verdicts: list[Verdict | None]
    """Verdict for each point; None if its load is unknown."""
    tolerance: float
    left_out: Counter[str]

    @property
    def ratio(self) -> Array:
        """second / first, shape (n,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.second / self.first

    @property
    def parting(self) -> int:
        """Number of points whose ratio deviates from k by more than the tolerance."""
        return sum(verdict.parts for verdict in self.verdicts if verdict)


def agreements(
    dataset: Dataset,
    variable: str | None = None,
    *,
    tolerance: float = TOLERANCE,
    below: float = math.inf,
) -> list[Agreement]:
    """Return the comparison of every pair of methods that provide `variable`, in the study's order.

    Left out are saturated points, boundaries that a search did not find, and points with a value
    above `below` (in the variable's unit). In the fit of the factor, all points have equal weight
    in the variable's unit, so large values dominate. A verdict compares the ratio of a point with
    the factor, within `tolerance`, and explains a difference by the load. Raises StudyError if no
    two methods have two points in common.
    """
    pairs = itertools.combinations(means_by_method(dataset, variable), 2)
    compared = (_agreement(dataset, *pair, tolerance, below) for pair in pairs)
    if found := [agreement for agreement in compared if agreement]:
        return found
    raise StudyError(
        "no two methods of this study have two points in common; give both in methods, such as "
        '["analyse", "simulate"]'
    )


def _agreement(
    dataset: Dataset, one: MethodMeans, other: MethodMeans, tolerance: float, below: float
) -> Agreement | None:
    axes, values = axes_of(dataset), (one.values.values, other.values.values)
    both = np.isfinite(values[0]) & np.isfinite(values[1])
    above = both & (np.fmax(*values) > below)
    both &= ~above
    if both.sum() < 2:
        return None
    first, second = (each[both] for each in values)
    offered = load(dataset)
    loads = np.full(first.shape, np.nan) if offered is None else offered.values[both]
    scale = fit_scale(first, second)
    names = METHOD_NAMES[one.method], METHOD_NAMES[other.method]
    return Agreement(
        methods=(one.method, other.method),
        scale=scale,
        at=[step_values(dataset, zip(axes, place, strict=True)) for place in np.argwhere(both)],
        first=first,
        second=second,
        load=loads,
        verdicts=[
            verdict(*point, tolerance, scale.k, names) if np.isfinite(point[2]) else None
            for point in zip(first.tolist(), second.tolist(), loads.tolist(), strict=True)
        ],
        tolerance=tolerance,
        left_out=+((one.left_out | other.left_out) + Counter({ABOVE: int(above.sum())})),
    )


def fit_scale(a: ArrayLike, b: ArrayLike) -> Scale:
    """Fit the k of b = k · a by least squares through the origin; a, b have shape (n,), n ≥ 2. All
    points have equal weight, and the error follows from the scatter (Taylor, An Introduction to
    Error Analysis, chapter 8). `a` is treated as exact. Raises StudyError."""
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    length = float(np.sum(first**2))
    if first.size < 2 or length == 0:
        raise StudyError(
            "scale: one factor and its error require at least two points, not all of them zero;"
            " compare over more points"
        )
    k = float(np.sum(first * second)) / length
    residuals = second - k * first
    variance = float(np.sum(residuals**2)) / (first.size - 1)
    return Scale(k, math.sqrt(variance / length), residuals)


def verdict(
    one: float,
    other: float,
    utilisation: float,
    tolerance: float,
    factor: float,
    names: tuple[str, str],
) -> Verdict:
    """Compare `other` with `factor` · `one` within a relative `tolerance`. The utilisation is load
    over capacity and may exceed 1. `names` are the names of the two methods in the sentence."""
    ratio, load = _ratio(one, other), _load(utilisation)
    parts = abs(other - factor * one) > tolerance * abs(factor * one)
    expected = "" if factor == 1 else f" where {factor:.3g} is usual"
    reason = _cause(load, utilisation) if parts else f"they agree within {_percent(tolerance)}"
    sentence = (
        f"At {_percent(utilisation)} of capacity {names[1]} gives {ratio:.3g} times the value of"
        f" {names[0]}{expected}: {reason}."
    )
    return Verdict(ratio, parts, load, sentence)


def _ratio(one: float, other: float) -> float:
    if one == 0:
        return 1.0 if other == 0 else math.copysign(math.inf, other)
    return other / one


def _load(utilisation: float) -> Load:
    if utilisation < LOW_LOAD:
        return Load.LOW
    return Load.SATURATED if utilisation > SATURATION else Load.MEDIUM


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _cause(load: Load, utilisation: float) -> str:
    if load is Load.LOW:
        return "at low load bursts seldom overlap, and the peak depends on single events"
    if utilisation >= 1:
        return "above capacity queues grow with the length of the run, and values do not converge"
    if load is Load.SATURATED:
        return (
            "near saturation queues grow with the length of the run, and averages do not converge"
        )
    return "the load does not explain it; look for an effect that only one of them models"
