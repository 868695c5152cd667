"""The expected time of the slowest of many nodes with random delays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.scenario.schema.distribution import Distribution, Kind

CELLS = 1 << 12
"""Cells of the time axis of distributions."""
WIDE = 12.0
"""Length of the time axis beyond the mean, in standard deviations."""
TAIL = 20.0
"""Further length of the time axis, in means of an exponential delay; it cuts off e^−20."""
MOST_ADDED = 64
"""Maximum number of draws that are convolved one by one; the sum of more counts as Gaussian."""

Times = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Delay:
    """The sum of `draws` independent random delays; a draw below zero counts as zero."""

    kind: Kind
    mean_s: float
    spread_s: float = 0.0
    draws: int = 1

    @property
    def deviation_s(self) -> float:
        """Standard deviation of a draw."""
        return {
            "fixed": 0.0,
            "exponential": self.mean_s,
            "gaussian": self.spread_s,
            "uniform": self.spread_s / math.sqrt(3),
        }[self.kind]

    @property
    def sum_mean_s(self) -> float:
        """Mean of the sum of all draws (s)."""
        return self.draws * self.mean_s

    @property
    def sum_deviation_s(self) -> float:
        """Standard deviation of the sum."""
        return math.sqrt(self.draws) * self.deviation_s

    def below(self, time_s: float) -> float:
        """Probability that a draw is below some time."""
        if time_s <= 0:
            return 0.0
        if self.kind == "exponential":
            return -math.expm1(-time_s / self.mean_s)
        if self.kind == "uniform":
            return min(1.0, max(0.0, 0.5 + (time_s - self.mean_s) / (2 * self.spread_s)))
        return chance_below((time_s - self.mean_s) / self.spread_s)


def delay_of(time: Distribution, draws: int = 1) -> Delay:
    """Return the delay for a distribution; a histogram becomes a Gaussian of equal mean and
    width."""
    measured = time.measured_times
    if measured is None:
        return Delay(time.kind, time.mean, time.spread, draws)
    values_s, counts = map(np.asarray, measured)
    mean_s = float(np.average(values_s, weights=counts))
    variance = float(np.average((values_s - mean_s) ** 2, weights=counts))
    return Delay("gaussian", mean_s, math.sqrt(variance), draws)


class Chance:
    """The random part of a node's time, independent between nodes: delays and Gaussian noise."""

    def __init__(self, delays: Sequence[Delay], deviation_s: float = 0.0) -> None:
        """Add all `delays` and Gaussian noise with mean zero and the given standard deviation."""
        added = [d for d in delays if d.deviation_s > 0 and d.draws <= MOST_ADDED]
        rest = [d for d in delays if d not in added]
        noise_s = math.hypot(deviation_s, *(delay.sum_deviation_s for delay in rest))
        self.mean_s = sum(delay.sum_mean_s for delay in delays)
        self._certain_s = sum(delay.sum_mean_s for delay in rest)
        self._density = _density(added, noise_s) if added or noise_s > 0 else None

    def slowest_s(self, times_s: Times) -> float:
        """Return E[max over nodes of (time + random part)]; `times_s`, shape (nodes,), is the
        constant part.

        E[max] = x₀ + ∫ (1 − Π_j F(x − t_j)) dx from an x₀ below all values, with F the distribution
        function of the random part. The random part is a sum, so its density is a convolution,
        computed by Fourier transform. For N equal times the increase over their value is J·(1 + 1/2
        + … + 1/N) for exponential delays with mean J, and mean + spread·(N − 1)/(N + 1) for uniform
        ones. For Gaussian ones it is the mean plus 1.03 σ for N = 4, or 2.51 σ for N = 100.
        """
        longest_s = float(times_s.max()) + self._certain_s
        if self._density is None:
            return longest_s
        origin_s, step_s, density = self._density
        logs = np.log(np.maximum(np.cumsum(density), 1e-300))
        behind = np.round((times_s.max() - times_s) / step_s)
        behind = behind[behind < len(logs)].astype(int)
        # ln Π F(x − t_j): the sum of the logarithms, shifted by each node's number of cells.
        counts = np.bincount(behind, minlength=len(logs)).astype(np.float64)
        spectrum = np.fft.rfft(logs, 2 * len(logs)) * np.conj(np.fft.rfft(counts, 2 * len(logs)))
        product = np.exp(np.minimum(np.fft.irfft(spectrum)[: len(logs)], 0.0))
        return longest_s + origin_s + step_s * float((1 - product).sum())


def _density(delays: Sequence[Delay], deviation_s: float) -> tuple[float, float, Times]:
    """Return the density of delays plus noise: axis start (s), cell width (s), probabilities."""
    mean_s = sum(delay.sum_mean_s for delay in delays)
    wide_s = math.hypot(deviation_s, *(delay.sum_deviation_s for delay in delays))
    tail_s = max((d.mean_s for d in delays if d.kind == "exponential"), default=0.0)
    origin_s = -WIDE * deviation_s
    step_s = (mean_s + WIDE * wide_s + TAIL * tail_s - origin_s) / CELLS
    edges = (np.arange(CELLS + 1) - 0.5) * step_s
    spectrum = np.ones(CELLS + 1, np.complex128)  # padded to 2·CELLS: no wrap-around
    if deviation_s > 0:
        noise = np.diff([chance_below((edge + origin_s) / deviation_s) for edge in edges])
        spectrum *= np.fft.rfft(noise, 2 * CELLS)
    for delay in delays:
        chances = np.diff([delay.below(edge) for edge in edges])
        spectrum *= np.fft.rfft(chances, 2 * CELLS) ** delay.draws
    return origin_s, step_s, np.maximum(np.fft.irfft(spectrum)[:CELLS], 0.0)


def chance_below(deviations: float) -> float:
    """Return the probability that a Gaussian value is below mean + `deviations` standard
    deviations."""
    return 0.5 * math.erfc(-deviations / math.sqrt(2))
