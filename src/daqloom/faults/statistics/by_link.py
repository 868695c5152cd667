"""Failures by link: counts, downtime, dispersion, and the links that cause most failures."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from daqloom.base import lazy
from daqloom.base.words import natural_key
from daqloom.faults.statistics.failure import Failure

with lazy.imports():
    from scipy import stats

NO_CAUSE = "unknown"
"""Text in place of a missing cause."""


@dataclass(frozen=True)
class LinkTotal:
    """Failures of one link."""

    link: str
    failures: int
    down_s: float
    """Total downtime (s); a failure that had not ended counts to the end of the log."""
    causes: dict[str, int]

    @property
    def causes_in_words(self) -> str:
        """Return causes and their counts: `dirty connector 3, unknown 1`."""
        return ", ".join(f"{cause or NO_CAUSE} {count}" for cause, count in self.causes.items())


@dataclass(frozen=True)
class Dispersion:
    """Ratio of variance to mean of the links' failure counts: 1 if all links fail at one rate."""

    links: int
    index: float
    p_value: float
    """Probability of an index at least as large if all links fail at one rate (χ² with links − 1
    degrees of freedom; Fisher 1950)."""


def by_link(failures: Sequence[Failure], end_s: float) -> tuple[LinkTotal, ...]:
    """Return the links that failed, by number of failures, then by downtime, largest first."""
    of_link: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        of_link[failure.link].append(failure)
    totals = []
    for link, own in of_link.items():
        down_s = sum(each.lasts_s(end_s) for each in own)
        causes = dict(Counter(failure.cause for failure in own))
        totals.append(LinkTotal(link, len(own), down_s, causes))
    return tuple(sorted(totals, key=lambda it: (-it.failures, -it.down_s, natural_key(it.link))))


def dispersion(totals: Sequence[LinkTotal], links: int) -> Dispersion | None:
    """Return the dispersion for `links` links, including those without failures; None if nothing
    failed or there is a single link."""
    failures = sum(total.failures for total in totals)
    if links < 2 or not failures:
        return None
    mean = failures / links
    squares = sum((total.failures - mean) ** 2 for total in totals)
    squares += (links - len(totals)) * mean**2
    index = squares / mean / (links - 1)
    return Dispersion(links, index, float(stats.chi2.sf(index * (links - 1), links - 1)))


def most_of(totals: Sequence[LinkTotal], share: float) -> int:
    """Return the least number of links, worst first, whose failures make up `share` of all."""
    made = list(accumulate(total.failures for total in totals))
    return bisect.bisect_left(made, share * made[-1]) + 1 if made else 0
