"""Which links fail: counts, downtime, whether links differ, and the few that make most of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from daqloom.base.words import natural_key
from daqloom.faults.failure import Failure

NO_CAUSE = "not told"


@dataclass(frozen=True)
class LinkTotal:
    """What one link contributes."""

    link: str
    failures: int
    down_s: float
    """Cumulative (s); of a failure that had not ended, until the log's end."""
    causes: dict[str, int]

    @property
    def causes_in_words(self) -> str:
        """`dirty connector 3, not told 1`."""
        return ", ".join(f"{cause or NO_CAUSE} {count}" for cause, count in self.causes.items())


@dataclass(frozen=True)
class Dispersion:
    """Whether all links fail alike: the variance of their counts over its mean, 1 if they do."""

    links: int
    index: float
    p_value: float
    """How likely an index as large is among links that fail alike (χ² with links − 1 degrees of
    freedom; Fisher 1950)."""


def by_link(failures: Sequence[Failure], end_s: float) -> tuple[LinkTotal, ...]:
    """Return the links that failed, most failures first, of equal ones the longest down."""
    of_link: dict[str, list[Failure]] = defaultdict(list)
    for failure in failures:
        of_link[failure.link].append(failure)
    totals = []
    for link, own in of_link.items():
        causes: dict[str, int] = defaultdict(int)
        for failure in own:
            causes[failure.cause] += 1
        down_s = sum(each.lasts_s(end_s) for each in own)
        totals.append(LinkTotal(link, len(own), down_s, dict(causes)))
    return tuple(sorted(totals, key=lambda it: (-it.failures, -it.down_s, natural_key(it.link))))


def dispersion(totals: Sequence[LinkTotal], links: int) -> Dispersion | None:
    """Return how much `links` differ, those that never failed included; None where there is no
    failure or only one link."""
    from scipy.stats import chi2

    failures = sum(total.failures for total in totals)
    if links < 2 or not failures:
        return None
    mean = failures / links
    squares = sum((total.failures - mean) ** 2 for total in totals)
    squares += (links - len(totals)) * mean**2
    index = squares / mean / (links - 1)
    return Dispersion(links, index, float(chi2.sf(index * (links - 1), links - 1)))


def most_of(totals: Sequence[LinkTotal], share: float) -> int:
    """Return how many links, the worst ones, make at least this share of all failures."""
    wanted = share * sum(total.failures for total in totals)
    made = 0
    for place, total in enumerate(totals):
        if made >= wanted:
            return place
        made += total.failures
    return len(totals)
