"""Failures of links from changes of ports, test periods, and merging of flapping links."""

from __future__ import annotations

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from daqloom.faults.logs.change import LogContent
from daqloom.faults.statistics.links import Links


class Failure(NamedTuple):
    """An interval of time in which a link was down."""

    begin_s: float
    """Seconds since 1970."""
    end_s: float | None
    """End of the failure; None if it lasted beyond the end of the log."""
    link: str
    cause: str = ""
    flaps: int = 1
    """Number of failures merged into this one."""

    def lasts_s(self, until_s: float) -> float:
        """Return the downtime (s) in a log that ends at `until_s`."""
        return max(0.0, (until_s if self.end_s is None else self.end_s) - self.begin_s)


class Period(NamedTuple):
    """An interval of time (s since 1970)."""

    begin_s: float
    end_s: float


@dataclass(frozen=True)
class FailureHistory:
    """Failures of a log by begin, and counts of changes without a counterpart."""

    failures: tuple[Failure, ...]
    observed: Period
    unpaired: Counter[str]
    """Counts of `down twice`, `up twice` (from the other end, or a lost line), `unknown port`."""


def failures_of(log: LogContent, links: Links) -> FailureHistory:
    """Return the failures in a log: each lasts from the first report of a port that went down until
    the first report that an end of the link came up. Reports of the other end are repetitions."""
    odd: Counter[str] = Counter()
    failures: list[Failure] = []
    down: dict[str, tuple[float, str]] = {}
    for change in sorted(log.changes, key=lambda each: each.at_s):
        link = links.name(change.port)
        if link is None:
            odd["unknown port"] += 1
        elif change.is_up and link in down:
            begin_s, cause = down.pop(link)
            failures.append(Failure(begin_s, change.at_s, link, cause or change.cause))
        elif change.is_up or link in down:
            odd["up twice" if change.is_up else "down twice"] += 1
        else:
            down[link] = (change.at_s, change.cause)
    failures += [Failure(begin_s, None, link, cause) for link, (begin_s, cause) in down.items()]
    for outage in log.outages:
        link = links.name(outage.port)
        if link is None:
            odd["unknown port"] += 1
        else:
            failures.append(Failure(outage.begin_s, outage.end_s, link, outage.cause))
    begin_s = min([log.begin_s, *(each.begin_s for each in failures)])
    end_s = max([log.end_s, *(each.end_s or each.begin_s for each in failures)])
    observed = Period(begin_s, end_s) if begin_s <= end_s else Period(0.0, 0.0)
    return FailureHistory(tuple(sorted(failures, key=_by_begin)), observed, odd)


def _by_begin(failure: Failure) -> tuple[float, str]:
    return failure.begin_s, failure.link


def union(periods: Iterable[Period]) -> list[Period]:
    """Return the union of the periods, as periods that neither overlap nor touch, ascending."""
    found: list[Period] = []
    for period in sorted(periods):
        if found and period.begin_s <= found[-1].end_s:
            found[-1] = Period(found[-1].begin_s, max(found[-1].end_s, period.end_s))
        else:
            found.append(period)
    return found


def outside(failures: Iterable[Failure], tests: Sequence[Period]) -> tuple[Failure, ...]:
    """Return the failures that begin outside all test periods."""
    periods = union(tests)
    begins = [period.begin_s for period in periods]

    def is_test(failure: Failure) -> bool:
        place = bisect.bisect_right(begins, failure.begin_s) - 1
        return place >= 0 and failure.begin_s < periods[place].end_s

    return tuple(each for each in failures if not is_test(each))


def time_without(at_s: float, tests: Sequence[Period]) -> float:
    """Return the time on a clock that stops during test periods; these must not overlap."""
    return at_s - sum(max(0.0, min(at_s, end_s) - begin_s) for begin_s, end_s in tests)


def merge(failures: Iterable[Failure], gap_s: float) -> tuple[Failure, ...]:
    """Return failures, those of a link with at most `gap_s` between them merged into one."""
    of_link: dict[str, list[Failure]] = defaultdict(list)
    for failure in sorted(failures, key=_by_begin):
        earlier = of_link[failure.link]
        last = earlier[-1] if earlier else None
        if last and (last.end_s is None or failure.begin_s - last.end_s <= gap_s):
            end_s = None
            if last.end_s is not None and failure.end_s is not None:
                end_s = max(last.end_s, failure.end_s)
            earlier[-1] = last._replace(
                end_s=end_s, cause=last.cause or failure.cause, flaps=last.flaps + failure.flaps
            )
        else:
            earlier.append(failure)
    return tuple(sorted((each for all_of in of_link.values() for each in all_of), key=_by_begin))
