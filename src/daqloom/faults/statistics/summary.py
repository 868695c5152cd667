"""Statistics of a log's failures, in the variants of fig. 3 in LHCb's poster on failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from daqloom.faults.logs.clock import DAY_S, day_name
from daqloom.faults.statistics.by_link import (
    NO_CAUSE,
    Dispersion,
    LinkTotal,
    by_link,
    dispersion,
    most_of,
)
from daqloom.faults.statistics.durations import Distribution, distribution
from daqloom.faults.statistics.failure import (
    Failure,
    FailureHistory,
    Period,
    merge,
    outside,
    time_without,
    union,
)
from daqloom.faults.statistics.intervals import Intervals, intervals

ALL, OUTSIDE, MERGED = "all", "outside tests", "flapping merged"
TIME_OUTS_S = (1.0, 10.0, 60.0, 600.0, 3600.0)
MOST_SHARE = 0.5
LEAST_DAYS = 1 / 24
"""Least length of a log (days) for which failures per day are given."""


@dataclass(frozen=True)
class Variant:
    """Failures of a log, counted in one of three ways (`variants`)."""

    name: str
    failures: tuple[Failure, ...]
    observed: Period
    links: int
    """Number of links of the network; 0 if unknown."""
    tests: tuple[Period, ...] = ()
    """Test periods that are left out together with their failures."""

    @property
    def days(self) -> float:
        """Length of the log outside `tests`."""
        begin_s, end_s = (time_without(at_s, self.tests) for at_s in self.observed)
        return (end_s - begin_s) / DAY_S

    @property
    def per_day(self) -> float | None:
        """Mean number of failures per day; None for a log shorter than `LEAST_DAYS`."""
        return len(self.failures) / self.days if self.days >= LEAST_DAYS else None

    @cached_property
    def totals(self) -> tuple[LinkTotal, ...]:
        """Totals by link, most failures first."""
        return _totals(self.failures, self.observed.end_s)

    @cached_property
    def durations(self) -> Distribution:
        """Distribution of the durations."""
        return distribution(self.failures, self.observed.end_s)

    @property
    def median_s(self) -> float | None:
        """Shortest duration within which half of the failures ended (s); None if fewer ended."""
        ended = np.flatnonzero(self.durations.share >= 0.5)
        return float(self.durations.duration_s[ended[0]]) if len(ended) else None

    @cached_property
    def intervals(self) -> Intervals:
        """Times from one failure to the next, on any link."""
        return _intervals(tuple(time_without(each.begin_s, self.tests) for each in self.failures))

    @property
    def dispersion(self) -> Dispersion | None:
        """Dispersion of the links' failure counts; None if the network is unknown."""
        return dispersion(self.totals, self.links)

    @property
    def causes(self) -> Counter[str]:
        """Number of failures by cause."""
        return Counter(each.cause or NO_CAUSE for each in self.failures)

    @property
    def by_day(self) -> dict[str, int]:
        """Number of failures that began on each day (UTC), including days without failures."""
        if not self.failures:
            return {}
        first, last = (int(at // DAY_S) for at in self.observed)
        counts = Counter(int(each.begin_s // DAY_S) for each in self.failures)
        return {day_name(day): counts[day] for day in range(first, min(last, first + 36_600) + 1)}

    def record(self, time_outs_s: Sequence[float]) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        times, totals, durations = self.intervals, self.totals, self.durations
        outlasting = {}
        for time_out_s in time_outs_s:
            shares = durations.outlasting(time_out_s) or (None, None, None)
            outlasting[f"{time_out_s:g}"] = dict(zip(("share", "low", "high"), shares, strict=True))
        return {
            "failures": len(self.failures),
            "per_day": self.per_day,
            "not_ended": sum(each.end_s is None for each in self.failures),
            "links_failed": len(totals),
            "links_with_half": most_of(totals, MOST_SHARE),
            "down_s": sum(total.down_s for total in totals),
            "duration_median_s": self.median_s,
            "outlasting_s": outlasting,
            "causes": dict(self.causes.most_common()),
            "dispersion": asdict(self.dispersion) if self.dispersion else None,
            "interval_mean_s": float(times.interval_s.mean()) if len(times.interval_s) else None,
            "interval_fits": {
                fit.name: {key: value for key, value in asdict(fit).items() if key != "name"}
                for fit in times.fits
            },
            "burst_p_value": times.burst_p_value if times.fits else None,
            "by_day": self.by_day,
            "by_link": [asdict(total) for total in totals],
        }


def variants(
    found: FailureHistory, tests: Sequence[Period], gap_s: float, links: int = 0
) -> Mapping[str, Variant]:
    """Return three variants: all failures, failures that begin outside test periods, and the latter
    with the failures of a flapping link merged into one."""
    real = outside(found.failures, tests)
    apart = tuple(union(tests))
    kinds = (
        (ALL, found.failures, ()),
        (OUTSIDE, real, apart),
        (MERGED, merge(real, gap_s), apart),
    )
    return {name: Variant(name, own, found.observed, links, left) for name, own, left in kinds}


def distinct(kinds: Mapping[str, Variant]) -> Mapping[str, Variant]:
    """Return the variants by name; variants with the same failures over the same time become one,
    called `all = outside tests`."""
    found: dict[tuple[object, ...], tuple[list[str], Variant]] = {}
    for name, kind in kinds.items():
        found.setdefault((kind.failures, kind.tests), ([], kind))[0].append(name)
    return {" = ".join(names): kind for names, kind in found.values()}


# Caches: variants with the same failures share counts, fits and tests.
@lru_cache(maxsize=3)
def _totals(failures: tuple[Failure, ...], until_s: float) -> tuple[LinkTotal, ...]:
    return by_link(failures, until_s)


@lru_cache(maxsize=3)
def _intervals(begin_s: tuple[float, ...]) -> Intervals:
    return intervals(np.array(begin_s, dtype=float))
