"""Generator of logs: failures drawn for the links of a network from known distributions.

The rates at which links have incidents are gamma-distributed. An incident is either repaired after
a log-normal time, or the link flaps: it returns immediately and fails again a few times. In test
periods, further short failures occur on any link.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from daqloom.base.output import written_whole
from daqloom.faults import FaultsError
from daqloom.faults.logs.clock import DAY_S
from daqloom.faults.statistics.failure import Failure, Period

HOUR_S = 3600.0
CAUSES = ("dirty connector", "hardware fault")
TEST = "performance test"


@dataclass(frozen=True)
class Truth:
    """Parameters of a generated log. The default counts are from LHCb's poster on failures: 1384 in
    March 2024, and 549 in test periods. All other defaults are assumptions."""

    begin_s: float = datetime(2024, 3, 1, tzinfo=UTC).timestamp()
    days: int = 31
    failures: int = 1384
    """Number of failures outside test periods, including each one of flapping links."""
    in_tests: int = 549
    tests: tuple[tuple[float, float], ...] = ((5, 8), (12.25, 10), (19.5, 6), (26, 12))
    """Start of each test period (days, from 0) and its length (h)."""
    link_shape: float = 0.25
    """Shape of the gamma distribution of link rates; a smaller shape gives more different rates."""
    flapping: float = 0.3
    """Share of incidents in which the link flaps."""
    flaps: float = 6.0
    """Mean number of failures in a flapping incident: 2 plus a geometric number from 0."""
    flap_gap_s: float = 8.0
    """Mean time between failures of a flapping incident (exponential)."""
    flap_s: float = 2.0
    """Mean duration of its failures except the last one (exponential)."""
    repair_median_s: float = 90.0
    repair_spread: float = 1.8
    """Standard deviation of the natural logarithm of repair times."""
    test_s: float = 20.0
    """Mean duration of a failure in a test period (exponential)."""

    @property
    def periods(self) -> tuple[Period, ...]:
        """Test periods."""
        begins = [(self.begin_s + DAY_S * day, hours) for day, hours in self.tests]
        return tuple(Period(begin_s, begin_s + HOUR_S * hours) for begin_s, hours in begins)

    @property
    def end_s(self) -> float:
        """End of the log."""
        return self.begin_s + DAY_S * self.days


def clip_tests(truth: Truth) -> Truth:
    """Return parameters with only those test periods that lie within the length of the log."""
    tests = tuple((day, hours) for day, hours in truth.tests if day + hours / 24 <= truth.days)
    return replace(truth, tests=tests)


def link_rates(links: int, truth: Truth, random: np.random.Generator) -> np.ndarray:
    """Return the share of each link in all incidents."""
    rates = random.gamma(truth.link_shape, size=links) + 1e-12
    return np.asarray(rates / rates.sum())


def generate(links: Sequence[str], truth: Truth, seed: int) -> list[Failure]:
    """Return failures of links, sorted by begin; equal seeds give equal failures. Raises
    FaultsError if `truth` has no days, or `links` is empty."""
    if not links or not truth.days:
        raise FaultsError("a log needs at least one link and one day")
    if truth.in_tests and not truth.tests:
        raise FaultsError(
            f"no test period lies within {truth.days} days, for {truth.in_tests} failures in "
            "tests; give a longer log, or --in-tests 0"
        )
    random = np.random.default_rng(seed)
    rates = link_rates(len(links), truth, random)
    found: list[Failure] = []
    while len(found) < truth.failures:
        link = links[random.choice(len(links), p=rates)]
        cause = CAUSES[int(random.random() < 0.4)]
        begin_s = random.uniform(truth.begin_s, truth.end_s)
        for failure in _incident(link, cause, begin_s, truth, random):
            in_test = any(each.begin_s <= failure.begin_s < each.end_s for each in truth.periods)
            if not in_test and failure.begin_s < truth.end_s and len(found) < truth.failures:
                found.append(failure)
    hours = np.array([hours for _, hours in truth.tests])
    for _ in range(truth.in_tests):
        period = truth.periods[random.choice(len(hours), p=hours / hours.sum())]
        begin_s = random.uniform(*period)
        end_s = begin_s + random.exponential(truth.test_s)
        found.append(Failure(begin_s, end_s, links[int(random.integers(len(links)))], TEST))
    return sorted(_apart(found), key=lambda it: (it.begin_s, it.link))


def _incident(
    link: str, cause: str, begin_s: float, truth: Truth, random: np.random.Generator
) -> list[Failure]:
    """Return the failures of one incident; its repair ends the last one."""
    found = []
    if random.random() < truth.flapping:
        for _ in range(int(random.geometric(1 / max(1.0, truth.flaps - 1)))):
            end_s = begin_s + random.exponential(truth.flap_s)
            found.append(Failure(begin_s, end_s, link, cause))
            begin_s = end_s + random.exponential(truth.flap_gap_s)
    repair_s = truth.repair_median_s * float(np.exp(truth.repair_spread * random.normal()))
    return [*found, Failure(begin_s, begin_s + repair_s, link, cause)]


def _apart(found: Sequence[Failure]) -> list[Failure]:
    """Return the failures; one that would overlap with another failure of its link is delayed."""
    free_s: dict[str, float] = {}
    apart = []
    for failure in sorted(found, key=lambda it: it.begin_s):
        later_s = max(0.0, free_s.get(failure.link, 0.0) - failure.begin_s)
        assert failure.end_s is not None
        moved = failure._replace(begin_s=failure.begin_s + later_s, end_s=failure.end_s + later_s)
        free_s[moved.link] = (moved.end_s or 0.0) + 1.0
        apart.append(moved)
    return apart


def write_table(path: Path, failures: Sequence[Failure]) -> None:
    """Write failures as a table for `daqloom faults log`, with UTC times. Raises OutputError."""
    with written_whole(path) as scratch, scratch.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("begin", "end", "link", "cause"))
        for failure in failures:
            end = "" if failure.end_s is None else _time(failure.end_s)
            rows.writerow((_time(failure.begin_s), end, failure.link, failure.cause))


def write_periods(path: Path, periods: Sequence[Period]) -> None:
    """Write a file with a test period per line. Raises OutputError."""
    with written_whole(path) as scratch:
        lines = [f"{_time(each.begin_s)}/{_time(each.end_s)}\n" for each in periods]
        scratch.write_text("".join(lines))


def _time(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds")
