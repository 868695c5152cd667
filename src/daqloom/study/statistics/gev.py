"""The generalised extreme value distribution (GEV): likelihood, quantiles, fit, goodness of fit.
G(x) = exp(-(1 + xi z)^(-1/xi)), z = (x - mu) / sigma (Coles, An Introduction to Statistical
Modeling of Extreme Values, 2001, eq. 3.2). The tail is heavy for xi > 0, and ends at mu - sigma /
xi for xi < 0; scipy.stats.genextreme uses c = -xi."""

import math
from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from daqloom.base import lazy

with lazy.imports():
    from scipy import optimize

Array = NDArray[np.float64]

LEAST_SHAPE = -1.0
"""Shape xi below which the likelihood has no maximum (Coles 2001, section 3.3.2)."""

GUMBEL = 1e-12
"""Value of |xi| below which the formulas for xi = 0 are used."""

LARGEST = 700.0
"""Maximum argument of exp; larger values, which a search may reach, overflow."""


class Gev(NamedTuple):
    """Location mu and scale sigma in the unit of the data, shape xi."""

    location: float
    scale: float
    shape: float


def reduce(x: Array, gev: Gev) -> Array:
    """Return y = ln(1 + xi z) / xi, in the shape of `x`: G = exp(-exp(-y)). NaN outside the
    support."""
    z = (x - gev.location) / gev.scale
    if abs(gev.shape) < GUMBEL:
        return z
    return np.log1p(gev.shape * z) / gev.shape


def log_likelihood(x: Array, gev: Gev) -> float:
    """Return the log-likelihood (Coles 2001, eqs. 3.7, 3.9); -inf if a value is outside the
    support."""
    if not (gev.scale > 0 and gev.shape > LEAST_SHAPE):
        return -math.inf
    with np.errstate(all="ignore"):
        y = reduce(x, gev)
        # y.sum() would call np.add.reduce through Python, which takes a seventh of the time of a
        # fit.
        sums = -(1 + gev.shape) * np.add.reduce(y) - np.add.reduce(np.exp(-y))
        total = float(sums) - x.size * math.log(gev.scale)
    return total if math.isfinite(total) else -math.inf


def cdf(x: Array, gev: Gev) -> Array:
    """Return the distribution function G at `x`; all values must lie within the support."""
    return cast(Array, np.exp(-np.exp(-reduce(x, gev))))


def growth(probability: float, shape: float) -> float:
    """Return (x_p - mu) / sigma, x_p exceeded with `probability` p (Coles 2001, eq. 3.4)."""
    y = -math.log(-math.log1p(-probability))
    return y if abs(shape) < GUMBEL else math.expm1(min(shape * y, LARGEST)) / shape


def quantile(probability: float, gev: Gev) -> float:
    """Return the level exceeded with `probability`, in the unit of the data."""
    return gev.location + gev.scale * growth(probability, gev.shape)


def draw(gev: Gev, count: int, random: np.random.Generator) -> Array:
    """Draw `count` independent values, by inversion of G."""
    y = -np.log(random.standard_exponential(count))
    z = y if abs(gev.shape) < GUMBEL else np.expm1(gev.shape * y) / gev.shape
    return gev.location + gev.scale * z


def maximum_likelihood(x: Array, start: Gev | None = None) -> Gev:
    """Return the GEV with the greatest likelihood and xi > -1; the values `x` must not all be
    equal. The search begins at `start` or, if None or unsuitable for `x`, at a fit by moments."""
    if start is None or log_likelihood(x, start) == -math.inf:
        start = _from_moments(x)
    unit = start.scale

    def loss(point: Array) -> float:
        location, log_scale, shape = point
        at = Gev(start.location + unit * location, unit * math.exp(min(log_scale, LARGEST)), shape)
        return -log_likelihood(x, at)

    best = descend(loss, np.array([0.0, 0.0, start.shape]))
    best = descend(loss, best, 0.01)  # a second simplex: the first may have collapsed
    scale = unit * math.exp(best[1])
    return Gev(float(start.location + unit * best[0]), float(scale), float(best[2]))


def descend(loss: Callable[[Array], float], start: Array, reach: float = 0.1) -> Array:
    """Return the minimum near `start` by the Nelder-Mead simplex method, which works with a loss
    that is infinite in places. `reach` is the edge of the first simplex."""
    simplex = np.vstack([start, start + reach * np.eye(start.size)])
    options = {"xatol": 1e-4, "fatol": 1e-6, "initial_simplex": simplex, "maxiter": 1000}
    with np.errstate(invalid="ignore"):  # inf - inf between two vertices outside the support
        return cast(Array, optimize.minimize(loss, start, method="Nelder-Mead", options=options).x)


def _from_moments(x: Array) -> Gev:
    """Return the Gumbel distribution with the mean and variance of `x`, as start of a search. Its
    support includes all values."""
    scale = math.sqrt(6) / math.pi * float(x.std())
    return Gev(float(x.mean()) - float(np.euler_gamma) * scale, scale, 0.0)


def covariance(x: Array, gev: Gev) -> Array | None:
    """Return the covariance of (mu, sigma, xi), shape (3, 3), at the maximum. It is the inverse of
    the observed information, from second differences of the log-likelihood (Coles 2001, section
    2.6.4). None if the likelihood has no regular maximum, such as at an edge of the support."""
    unit = np.array([gev.scale, gev.scale, 1.0])
    step = 1e-3 / math.sqrt(x.size / 100)

    def likelihood(offset: Array) -> float:
        return log_likelihood(x, Gev(*(np.array(gev) + step * unit * offset)))

    axes = np.eye(3)
    information = np.empty((3, 3))
    for i, j in np.ndindex(3, 3):
        plus, minus = axes[i] + axes[j], axes[i] - axes[j]
        corners = likelihood(plus) - likelihood(minus) - likelihood(-minus) + likelihood(-plus)
        information[i, j] = -corners / (4 * step * step)
    if not np.all(np.isfinite(information)) or np.linalg.eigvalsh(information)[0] <= 0:
        return None
    return cast(Array, np.linalg.inv(information) * np.outer(unit, unit))


def anderson_darling(x: Array, gev: Gev) -> float:
    """Return A² of `x` against `gev` (Anderson and Darling 1954), which emphasises the tails."""
    u = np.clip(cdf(np.sort(x), gev), 1e-300, 1 - 1e-16)
    weights = 2 * np.arange(1, x.size + 1) - 1
    return float(-x.size - np.mean(weights * (np.log(u) + np.log1p(-u[::-1]))))
