"""Return levels: peaks that are expected in a longer time than was simulated.

The peak in a 4 s run is an extreme value, which grows with the duration of the run. Runs are
divided into blocks, and the generalised extreme value distribution (GEV) is fitted to the maxima of
the blocks (Coles, An Introduction to Statistical Modeling of Extreme Values, 2001, chapter 3). Its
shape shows heavy and bounded tails. Levels far beyond the maxima, such as one exceeded once in an
hour, are computed by `daqloom.study.statistics.tail`.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from daqloom.base import lazy
from daqloom.base.words import TIMES_S
from daqloom.study import StudyError
from daqloom.study.statistics.gev import (
    Array,
    Gev,
    anderson_darling,
    covariance,
    draw,
    log_likelihood,
    maximum_likelihood,
)
from daqloom.study.statistics.tail import HALF_WIDTH, Tail

with lazy.imports():
    from scipy import stats

LEAST_BLOCKS = 20
"""Minimum number of maxima for a fit of three parameters."""

LEAST_REGULAR = -0.5
"""GEV shape xi below which usual standard errors do not exist (Smith 1985; Coles 2001, 3.3.2)."""

TIED = 0.2
"""Share of equal maxima above which they are attributed to a limit of the system."""

ENOUGH_WORSE = 10
"""Number of worse-fitting replicas after which no more are drawn (Besag and Clifford, Biometrika
78, 301, 1991); a good fit needs about twenty replicas."""

TWO_SIDED = 1.959963984540054
"""The 97.5 % point of the normal distribution."""


@dataclass(frozen=True)
class Goodness:
    """Goodness of fit: `statistic` is Anderson-Darling's A². `p_value` is the share of `replicas`
    samples, drawn from the fitted distribution, that fit worse."""

    statistic: float
    p_value: float
    replicas: int


@dataclass(frozen=True, eq=False)
class GevFit:
    """A GEV fitted to the maxima (B) of blocks of equal duration; location and scale in bytes."""

    location: float
    scale: float
    shape: float
    """xi: above 0 for a heavy tail, below 0 for a bounded tail (scipy's c is -xi)."""
    covariance: Array
    """Covariance of (location, scale, shape); NaN if the likelihood has no regular maximum."""
    log_likelihood: float
    maxima: Array
    """Fitted values, shape (blocks,)."""
    goodness: Goodness | None
    """Goodness of fit; None without replicas."""
    warnings: tuple[str, ...]

    @property
    def gev(self) -> Gev:
        """Return the three parameters."""
        return Gev(self.location, self.scale, self.shape)

    @cached_property
    def tail(self) -> Tail:
        """Distribution of levels beyond the maxima, which must not all be equal."""
        return Tail(self.maxima)

    @property
    def has_no_peak(self) -> bool:
        """Whether the likelihood has no regular maximum, although the tail has no upper end."""
        return math.isnan(self.covariance[2, 2]) and (self.shape > 0 or _ties(self) is not None)

    @property
    def shape_interval(self) -> tuple[float, float]:
        """Return shape ± 1.96 standard errors (95 %)."""
        error = TWO_SIDED * math.sqrt(self.covariance[2, 2])
        return self.shape - error, self.shape + error


@dataclass(frozen=True)
class Level:
    """Level in bytes that is exceeded once in `period_s`, with its 95 % interval."""

    value: float
    low: float
    high: float
    """Upper end of the interval; infinite if the data give no upper bound. `low` and `high` are NaN
    if the likelihood has no regular maximum."""
    period_s: float
    warnings: tuple[str, ...] = field(default=())


def block_maxima(values: ArrayLike, blocks: int) -> Array:
    """Return the maxima of `blocks` equal parts of a series of bin maxima, shape (blocks,).
    `values`, shape (bins,), is the series after the warm-up. A block has bins // blocks bins; the
    first bins % blocks bins are left out. Blocks must be much longer than a burst, so that
    neighbouring blocks do not share one. Raises StudyError."""
    series = np.asarray(values, dtype=np.float64)
    if series.ndim != 1 or not np.all(np.isfinite(series)):
        raise StudyError("block maxima: expected a series of finite numbers; look for gaps in it")
    if not 1 <= blocks <= series.size:
        raise StudyError(
            f"block maxima: cannot cut {series.size} bins into {blocks} blocks;"
            " use fewer blocks, narrower bins or a longer run"
        )
    length = series.size // blocks
    tail = series[series.size - blocks * length :]
    return cast(Array, tail.reshape(blocks, length).max(axis=1))


def fit_gev(maxima: ArrayLike, replicas: int = 0, seed: int = 0) -> GevFit:
    """Fit a GEV to `maxima` (B), shape (blocks,), by maximum likelihood.

    The covariance is the inverse of the observed information. With `replicas`, such as 199, the
    goodness of fit is computed by a parametric bootstrap: samples are drawn from the fit (with
    `seed`), and each is fitted again, because A² is smaller for parameters fitted to the sample.
    Drawing stops when ten samples fit worse. If all maxima are equal, the scale is 0 and there is a
    warning. Raises StudyError.
    """
    x = np.asarray(maxima, dtype=np.float64)
    if x.ndim != 1 or not np.all(np.isfinite(x)):
        raise StudyError("return level: expected a series of finite block maxima")
    if x.size < LEAST_BLOCKS:
        raise StudyError(
            f"return level: {x.size} block maxima are too few for a fit, at least {LEAST_BLOCKS}"
            " are needed; run for longer, repeat with more seeds, or cut into shorter blocks"
        )
    if np.ptp(x) <= 1e-9 * np.max(np.abs(x)):
        zero = np.zeros((3, 3))
        return GevFit(float(x[0]), 0.0, 0.0, zero, math.inf, x, None, (_all_equal(x),))
    return _fit(x, replicas, seed)


def _fit(x: Array, replicas: int, seed: int) -> GevFit:
    best = maximum_likelihood(x)
    information = covariance(x, best)
    fit = GevFit(
        location=best.location,
        scale=best.scale,
        shape=best.shape,
        covariance=np.full((3, 3), math.nan) if information is None else information,
        log_likelihood=log_likelihood(x, best),
        maxima=x,
        goodness=_goodness(x, best, replicas, seed) if replicas else None,
        warnings=(),
    )
    doubts = (_ties(fit), _tail(fit), *too_short_blocks(fit))
    return replace(fit, warnings=tuple(filter(None, doubts)))


def _goodness(x: Array, gev: Gev, replicas: int, seed: int) -> Goodness:
    random = np.random.default_rng(seed)
    observed = anderson_darling(x, gev)
    worse = 0
    for drawn in range(1, replicas + 1):
        sample = draw(gev, x.size, random)
        worse += anderson_darling(sample, maximum_likelihood(sample, start=gev)) >= observed
        if worse == ENOUGH_WORSE:
            return Goodness(observed, worse / drawn, drawn)
    return Goodness(observed, (1 + worse) / (1 + replicas), replicas)


def _all_equal(x: Array) -> str:
    return (
        f"all {x.size} block maxima are equal: a limit or a fixed pattern determines the peak, not"
        " chance, so that nothing follows for longer runs"
    )


def too_short_blocks(fit: GevFit) -> tuple[str, ...]:
    """Return the reasons for longer blocks, a sentence each."""
    return tuple(doubt for doubt in (_neighbours(fit), _misfit(fit)) if doubt)


def _ties(fit: GevFit) -> str | None:
    x = fit.maxima
    if np.ptp(x) <= 1e-3 * np.max(np.abs(x)):
        return f"all {x.size} block maxima are nearly equal (within 0.1 %): is the buffer full?"
    values, counts = np.unique(x, return_counts=True)
    if counts.max() >= max(3, TIED * x.size):
        return (
            f"{counts.max()} of {x.size} block maxima are the same "
            f"({_bytes(values[counts.argmax()])}): a limit or a fixed pattern "
            "determines them, not chance"
        )
    return None


def _tail(fit: GevFit) -> str | None:
    low, high = fit.shape_interval
    if math.isnan(low) and fit.shape > 0:
        return (
            "the likelihood has no regular peak, so errors and intervals are unknown; use more or"
            " longer blocks"
        )
    if math.isnan(low) or fit.shape < LEAST_REGULAR:
        return (
            f"the maxima saturate at an upper end (shape {fit.shape:.2f}), where errors and"
            " intervals are not valid: is it a limit of the system? If not, use longer blocks"
        )
    if low >= 0:
        return None
    return (
        f"the tail may be bounded (shape {fit.shape:.2f}, {low:.2f} to {high:.2f}): there may be a"
        " greatest peak that no run exceeds"
    )


def _neighbours(fit: GevFit) -> str | None:
    """Return a sentence if neighbouring maxima are correlated; for independent maxima the
    correlation is normal with variance 1/n."""
    ranks = stats.rankdata(fit.maxima)
    if np.ptp(ranks[:-1]) == 0 or np.ptp(ranks[1:]) == 0:
        return None
    correlation = float(np.corrcoef(ranks[:-1], ranks[1:])[0, 1])
    if correlation * math.sqrt(fit.maxima.size) <= 3.0:
        return None
    return (
        f"neighbouring blocks are correlated (rank correlation {correlation:.2f}): the intervals "
        "are too narrow; use longer blocks"
    )


def _misfit(fit: GevFit) -> str | None:
    if fit.goodness is None or fit.goodness.p_value >= 0.05:
        return None
    return (
        f"the maxima do not follow an extreme value distribution (p = {fit.goodness.p_value:.3f});"
        " use longer blocks"
    )


def return_level(fit: GevFit, block_s: float, period_s: float) -> Level:
    """Return the level that block maxima exceed on average once in `period_s`: with probability p =
    block_s / period_s for a block of `block_s` (Coles 2001, eq. 3.4). The interval contains 95 % of
    the distribution by `fit.tail`, and most of its width is above the median. If it is too wide, a
    warning gives the necessary simulated time. Raises StudyError for a period not longer than a
    block."""
    if not (0 < block_s < math.inf and block_s < period_s < math.inf):
        raise StudyError(
            f"return level: a period of {_time(period_s)} is not longer than a block of"
            f" {_time(block_s)}; use a longer period or read the level off the series itself"
        )
    if fit.scale == 0:
        return Level(fit.location, fit.location, fit.location, period_s, fit.warnings)
    found = fit.tail.levels(block_s / period_s)
    low, value, high = found
    warnings = fit.warnings + _too_far(fit, block_s, period_s, found.half_width)
    if fit.has_no_peak:
        return Level(value, math.nan, math.nan, period_s, warnings)
    return Level(value, low, high, period_s, warnings)


def _too_far(fit: GevFit, block_s: float, period_s: float, half_width: float) -> tuple[str, ...]:
    """Return a warning on a too uncertain level, with the simulated time that would suffice."""
    observed_s = fit.maxima.size * block_s
    if half_width <= HALF_WIDTH:
        return ()
    needed_s = float(f"{fit.tail.times_needed(block_s / period_s) * observed_s:.2g}")
    return (
        f"the level of {_time(period_s)} is uncertain by {half_width:.0%}, because it is"
        f" {period_s / observed_s:.0f} times the {_time(observed_s)} observed: simulate for about"
        f" {needed_s:.10g} s, all seeds together, for an uncertainty within {HALF_WIDTH:.0%}",
    )


def describe(level: Level, often: str, buffer: str = "A buffer") -> str:
    """Return a sentence: "A buffer of 93.1 MB (90.2 to 97.5 MB, 95 %) overflows less than once …".
    `often` is the text for the level's period, `buffer` the text for the buffer."""
    prefix, factor = _prefix(level.value)
    number = abs(level.value / factor)
    decimals = min(2, max(0, 2 - math.floor(math.log10(number)))) if number else 0  # three digits
    value, low, high = (
        f"{each / factor:.{decimals}f}" for each in (level.value, level.low, level.high)
    )
    spread = f"{low} to {high} {prefix}B, 95 %"
    if level.high == math.inf:
        spread = f"at least {low} {prefix}B, 95 %"
    return f"{buffer} of {value} {prefix}B ({spread}) overflows less than {often}."


def _bytes(value: float) -> str:
    """Return bytes in words: `1.944e7` → "19.44 MB"."""
    prefix, factor = _prefix(value)
    return f"{value / factor:.4g} {prefix}B"


def _time(value_s: float) -> str:
    """Return a readable time in the largest unit not longer than it: `5400` → "1.5 h"."""
    for unit, length_s in (*TIMES_S.items(), ("ms", 1e-3), ("µs", 1e-6)):
        if value_s >= length_s:
            return f"{value_s / length_s:.{3 if length_s > 1 else 4}g} {unit}"
    return f"{value_s:.4g} s"


def _prefix(value: float) -> tuple[str, float]:
    for prefix, factor in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= factor:
            return prefix, factor
    return "", 1.0
