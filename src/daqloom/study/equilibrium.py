"""Whether the course of a metric has settled, and how much longer a run must be if not."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from daqloom.study import StudyError

if TYPE_CHECKING:
    import numpy as np

BATCHES = 20
"""Parts that a series is cut into: Schmeiser (1982) finds no gain in more than some 30."""
EARLY, LATE = 2, 10
"""Batches of the first tenth and of the last half, as Geweke (1992) takes them."""
FEWEST_VALUES = 2 * BATCHES


@dataclass(frozen=True, slots=True)
class Equilibrium:
    """Mean of the last half less that of the first tenth: `drift`, in the unit of the values.
    `interval` holds the drift of the process with the confidence asked for; the series counts as
    stationary while 0 lies in it."""

    is_stationary: bool
    drift: float
    interval: tuple[float, float]
    sentence: str


@dataclass(frozen=True, slots=True)
class Settled:
    """The duration at which a run was left, in seconds, and whether it was stationary there."""

    duration_s: float
    is_stationary: bool


def stationary(
    values: Sequence[float] | np.ndarray[Any, Any], *, confidence: float = 0.99
) -> Equilibrium:
    """Tests equally spaced `values`, shape (n,), n ≥ 40, for a difference of early and late mean.

    Geweke's diagnostic (1992, Evaluating the accuracy of sampling-based approaches, in Bayesian
    Statistics 4, section 3.2): the mean of the first 10 % against that of the last 50 %, over the
    standard error that correlation leaves. The long-run variance comes from the last half alone,
    as Schruben, Singh and Tierney propose (1983, Operations Research 31, 1167), since a transient
    would hide behind the variance it makes; it is estimated from the means of ten batches, so the
    statistic has Student's distribution with nine degrees of freedom.

    Error: the level is nominal while a batch, n / 20 values, is much longer than the correlation;
    for an autoregressive series with coefficient ρ the variance comes out too small by the share
    2ρ / (1 - ρ²) · 20 / n (0.9: 190 / n). A drift of the mean and a transient within the first
    half are seen, a change of the spread is not. Raises StudyError.
    """
    import numpy as np
    from scipy.special import stdtrit

    series = np.asarray(values, dtype=np.float64)
    _check(series, confidence)
    size = len(series) // BATCHES
    late = series[-LATE * size :]
    variance = float(late.reshape(LATE, size).mean(axis=1).var(ddof=1))
    drift = float(late.mean() - series[: EARLY * size].mean())
    quantile = float(stdtrit(LATE - 1, (1 + confidence) / 2))
    rounding = 64 * float(np.finfo(np.float64).eps) * float(np.abs(series).max())
    margin = quantile * math.sqrt(variance * (1 / EARLY + 1 / LATE)) + rounding
    interval = (drift - margin, drift + margin)
    settled = interval[0] <= 0 <= interval[1]
    return Equilibrium(settled, drift, interval, _sentence(settled, drift, interval, confidence))


def extend(duration_s: float, most_s: float) -> Generator[float, bool, Settled]:
    """Yields durations in seconds and is sent whether a run that long was stationary. The duration
    is doubled until a run is stationary; the last one tried is `most_s`. Every run tried has its
    own chance, 1 - confidence, of being taken for longer than it needs to be."""
    if not 0 < duration_s <= most_s < math.inf:
        raise StudyError(
            f"a run of {duration_s:g} s cannot be extended to {most_s:g} s; expected two finite "
            "durations above 0, the shorter first"
        )
    while not (yield duration_s):
        if duration_s == most_s:
            return Settled(duration_s, False)
        duration_s = min(2 * duration_s, most_s)
    return Settled(duration_s, True)


def _sentence(settled: bool, drift: float, interval: tuple[float, float], confidence: float) -> str:
    verdict = "stationary" if settled else "not stationary"
    return (
        f"{verdict}: the mean of the last half less that of the first tenth is {drift:.4g} "
        f"({100 * confidence:g} % interval {interval[0]:.4g} to {interval[1]:.4g})"
    )


def _check(series: np.ndarray[Any, Any], confidence: float) -> None:
    import numpy as np

    if not 0 < confidence < 1:
        raise StudyError(f"a confidence lies between 0 and 1, found {confidence:g}")
    if series.ndim != 1 or len(series) < FEWEST_VALUES:
        raise StudyError(
            f"a test for stationarity needs one row of {FEWEST_VALUES} values or more, found "
            f"shape {series.shape}; lengthen run.duration"
        )
    if not np.isfinite(series).all():
        raise StudyError("a test for stationarity needs finite values, found one that is not")
