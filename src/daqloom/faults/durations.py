"""How long failures last: distribution with confidence bands, and what outlasts a time-out.

A failure that had not ended when the log did has lasted for at least that long (right-censored):
shares are Kaplan and Meier's (1958), and their pointwise bands those of Greenwood's variance on the
scale log(−log), which stay between 0 and 1 (Kalbfleisch and Prentice 1980); where all or none have
ended, the binomial one.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from daqloom.faults.failure import Failure

Array = NDArray[np.float64]
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Distribution:
    """Share of failures that have ended by a duration."""

    duration_s: Array
    """At which the share grows, ascending (s)."""
    share: Array
    low: Array
    """Of the band, of `CONFIDENCE`."""
    high: Array
    failures: int
    """Of which they are shares."""
    seen_s: float
    """Longest time for which a failure was seen; shares of longer ones are not known unless all
    have ended."""

    def outlasting(self, time_s: float) -> tuple[float, float, float] | None:
        """Return the share of failures that last longer than `time_s`, and its band; None where the
        log does not tell."""
        has_all_ended = len(self.share) > 0 and self.share[-1] == 1
        if time_s > self.seen_s and not has_all_ended:
            return None
        place = int(np.searchsorted(self.duration_s, time_s, side="right")) - 1
        if place < 0:
            return 1.0, _least(self.failures), 1.0
        left = (1 - each[place] for each in (self.share, self.high, self.low))
        share, low, high = (float(each) for each in left)
        return share, low, high


def distribution(failures: Sequence[Failure], end_s: float) -> Distribution:
    """Return the distribution of the durations of failures in a log that ends at `end_s`."""
    from scipy.stats import CensoredData, ecdf

    lasting = np.array([each.lasts_s(end_s) for each in failures], dtype=float)
    is_over = np.array([each.end_s is not None for each in failures], dtype=bool)
    ended, still = lasting[is_over], lasting[~is_over]
    if not len(ended):
        none = np.array([], dtype=float)
        return Distribution(none, none, none, none, len(still), still.max(initial=0.0))
    found = ecdf(CensoredData(uncensored=ended, right=still))
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # that a band is NaN at its ends
        band = found.cdf.confidence_interval(CONFIDENCE, method="log-log")
    # Where only censored ones have a duration, the share does not grow.
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
    """Return the share that has ended at least where all of so many have: what is left is below it
    with half of what `CONFIDENCE` leaves open (Clopper and Pearson 1934)."""
    return float(((1 - CONFIDENCE) / 2) ** (1 / failures)) if failures else 0.0
