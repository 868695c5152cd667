"""Two methods over the same points: one factor between them, and where they part.

The ATLAS study finds laboratory and models apart by a constant k ≈ 1.5, except at low load and near
saturation (section 4, figs. 4 to 6).
"""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daqloom.study import StudyError

Array = NDArray[np.float64]

LOW_LOAD = 0.2
"""Utilisation below which bursts seldom meet, and chance decides when they do."""

SATURATION = 0.9
"""Utilisation above which queues have no time to empty: the mean grows as 1 / (1 - load)."""


@dataclass(frozen=True, eq=False)
class Scale:
    """b = k · a, fitted through the origin."""

    k: float
    error: float
    """Standard error of k."""
    residuals: Array
    """b - k a, in units of b, shape (n,)."""
    chi2_per_dof: float | None
    """None if the errors of b are not known. Well above 1: no single factor does it."""

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """k ± its error: normal where the errors of b were given, else Student's t, n - 1."""
        from scipy.stats import norm, t

        tail = (1 + level) / 2
        known = self.chi2_per_dof is not None
        factor = float(norm.ppf(tail) if known else t.ppf(tail, self.residuals.size - 1))
        return self.k - factor * self.error, self.k + factor * self.error


class Load(Enum):
    """Where on the way to saturation a point lies."""

    LOW = "low load"
    MEDIUM = "medium load"
    SATURATED = "near saturation"


@dataclass(frozen=True)
class Verdict:
    """How two methods compare in one point."""

    ratio: float
    """b / a; inf where only a is zero, 1 where both are."""
    parts: bool
    """Whether the ratio is farther from the factor than the tolerance; zeros do not part."""
    load: Load
    sentence: str


def fit_scale(a: ArrayLike, b: ArrayLike, sigma_b: ArrayLike | None = None) -> Scale:
    """The k of b = k · a by least squares through the origin; a, b have shape (n,), n at least 2.

    `sigma_b`, shape (n,) or one number: standard deviations of b in its unit; the error of k is
    then theirs and not scaled by chi². Without them all points weigh alike and the scatter sets
    the error (Taylor, An Introduction to Error Analysis, chapter 8). `a` counts as exact.
    Raises StudyError.
    """
    first, second = _pair(a, b)
    weights = np.ones(first.size) if sigma_b is None else _weights(sigma_b, first.size)
    length = float(np.sum(weights * first**2))
    if first.size < 2 or length == 0:
        raise StudyError(
            "scale: one factor and its error require at least two points, not all of them zero;"
            " compare over more points"
        )
    k = float(np.sum(weights * first * second)) / length
    residuals = second - k * first
    chi2_per_dof = float(np.sum(weights * residuals**2)) / (first.size - 1)
    known = sigma_b is not None
    error = math.sqrt((1.0 if known else chi2_per_dof) / length)
    return Scale(k, error, residuals, chi2_per_dof if known else None)


def verdicts(
    a: ArrayLike,
    b: ArrayLike,
    utilisation: ArrayLike,
    tolerance: float,
    *,
    factor: float = 1.0,
    names: tuple[str, str] = ("the first method", "the second"),
) -> list[Verdict]:
    """One verdict a point on whether b = factor · a within a relative `tolerance`. a, b and
    `utilisation` (load over capacity, 0 to 1 or above) have shape (n,). `names` are those of a and
    b in the sentences. Raises StudyError."""
    first, second = _pair(a, b)
    loads = np.asarray(utilisation, dtype=np.float64)
    if loads.shape != first.shape or not np.all(loads >= 0):
        raise StudyError("scale: expected a utilisation of 0 or more for every point")
    if not tolerance >= 0:
        raise StudyError(f"scale: a tolerance of {tolerance:g} is negative; use such as 0.1")
    return [
        _verdict(one, other, load, tolerance, factor, names)
        for one, other, load in zip(first.tolist(), second.tolist(), loads.tolist(), strict=True)
    ]


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise StudyError("scale: the two methods differ in their points; compare the same ones")
    if not (np.all(np.isfinite(first)) and np.all(np.isfinite(second))):
        raise StudyError("scale: a value is not finite; leave that point out")
    return first, second


def _weights(sigma: ArrayLike, count: int) -> Array:
    given = np.asarray(sigma, dtype=np.float64)
    if given.shape not in ((), (count,)) or not np.all((given > 0) & np.isfinite(given)):
        raise StudyError("scale: expected an error above zero for every point")
    return np.broadcast_to(given, (count,)) ** -2.0


def _ratio(one: float, other: float) -> float:
    if one == 0:
        return 1.0 if other == 0 else math.copysign(math.inf, other)
    return other / one


def _load(utilisation: float) -> Load:
    if utilisation < LOW_LOAD:
        return Load.LOW
    return Load.SATURATED if utilisation > SATURATION else Load.MEDIUM


def _verdict(
    one: float,
    other: float,
    utilisation: float,
    tolerance: float,
    factor: float,
    names: tuple[str, str],
) -> Verdict:
    ratio, load = _ratio(one, other), _load(utilisation)
    parts = abs(other - factor * one) > tolerance * abs(factor * one)
    expected = "" if factor == 1 else f" where {factor:.3g} is usual"
    said = (
        f"At {_percent(utilisation)} of capacity {names[1]} gives {ratio:.3g} times the value of"
        f" {names[0]}{expected}"
    )
    if not parts:
        return Verdict(ratio, parts, load, f"{said}: they agree within {_percent(tolerance)}.")
    return Verdict(ratio, parts, load, f"{said}: {_why(load, utilisation)}.")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _why(load: Load, utilisation: float) -> str:
    if load is Load.LOW:
        return "at low load bursts seldom overlap, and the peak depends on single events"
    if utilisation >= 1:
        return "above capacity queues grow with the length of the run, and values do not converge"
    if load is Load.SATURATED:
        return (
            "near saturation queues grow with the length of the run, and averages do not converge"
        )
    return "the load does not explain it; look for an effect that only one of them models"
