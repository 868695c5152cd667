"""Durations of failures: distribution with confidence bands, and share that exceeds a time.

A failure that had not ended at the end of the log is right-censored. Shares are by Kaplan and Meier
(1958). Their pointwise bands use Greenwood's variance on the scale log(−log), which keeps bands
between 0 and 1 (Kalbfleisch and Prentice 1980); binomial if all or no failures have ended.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.base import lazy
from daqloom.faults.statistics.failure import Failure

with lazy.imports():
    from scipy import stats

Array = NDArray[np.float64]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Distribution:
    """Share of failures that have ended within a duration, with its confidence band."""

    duration_s: Array
    """Durations at which the share increases, ascending (s)."""
    share: Array
    low: Array
    high: Array
    """Ends of the band, with `CONFIDENCE`."""
    failures: int
    longest_s: float
    """Longest known duration (s); beyond it, shares are unknown unless all failures have ended."""

    def outlasting(self, time_s: float) -> tuple[float, float, float] | None:
        """Return the share of failures longer than `time_s`, and its band; None if the log is too
        short for an answer."""
        has_all_ended = len(self.share) > 0 and self.share[-1] == 1
        if time_s > self.longest_s and not has_all_ended:
            return None
        place = int(np.searchsorted(self.duration_s, time_s, side="right")) - 1
        if place < 0:
            return 1.0, _least(self.failures), 1.0
        left = (1 - each[place] for each in (self.share, self.high, self.low))
        share, low, high = (float(each) for each in left)
        return share, low, high


def distribution(failures: Sequence[Failure], end_s: float) -> Distribution:
    """Return the distribution of failure durations for a log that ends at `end_s`."""
    lasting = np.array([each.lasts_s(end_s) for each in failures], dtype=float)
    is_over = np.array([each.end_s is not None for each in failures], dtype=bool)
    ended, still = lasting[is_over], lasting[~is_over]
    if not len(ended):
        none = np.array([], dtype=float)
        return Distribution(none, none, none, none, len(still), still.max(initial=0.0))
    found = stats.ecdf(stats.CensoredData(uncensored=ended, right=still))
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # the band is NaN at its ends
        band = found.cdf.confidence_interval(CONFIDENCE, method="log-log")
    # The share does not increase at durations that only censored failures have.
    grows = np.isin(found.cdf.quantiles, ended)
    low, high = band.low.probabilities[grows], band.high.probabilities[grows]
    count = len(ended) + len(still)
    return Distribution(
        found.cdf.quantiles[grows],
        found.cdf.probabilities[grows],
        np.where(np.isnan(low), _least(count), low),
        np.where(np.isnan(high), 1.0, high),
        count,
        lasting.max(),
    )


def _least(failures: int) -> float:
    """Return the lower bound of the share that has ended, if all observed failures have: with it,
    such a sample has probability (1 − `CONFIDENCE`) / 2 (Clopper and Pearson 1934)."""
    return float(((1 - CONFIDENCE) / 2) ** (1 / failures)) if failures else 0.0
