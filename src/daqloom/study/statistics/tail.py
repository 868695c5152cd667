"""Upper tail of block maxima: levels exceeded with a given probability, and their uncertainty.

A block's maximum exceeds x with probability 1 - exp(-L(x)). Above a threshold u, L(x) = L(u)
exp(-t(x)), where t belongs to one of two families and s is the scale of the tail at u:

- generalised Pareto, t = ln(1 + xi (x - u) / s) / xi: the tail of a GEV (Coles, An Introduction to
  Statistical Modeling of Extreme Values, 2001, chapter 4). For xi < 0 the tail ends at u - s / xi,
  for example if credits limit the buffer.
- Weibull, t = ((x / u)^tau - 1) u / (tau s): tau = 1 is the exponential tail of a queue's backlog
  (Asmussen, Applied Probability and Queues, 2003, chapter XIII). tau = 2 is the tail of a sum of
  many contributions, and tau < 1 the tail for events of very unequal size.

A GEV alone would extrapolate maxima of short blocks to a bounded tail, which queues do not have:
the shape of these maxima is below 0 and rises to 0 only slowly with the block length. Therefore
both families are weighted by their likelihood and the priors below, on a grid over (shape, s). L(u)
is integrated out in closed form. For maxima below the threshold only their number is used.
"""

import math
from typing import NamedTuple, cast

import numpy as np

from daqloom.base import lazy
from daqloom.study.statistics.gev import LARGEST, Array

with lazy.imports():
    from scipy import special

HALF_WIDTH = 0.15
"""Half-width of the 95 % interval, relative to the level, above which a warning is given."""

QUANTILES = (0.025, 0.5, 0.975)


def _normal(x: Array, mean: float, deviation: float) -> Array:
    return np.exp(-0.5 * ((x - mean) / deviation) ** 2) / deviation


SHAPES = np.linspace(-0.91, 0.7, 47)
"""Grid of xi, with 0."""
_WEIGHTS = 0.7 * _normal(SHAPES, -0.05, 0.1) + 0.3 * _normal(SHAPES, 0.0, 0.3)
"""Prior weights of xi. Queues have light tails, whose maxima have a shape of 0 or slightly below. A
wide second component allows data of other shapes."""
SHARE = 0.45
"""Prior weight of the generalised Pareto family; the Weibull family has the rest."""
POWERS = np.geomspace(0.3, 12.0, 37)
_POWER_WEIGHTS = 0.8 * _normal(np.log(POWERS / 1.7), 0.0, 0.45) + 0.2 * _normal(
    np.log(POWERS / 1.7), 0.0, 0.9
)
"""Prior weights of tau, mostly 1 to 3. A wide second component allows data of other shapes."""


def kept(count: int) -> int:
    """Return how many of the greatest of `count` maxima are fitted. The share decreases with
    `count`, so that with more data the fit uses only the outer tail."""
    return min(count, math.ceil(12 * math.sqrt(count)))


class Interval(NamedTuple):
    """Quantiles of a level's distribution: 2.5 %, median and 97.5 %."""

    low: float
    value: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval's width, relative to the median."""
        return (self.high - self.low) / (2 * abs(self.value)) if self.value else math.inf


