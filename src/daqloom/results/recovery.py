"""Recovery of a run from a fault: the end of the first dip in throughput that exceeds random
fluctuations. Times are in seconds and begin when the run first builds events."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from math import exp, log, pi, sqrt
from statistics import correlation, fmean, median, quantiles, stdev
from typing import NamedTuple

RECOVERED = 0.95
"""Share of the throughput before a fault above which the run counts as recovered."""
BINS_BEFORE = 10
"""Minimum number of bins before a fault from which the usual throughput is computed."""
MOST_BEFORE = 100
UNLIKELY = 0.003
"""Probability that a random fluctuation counts as a dip."""
SHORT = 0.1
"""Probability that a random fluctuation prolongs a dip."""
INSTANT_S = 1e-9


class Bin(NamedTuple):
    """A part of the run."""

    begin_s: float
    end_s: float
    throughput_bps: float


class Ending(NamedTuple):
    """Time when a flow has delivered all its data, and its throughput in the bins of the run."""

    at_s: float
    bins: Sequence[Bin]


Members = Sequence[tuple[float, int]]
"""Pairs of a time (s) and the number of units that build from then on; 0 while they regroup."""


def recovery(
    begin_s: float,
    until_s: float,
    bins: Sequence[Bin],
    members: Members,
    *,
    since_s: float = 0.0,
    detected_s: float | None = None,
    mended_s: float | None = None,
    endings: Sequence[Ending] = (),
) -> float | None:
    """Return the time (s) from a fault until the throughput is as before, scaled by the share of
    members that remain. None if this is not before `until_s`, or nothing was built. The recovery is
    the end of the first dip. A dip is a decrease larger than the random fluctuations of the bins
    from `since_s` to the fault. It begins before the members build again or, if they do not stop,
    at most `BINS_BEFORE` bins after the repair. Without a dip the result is 0, but a recovery is
    never before the detection and the end of the regrouping. The last bin before `until_s` does not
    count, because its events may be reported late."""
    bins = _of_those_left(bins, begin_s, endings)
    usual = _usual(begin_s, since_s, bins)
    building = [count for time_s, count in members if time_s <= begin_s and count]
    after = [each for each in bins if each.end_s > begin_s and each.end_s <= until_s][:-1]
    if not usual or not building or not after:
        return None
    resumed_s = next((at for at, count in members if begin_s < at < until_s and count), until_s)
    width_s = after[0].end_s - after[0].begin_s
    late_s = until_s if mended_s is None else mended_s + BINS_BEFORE * width_s
    leaving = [
        (each.at_s, flow.level_bps)
        for each in endings
        if each.at_s > begin_s and (flow := _usual(begin_s, since_s, each.bins))
    ]
    expected = _expected(usual.level_bps, after, begin_s, members, leaving)
    dip_end_s = usual.end_of_dip(after, expected, min(resumed_s, late_s))
    known_s = begin_s if detected_s is None else _known_s(detected_s, members, until_s)
    if dip_end_s is None or known_s is None or known_s > until_s:
        return None
    return max(dip_end_s, known_s, begin_s) - begin_s


@dataclass(frozen=True)
class _Usual:
    """Statistics of the throughput in the bins before a fault."""

    level_bps: float
    noise_bps: float
    """Standard deviation of a bin."""
    largest_bps: float
    """Largest deficit before the fault: missing throughput, summed over consecutive bins."""
    bins: int
    variance_ratio: float = 1.0
    """Variance of a sum of bins, relative to the sum of independent bins."""

    @property
    def tolerance(self) -> float:
        """Share by which a bin may be below the expected throughput without deficit: up to 0.5."""
        return max(1 - RECOVERED, min(1.5 * self.noise_bps / self.level_bps, 0.5))

    def chance_bps(self, times: float) -> float:
        """Return the deficit over consecutive bins that a random fluctuation exceeds with
        probability 1 / `times`. The deficit of independent bins has an exponential tail (Siegmund,
        Sequential Analysis, 1985). For Poisson counts of equal mean and variance, its rate r solves
        1 - exp(-r) = r (1 - `allowed`). The tail is wider if the variance is from few bins, as in
        Student's t."""
        share = 1 - self.tolerance
        rate = 1 / share
        for _ in range(9):  # Newton's method, from above
            rate -= (1 - exp(-rate) - share * rate) / (exp(-rate) - share)
        wider = self.bins / 2 * (exp(2 * log(times) / self.bins) - 1)
        return self.noise_bps**2 / self.level_bps * self.variance_ratio * wider / rate

    def end_of_dip(
        self, after: Sequence[Bin], expected_bps: Sequence[float], begins_by_s: float
    ) -> float | None:
        """Return the end of the first dip that begins before `begins_by_s`. In a dip, the
        cumulative deficit (Page, Biometrika 41, 1954) exceeds random fluctuations; the dip ends at
        the maximum. Without a dip, return the beginning of the bins; None if it does not end."""
        least_bps, slack_bps = 0.0, self.chance_bps(1 / SHORT)
        missing: list[float] = []  # cumulative deficit, bin by bin
        deficit = highest = 0.0
        for place, (each, usual_bps) in enumerate(zip(after, expected_bps, strict=True)):
            deficit = max(0.0, deficit + (1 - self.tolerance) * usual_bps - each.throughput_bps)
            if highest > least_bps and highest - deficit > slack_bps:
                first = next(n for n, sum_ in enumerate(missing) if sum_ >= highest - slack_bps)
                return after[place - len(missing) + first].end_s
            if deficit == 0:
                missing, highest = [], 0.0
            elif not missing and each.begin_s >= begins_by_s:
                break
            else:
                if not missing:  # total probability over all bins: UNLIKELY
                    times = pi**2 / 6 * (place + 1) ** 2 / UNLIKELY
                    least_bps = max(self.largest_bps, self.chance_bps(times))
                missing.append(deficit)
                highest = max(highest, deficit)
        return None if highest > least_bps else after[0].begin_s


