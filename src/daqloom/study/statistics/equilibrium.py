"""Test for stationarity of a metric over time, and extension of runs that are not stationary."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

from daqloom.base import lazy
from daqloom.study import StudyError

with lazy.imports():
    import numpy as np
    from scipy import special

BATCHES = 20
"""Number of batches of a series; Schmeiser (1982) finds no gain in more than about 30."""
EARLY, LATE = 2, 10
"""Number of batches in the first tenth and in the last half of a series, after Geweke (1992)."""
FEWEST_VALUES = 2 * BATCHES


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """`drift` is the mean of the last half minus the mean of the first tenth, in the unit of the
    values. `interval` is the confidence interval of the drift."""

    drift: float
    interval: tuple[float, float]

    @property
    def is_stationary(self) -> bool:
        """Whether the interval of the drift contains 0."""
        return self.interval[0] <= 0 <= self.interval[1]


def stationary(
    values: Sequence[float] | np.ndarray[Any, Any], *, confidence: float = 0.99
) -> Equilibrium:
    """Test equally spaced `values`, shape (n,), n ≥ 40, for a difference between early and late
    mean.

    Geweke's diagnostic (1992, Evaluating the accuracy of sampling-based approaches, in Bayesian
    Statistics 4, section 3.2): the difference between the means of the first 10 % and of the last
    50 %, divided by the standard error for correlated values. The long-run variance is estimated
    from the last half only, because a transient would increase it and hide itself (Schruben, Singh
    and Tierney, 1983, Operations Research 31, 1167). It follows from the means of ten batches, so
    the statistic has Student's distribution with nine degrees of freedom.

    The level is nominal only if a batch, n / 20 values, is much longer than the correlation time;
    for shorter batches the variance is underestimated. A change of the spread is not detected.
    Raises StudyError.
    """
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or len(series) < FEWEST_VALUES:
        raise StudyError(
            f"a test for stationarity needs one row of {FEWEST_VALUES} values or more, found "
            f"shape {series.shape}; lengthen run.duration"
        )
    if not np.isfinite(series).all():
        raise StudyError("a test for stationarity needs finite values, found one that is not")
    size = len(series) // BATCHES
    late = series[-LATE * size :]
    variance = float(late.reshape(LATE, size).mean(axis=1).var(ddof=1))
    drift = float(late.mean() - series[: EARLY * size].mean())
    quantile = float(special.stdtrit(LATE - 1, (1 + confidence) / 2))
    rounding = 64 * float(np.finfo(np.float64).eps) * float(np.abs(series).max())
    margin = quantile * math.sqrt(variance * (1 / EARLY + 1 / LATE)) + rounding
    return Equilibrium(drift, (drift - margin, drift + margin))


def extend(duration_s: float, most_s: float) -> Generator[float, bool, bool]:
    """Yield run durations (s), doubled up to `most_s`, and receive after each whether the run was
    stationary. Stop at a stationary run; return whether the last run was stationary. Each test has
    the probability 1 - confidence of an unnecessary extension."""
    if not 0 < duration_s <= most_s < math.inf:
        raise StudyError(
            f"a run of {duration_s:g} s cannot be extended to {most_s:g} s; expected two finite "
            "durations above 0, the shorter first"
        )
    while not (yield duration_s):
        if duration_s == most_s:
            return False
        duration_s = min(2 * duration_s, most_s)
    return True
