"""Test whether the course of a metric has settled, and the extension of a run that has not."""

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
"""Parts that a series is cut into: Schmeiser (1982) finds no gain in more than some 30."""
EARLY, LATE = 2, 10
"""Batches of the first tenth and of the last half, by Geweke (1992)."""
FEWEST_VALUES = 2 * BATCHES


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Mean of the last half less that of the first tenth: `drift`, in the unit of the values.
    `interval` is its confidence interval."""

    drift: float
    interval: tuple[float, float]

    @property
    def is_stationary(self) -> bool:
        """Whether the drift may be 0."""
        return self.interval[0] <= 0 <= self.interval[1]


def stationary(
    values: Sequence[float] | np.ndarray[Any, Any], *, confidence: float = 0.99
) -> Equilibrium:
    """Test equally spaced `values`, shape (n,), n ≥ 40, for a difference of early and late mean.

    Geweke's diagnostic (1992, Evaluating the accuracy of sampling-based approaches, in Bayesian
    Statistics 4, section 3.2): the mean of the first 10 % against that of the last 50 %, over the
    standard error that correlation leaves. The long-run variance comes from the last half alone,
    as Schruben, Singh and Tierney propose (1983, Operations Research 31, 1167), since a transient
    would hide behind the variance it makes; it is estimated from the means of ten batches, so the
    statistic has Student's distribution with nine degrees of freedom.

    Error: the level is nominal while a batch, n / 20 values, is much longer than the correlation;
    for an autoregressive series with coefficient ρ the variance comes out too small by the share
    half are detected, a change of the spread is not. Raises StudyError.
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
    """Yield durations in seconds; is sent whether a run that long was stationary, and returns
    whether the last was. The duration is doubled until a run is stationary, up to `most_s`. Each
    run has its own probability, 1 - confidence, of an extension without need."""
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