def _of_those_left(bins: Sequence[Bin], begin_s: float, endings: Sequence[Ending]) -> Sequence[Bin]:
    """Return the bins without throughput of flows that end before the fault or the bin's end."""
    if not endings:
        return bins
    left = []
    for place, each in enumerate(bins):
        gone = (flow.bins[place] for flow in endings if flow.at_s <= max(each.end_s, begin_s))
        rest_bps = each.throughput_bps - math.fsum(flow.throughput_bps for flow in gone)
        is_nothing = rest_bps < 1e-9 * each.throughput_bps
        left.append(each._replace(throughput_bps=0.0 if is_nothing else rest_bps))
    return left


def _usual(begin_s: float, since_s: float, bins: Sequence[Bin]) -> _Usual | None:
    """Return statistics of the throughput in the bins before a fault; None if nothing was built."""
    before = [each for each in bins if each.end_s <= begin_s]
    recent = [each.throughput_bps for each in before if each.begin_s >= since_s][-MOST_BEFORE:]
    is_undisturbed = len(recent) >= BINS_BEFORE
    rates = recent if is_undisturbed else [each.throughput_bps for each in before[-BINS_BEFORE:]]
    rates = list(dropwhile(lambda rate: rate <= 0, rates))
    if not rates:
        return None
    middle = median(rates)
    apart = median(abs(rate - middle) for rate in rates)
    low, high = middle - 6 * apart, middle + 6 * apart
    if is_undisturbed and not apart and len(rates) > 1:  # most bins are alike
        low, high = quantiles(rates, n=10)[0], quantiles(rates, n=10)[-1]
    cut = [min(max(rate, low), high) for rate in rates]  # such as a backlog after a pause
    rates = cut if any(cut) else rates
    level, noise = fmean(rates), stdev(rates) if len(rates) > 1 else 0.0
    usual = _Usual(level, noise, 0.0, len(rates), _variance_ratio(rates))
    largest = _largest(rates, (1 - usual.tolerance) * level, is_undisturbed)
    return replace(usual, largest_bps=largest)


def _variance_ratio(rates: Sequence[float]) -> float:
    """Return the variance of long sums of bins relative to independent bins. It is (1 + r) / (1 -
    r) for a first-order autoregression with a significant correlation r of neighbours."""
    if len(set(rates[1:-1])) < 2:
        return 1.0
    similar = correlation(rates[:-1], rates[1:])
    return (1 + similar) / max(1 - similar, 0.05) if similar > 2 / sqrt(len(rates)) else 1.0


def _largest(rates: Iterable[float], threshold_bps: float, is_undisturbed: bool) -> float:
    """Return the largest deficit over consecutive bins; 0 if they contain dips of other faults."""
    deficit = largest = 0.0
    for rate in dropwhile(lambda rate: rate < threshold_bps, rates):  # the run begins to build
        deficit = max(0.0, deficit + threshold_bps - rate)
        largest = max(largest, deficit)
    return largest if is_undisturbed else 0.0


def _expected(
    level_bps: float,
    after: Sequence[Bin],
    begin_s: float,
    members: Members,
    leaving: Sequence[tuple[float, float]],
) -> list[float]:
    """Return the expected throughput of each bin after a fault: the level before it, scaled by the
    share of members that remain. During a regrouping the previous members count. Flows that have
    ended, in `leaving` (times, throughputs), are subtracted."""
    building = [(time_s, count) for time_s, count in members if count]
    times_s = [time_s for time_s, _ in building]
    usual_count = building[bisect_right(times_s, begin_s) - 1][1]
    found = []
    for each in after:
        count = building[bisect_right(times_s, each.end_s) - 1][1]
        ended_bps = math.fsum(flow_bps for at_s, flow_bps in leaving if at_s <= each.end_s)
        found.append(min(1, count / usual_count) * max(0.0, level_bps - ended_bps))
    return found


def _known_s(detected_s: float, members: Members, until_s: float) -> float | None:
    """Return when a fault is detected and units have regrouped; None if not before `until_s`."""
    at_s = detected_s + INSTANT_S
    place = bisect_right([time_s for time_s, _ in members], at_s) - 1
    if place < 0 or members[place][1]:
        return detected_s
    return next((time_s for time_s, count in members[place:] if count and time_s < until_s), None)