class Tail:
    """Distributions of levels beyond block maxima, shape (n,), which must not all be equal."""

    def __init__(self, maxima: Array, count: int | None = None, scales: int = 48) -> None:
        """`count` is the number n of all maxima, if `maxima` contains only the greatest ones.
        `scales` is the number of grid points over s."""
        ordered = np.sort(maxima)
        self.count = count or ordered.size
        self._kept = kept(self.count)
        top = ordered[ordered.size - self._kept :]
        below = self.count - self._kept
        # If no maxima are below the threshold, the median serves as threshold.
        self._threshold = float(
            ordered[-self._kept - 1] if below and ordered.size > self._kept else np.median(top)
        )
        self._unit = float(np.abs(top - self._threshold).mean()) or float(np.ptp(top))
        if not self._unit:
            return  # all fitted maxima are at a limit of the system
        reach = 0.15 + 10 / math.sqrt(max(self._kept, 40))
        scale = self._unit * np.exp(np.linspace(-reach, reach, scales))
        grids = [self._pareto(top, below, scale)]
        if self._threshold > 0 and top[0] > 0:
            grids.append(self._weibull(top, below, scale))
        family = np.concatenate([np.full(grid[0].size, i) for i, grid in enumerate(grids)])
        shape, scale, held, weight = (np.concatenate(parts) for parts in zip(*grids, strict=True))
        weight = np.exp(weight - weight.max())
        heavy = weight > 1e-4
        self._is_weibull = family[heavy] == 1
        self._shape, self._scale, self._held = shape[heavy], scale[heavy], held[heavy]
        self._weight = weight[heavy] / weight[heavy].sum()

    def _pareto(self, top: Array, below: int, scale: Array) -> tuple[Array, Array, Array, Array]:
        shape = SHAPES[:, None, None]
        with np.errstate(all="ignore"):
            t = _pareto(top - self._threshold, shape, scale[:, None])
            slope = -np.log(scale[:, None]) - shape * t
            return _grid(SHAPES, scale, t, slope, below, SHARE * _WEIGHTS / _WEIGHTS.sum())

    def _weibull(self, top: Array, below: int, scale: Array) -> tuple[Array, Array, Array, Array]:
        power = POWERS[:, None, None]
        ratio = top / self._threshold
        with np.errstate(all="ignore"):
            t = _weibull(ratio, power, scale[:, None] / self._threshold)
            slope = (power - 1) * np.log(ratio) - np.log(scale[:, None])
            prior = (1 - SHARE) * _POWER_WEIGHTS / _POWER_WEIGHTS.sum()
            return _grid(POWERS, scale, t, slope, below, prior)

    def _distance(self, x: Array) -> Array:
        """Return t at `x`, shape (m,), for grid points, shape (m, nodes); inf beyond an upper
        end."""
        with np.errstate(all="ignore"):
            t = _pareto(x[:, None] - self._threshold, self._shape, self._scale)
            t = np.where(np.isnan(t), np.where(self._shape < 0, math.inf, -math.inf), t)
            if self._is_weibull.any():
                ratio = np.maximum(x[:, None] / self._threshold, 0.0)
                power = np.where(self._is_weibull, self._shape, 1.0)
                weibull = _weibull(ratio, power, self._scale / self._threshold)
                t = np.where(self._is_weibull, np.where(ratio > 0, weibull, -math.inf), t)
        return cast(Array, np.clip(t, -LARGEST, LARGEST))

    def levels(self, probability: float) -> Interval:
        """Return the quantiles of the level that a block's maximum exceeds with `probability`."""
        if not self._unit:
            return Interval(*3 * (self._threshold,))
        log_held = np.log(self._held) + math.log(-math.log1p(-probability))
        targets = np.array(QUANTILES)

        def share(x: Array) -> Array:
            """Return the probability that the level lies below `x`."""
            at = np.exp(np.minimum(self._distance(x) + log_held, LARGEST))
            return cast(Array, special.gammainc(self._kept, at) @ self._weight)

        low = np.full(3, self._threshold - 8 * self._unit)
        high = np.full(3, self._threshold + 8 * self._unit)
        while share(high[-1:])[0] < targets[-1]:
            high = self._threshold + 2 * (high - self._threshold)
        while share(low[:1])[0] > targets[0]:
            low = self._threshold + 2 * (low - self._threshold)
        while float((high - low).max()) > 1e-4 * self._unit:
            middle = (low + high) / 2
            above = share(middle) >= targets
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return Interval(*((low + high) / 2).tolist())

    def times_needed(self, probability: float, most: int = 1 << 14) -> int:
        """Return the factor on the number of blocks with which the half-width of the level at
        `probability` falls to HALF_WIDTH: a power of two, at most `most`. It is estimated with the
        expected maxima of a larger sample from the most likely tail."""
        times = 1
        while times < most:
            times *= 2
            if self._expected(times * self.count).levels(probability).half_width <= HALF_WIDTH:
                break
        return times

    def _expected(self, count: int) -> "Tail":
        best = int(self._weight.argmax())
        shape, scale = float(self._shape[best]), float(self._scale[best])
        ranks = np.arange(min(kept(count) + 1, count), 0, -1)
        # L at Weibull's plotting positions, from which t and then x follow.
        t = -np.log(-np.log1p(-ranks / (count + 1)) * self._held[best] / self._kept)
        if self._is_weibull[best]:
            base = 1 + shape * scale * t / self._threshold
            x = self._threshold * np.maximum(base, 0.0) ** (1 / shape)
        else:
            x = self._threshold + scale * (np.expm1(shape * t) / shape if shape else t)
        return Tail(x, count, scales=16)


def _pareto(excess: Array, shape: Array, scale: Array) -> Array:
    """Return t in the generalised Pareto family; NaN outside the support."""
    z = excess / scale
    return cast(Array, np.where(np.abs(shape) < 1e-9, z, np.log1p(shape * z) / shape))


def _weibull(ratio: Array, power: Array, scale: Array) -> Array:
    """Return t in the Weibull family; `ratio` and `scale` are relative to the threshold."""
    return (ratio**power - 1) / (power * scale)


def _grid(
    shape: Array, scale: Array, t: Array, slope: Array, below: int, prior: Array
) -> tuple[Array, Array, Array, Array]:
    """Return shape, scale, A and log-weight of each grid point. With a prior 1 / L(u), L(u) has a
    Gamma(k, A) distribution, with A = sum of exp(-t) over the k fitted maxima + number of maxima
    below the threshold. The likelihood with L(u) integrated out is the product of t' exp(-t),
    divided by A^k. `slope` is ln t'."""
    held = np.exp(-t).sum(axis=-1) + below
    likelihood = (slope - t).sum(axis=-1) - t.shape[-1] * np.log(held)
    likelihood = np.where(np.isfinite(likelihood), likelihood, -math.inf)
    shapes, scales = np.broadcast_arrays(shape[:, None], scale[None, :])
    weight = likelihood + np.log(prior)[:, None]
    return shapes.ravel(), scales.ravel(), held.ravel(), weight.ravel()
