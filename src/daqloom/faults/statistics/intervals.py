"""Times between failures: exponential and Weibull distributions, fitted and tested.

Both are fitted by maximum likelihood. The fit is tested with Kolmogorov's distance by a parametric
bootstrap: samples are drawn from the fit and fitted again; the p-value is the share whose distance
is as large (Stute, Gonzáles Manteiga and Presedo Quindimil 1993). A likelihood ratio tests whether
the Weibull's shape is 1: 2 log Λ ~ χ² with one degree of freedom (Wilks 1938).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.base import lazy

with lazy.imports():
    from scipy import stats

Array = NDArray[np.float64]
SAMPLES = 499
FEWEST = 5
"""Least number of intervals for a fit."""
MOST_FOR_TEST = 2_000
"""Limit on the intervals in a test; of more intervals, this number is chosen evenly."""


@dataclass(frozen=True)
class Fit:
    """A distribution of the times between failures."""

    name: str
    scale_s: float
    """Scale of the Weibull distribution; for the exponential distribution, its mean (s)."""
    shape: float
    """Shape of the Weibull distribution: below 1 for bursts; 1 for the exponential distribution."""
    distance: float
    """Kolmogorov distance: largest difference between the measured and the fitted distribution."""
    p_value: float
    """Share of samples of this distribution whose own fit has at least this distance."""


@dataclass(frozen=True)
class Intervals:
    """Times between failures, and distributions fitted to them."""

    interval_s: Array
    """Ascending (s)."""
    fits: tuple[Fit, ...]
    """Fits of the exponential and the Weibull distribution, in this order. The list is empty if
    there are fewer than `FEWEST` positive intervals."""
    burst_p_value: float
    """p-value of the Weibull's gain in likelihood, if failures come at a constant rate."""


def intervals(begin_s: Array, seed: int = 1) -> Intervals:
    """Return the times between failures that begin at `begin_s`. Simultaneous failures result from
    the log's resolution; their interval counts as half of the smallest other interval."""
    found = np.sort(np.diff(np.sort(begin_s)))
    positive = found[found > 0]
    if len(positive) < FEWEST:
        return Intervals(found, (), float("nan"))
    found = np.maximum(found, positive[0] / 2)
    random = np.random.default_rng(seed)
    fits = tuple(
        _fit(name, found, is_weibull, random)
        for name, is_weibull in (("exponential", False), ("Weibull", True))
    )
    gain = 2 * (_likelihood(found, fits[1]) - _likelihood(found, fits[0]))
    return Intervals(found, fits, float(stats.chi2.sf(max(0.0, gain), 1)))


def _fit(name: str, values: Array, is_weibull: bool, random: np.random.Generator) -> Fit:
    shape, scale = _shape_and_scale(values, is_weibull)
    tested = values
    if len(values) > MOST_FOR_TEST:
        tested = values[np.linspace(0, len(values) - 1, MOST_FOR_TEST).astype(int)]
    distance = _distance(tested, *_shape_and_scale(tested, is_weibull))
    as_far = 0
    for _ in range(SAMPLES):
        drawn = np.sort(scale * random.weibull(shape, len(tested)))
        drawn = np.maximum(drawn, np.finfo(float).tiny)
        as_far += _distance(drawn, *_shape_and_scale(drawn, is_weibull)) >= distance
    return Fit(name, scale, shape, distance, (as_far + 1) / (SAMPLES + 1))


def _shape_and_scale(values: Array, is_weibull: bool) -> tuple[float, float]:
    """Return shape and scale of maximum likelihood."""
    if not is_weibull:
        return 1.0, float(values.mean())
    largest = float(values.max())
    logs = np.log(values / largest)  # at most 0: no power overflows
    shape = 1.2 / max(float(logs.std()), 1e-9)
    for _ in range(100):
        powers = np.exp(shape * logs)
        total = powers.sum()
        first = (powers * logs).sum() / total
        second = (powers * logs**2).sum() / total
        value = first - 1 / shape - logs.mean()
        step = float(value / (second - first**2 + 1 / shape**2))
        shape = max(shape - step, shape / 4)
        if abs(step) <= 1e-10 * shape:
            break
    return shape, largest * float(np.mean(np.exp(shape * logs))) ** (1 / shape)


def _distance(values: Array, shape: float, scale: float) -> float:
    """Return Kolmogorov's distance between ascending values and a Weibull distribution."""
    count = len(values)
    fitted = -np.expm1(-((values / scale) ** shape))
    above = np.arange(1, count + 1) / count - fitted
    below = fitted - np.arange(count) / count
    return float(max(above.max(), below.max()))


def _likelihood(values: Array, fit: Fit) -> float:
    relative = values / fit.scale_s
    logarithm = np.log(fit.shape / fit.scale_s) + (fit.shape - 1) * np.log(relative)
    return float(np.sum(logarithm - relative**fit.shape))
