"""Cost of link failures, from the statistics of a log and the throughput with broken cables.

With k cables between switches down, and a share s of the units cut off by host links that are down,
the throughput is (1 - s) T(k) instead of T(0). The loss is the mean over the time of the log
outside test periods. Intervals come from the percentile bootstrap (Efron 1979), which resamples the
days of the log and, for each k, the simulations with random broken cables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from daqloom.faults import FaultsError
from daqloom.faults.costs.network import HOST_LINK, Network
from daqloom.faults.costs.overlap import Overlap, overlap
from daqloom.faults.costs.throughput import Throughput
from daqloom.faults.statistics.by_link import LinkTotal
from daqloom.faults.statistics.failure import Failure
from daqloom.faults.statistics.summary import Variant

Array = NDArray[np.float64]
MONTH_H = 720.0
"""Length of a month: 30 days."""
CONFIDENCE = 0.95
SAMPLES = 2000
"""Number of bootstrap samples for an interval."""
FEWEST_DAYS = 5
"""Least length of a log (days) for which intervals are given."""
WORST = 10
"""Number of links with most downtime that are listed; one remedy assumes that they never fail."""
SWEEP_S_PER_HOST = 0.35e-3
"""Least time per host in which OpenSM computes new tables (docs/explanation/failures.md)."""
USUAL_REPAIRS_S = (600.0, 3600.0)


@dataclass(frozen=True)
class Estimate:
    """A value and its interval of `CONFIDENCE`; no interval if the log has too few days."""

    value: float
    low: float | None = None
    high: float | None = None

    def times(self, factor: float, plus: float = 0.0) -> Estimate:
        """Return factor · self + plus, with the interval's ends in ascending order."""
        if self.low is None or self.high is None:
            return Estimate(factor * self.value + plus)
        ends = sorted((factor * self.low + plus, factor * self.high + plus))
        return Estimate(factor * self.value + plus, *ends)


@dataclass(frozen=True)
class Kind:
    """Failures of all links of one kind."""

    kind: str
    links: int
    failures: int
    per_month: float
    mean_s: float
    """Mean duration of a failure."""
    down_s: float
    """Total downtime."""
    hours_lost: float
    """Hours of full throughput lost in a month because of these failures."""


@dataclass(frozen=True)
class Worst:
    """A link, and the hours of full throughput that its failures cost in a month. While k cables
    are down, each is charged a k-th of the loss."""

    total: LinkTotal
    kind: str
    hours_lost: float


@dataclass(frozen=True)
class Way:
    """A way to run the system, or to repair it, with the resulting throughput."""

    name: str
    full_bps: float
    """Throughput with nothing broken."""
    mean_bps: Estimate
    """Mean over the time of the log."""
    hours_lost: Estimate
    """Lost hours in a month, of the full throughput of the system as it is; negative: gained."""


@dataclass(frozen=True)
class Cost:
    """Cost of the failures in a log for a system, and effect of possible remedies."""

    month: Variant
    network: Network
    throughputs: Mapping[str, Throughput]
    """Throughput by way of running the system; the first is the system as it is."""
    repairs_s: tuple[float, ...]
    """Times within which all failures might be repaired."""
    sweep_s: float
    """Time after which forwarding tables avoid a failed cable (s)."""
    seed: int = 1

    @property
    def as_it_is(self) -> Throughput:
        """Throughput of the system as it is."""
        return next(iter(self.throughputs.values()))

    @cached_property
    def overlap(self) -> Overlap:
        """Number of links that are down, over time."""
        return self._overlap(self.month.failures)

    @property
    def most(self) -> int:
        """Largest number of cables between switches that were down at the same time."""
        return int(self.overlap.time_s.shape[1]) - 1

    @cached_property
    def at_once(self) -> list[Estimate]:
        """Share of time in which 0, 1, 2, … cables between switches were down."""
        time_s = self.overlap.time_s
        drawn = self._drawn_days @ time_s
        drawn /= drawn.sum(axis=1, keepdims=True)
        shares = time_s.sum(axis=0) / time_s.sum()
        return [self._estimate(float(share), drawn[:, k]) for k, share in enumerate(shares)]

    @cached_property
    def lost(self) -> Estimate:
        """Share of the full throughput that the failures cost."""
        return self.ways[0].hours_lost.times(1 / MONTH_H)

    @cached_property
    def ways(self) -> list[Way]:
        """The system as it is, in other ways, and in other ways only while a cable is broken."""
        (first, own), *others = self.throughputs.items()
        found = [self._way(name, each, self.overlap) for name, each in self.throughputs.items()]
        for name, changed in others:
            if self.most and changed.full_bps != own.full_bps:
                name = f"{first}; while a cable is broken: {name}"
                found.append(self._way(name, changed.while_whole(own), self.overlap))
        return found

    @cached_property
    def faster_repairs(self) -> list[tuple[float, Way]]:
        """The system as it is, if no failure lasted longer than a time (s)."""
        return [(cap_s, self._faster_repair(cap_s)) for cap_s in self.repairs_s]

    def hours_repaired(self, cap_s: float) -> float:
        """Return the hours lost in a month if no failure lasted longer than `cap_s`."""
        return self._faster_repair(cap_s).hours_lost.value

    @cached_property
    def reliable_links(self) -> Way:
        """The system as it is, if the links with most downtime never failed."""
        worst = {each.total.link for each in self.worst}
        left = [each for each in self.month.failures if each.link not in worst]
        name = f"the {len(worst)} worst links without failures"
        return self._way(name, self.as_it_is, self._overlap(left))

    @cached_property
    def kinds(self) -> list[Kind]:
        """Totals for each kind of link; links between switches come first."""
        failures, counts = self.month.failures, self.network.counts
        kind_of = np.array([self.network.kind[each.link] for each in failures])
        lasting = np.array([each.lasts_s(self.month.observed.end_s) for each in failures])
        found = []
        for name in sorted(counts, key=lambda name: (name == HOST_LINK, name)):
            own = kind_of == name
            number, down_s = int(own.sum()), sum(lasting[own].tolist())
            per_month = number * MONTH_H / 24 / self.month.days
            mean_s = down_s / number if number else 0.0
            hours_lost = float(self._hours_each[own].sum())
            found.append(Kind(name, counts[name], number, per_month, mean_s, down_s, hours_lost))
        return found

    @cached_property
    def worst(self) -> list[Worst]:
        """The links with most downtime."""
        hours: dict[str, float] = {}
        for each, lost in zip(self.month.failures, self._hours_each, strict=True):
            hours[each.link] = hours.get(each.link, 0.0) + float(lost)
        totals = sorted(self.month.totals, key=lambda it: -it.down_s)[:WORST]
        return [Worst(it, self.network.kind[it.link], hours[it.link]) for it in totals]

    @property
    def sweeps_h(self) -> float:
        """Time in a month in which tables lead over a failed cable (h). It is an additional loss if
        no events are built during that time."""
        cables = [f for f in self.month.failures if self.network.kind[f.link] != HOST_LINK]
        times = sum(each.flaps for each in cables)
        return MONTH_H * times * self.sweep_s / self.overlap.length_s

    @cached_property
    def _hours_each(self) -> Array:
        """(failures,): hours lost in a month because of each failure."""
        course = self.overlap
        left = self.as_it_is.rates_bps(self.most)[np.minimum(course.broken, self.most)]
        left /= self.as_it_is.full_bps
        of_a_cable = course.integral((1 - left) / np.maximum(course.broken, 1))
        of_all_hosts = course.integral(left)  # per share of the units that a host has
        failures = self.month.failures
        share = np.array([self.network.share.get(each.link, 0.0) for each in failures])
        is_host = np.array([self.network.kind[each.link] == HOST_LINK for each in failures])
        lost_s = np.where(is_host, share * of_all_hosts, of_a_cable)
        return np.asarray(MONTH_H * lost_s / course.length_s)

    def _overlap(self, failures: Sequence[Failure]) -> Overlap:
        return overlap(failures, self.network, self.month.observed, self.month.tests)

    def _faster_repair(self, cap_s: float) -> Way:
        end_s = self.month.observed.end_s
        capped = [
            each._replace(end_s=each.begin_s + min(cap_s, each.lasts_s(end_s)))
            for each in self.month.failures
        ]
        return self._way("", self.as_it_is, self._overlap(capped))

    def _way(self, name: str, throughput: Throughput, course: Overlap) -> Way:
        """Return the mean throughput over the log: with k broken cables, its mean over draws, less
        the share of units cut off. The interval comes from resampled days and draws."""
        left_s = course.time_s - course.cut_s
        weights = throughput.weights(left_s.shape[1] - 1)
        length_s = course.time_s.sum(axis=1)
        mean = float(left_s.sum(axis=0) @ weights @ throughput.means_bps / length_s.sum())
        days = self._drawn_days
        # (samples, numbers): resampled time and throughput for each number of broken cables.
        times = days @ left_s @ weights / np.maximum(days @ length_s, 1e-300)[:, None]
        drawn = (times * self._drawn_means(throughput)).sum(axis=1)
        mean_bps = self._estimate(mean, drawn)
        full = self.as_it_is.full_bps
        return Way(name, throughput.full_bps, mean_bps, mean_bps.times(-MONTH_H / full, MONTH_H))

    @cached_property
    def _drawn_days(self) -> Array:
        """(samples, days): number of times that a sample contains a day; empty for a short log."""
        days = len(self.overlap.time_s)
        if days < FEWEST_DAYS:
            return np.zeros((0, days))
        random = np.random.default_rng(self.seed)
        return random.multinomial(days, np.full(days, 1 / days), SAMPLES).astype(float)

    def _drawn_means(self, throughput: Throughput) -> Array:
        """(samples, numbers): mean throughput over resampled draws of broken cables."""
        random = np.random.default_rng([self.seed, 1])
        columns = []
        for number in throughput.numbers:
            found = np.array(throughput.found_bps[number])
            places = random.integers(len(found), size=(len(self._drawn_days), len(found)))
            columns.append(found[places].mean(axis=1))
        return np.stack(columns, axis=1)

    def _estimate(self, value: float, drawn: Array) -> Estimate:
        if not len(drawn):
            return Estimate(value)
        outside = (1 - CONFIDENCE) / 2
        low, high = np.quantile(drawn, (outside, 1 - outside))
        return Estimate(value, float(low), float(high))


def most_at_once(month: Variant, network: Network) -> int:
    """Return the largest number of cables between switches down at one time. Raises
    FaultsError if there are no failures or no time."""
    _check(month, network)
    course = overlap(month.failures, network, month.observed, month.tests)
    return int(course.broken.max(initial=0))


def cost(
    month: Variant,
    network: Network,
    throughputs: Mapping[str, Throughput],
    *,
    repairs_s: Iterable[float] = (),
    sweep_s: float | None = None,
    seed: int = 1,
) -> Cost:
    """Return the cost of failures for a system, and of possible remedies.

    `month`: failures of a log of any length, read with `network.links` and merged. `throughputs`:
    by way, first the system as it is. `repairs_s`: times (s) within which all failures might be
    repaired; the median, 10 minutes and an hour are added if shorter than the longest failure.
    `sweep_s`: time until tables avoid a failed cable (s; default: 0.35 ms per host). Raises
    FaultsError if there are no failures or no time.
    """
    _check(month, network)
    if sweep_s is None:
        sweep_s = SWEEP_S_PER_HOST * network.counts[HOST_LINK]
    longest_s = max(each.lasts_s(month.observed.end_s) for each in month.failures)
    median = [] if month.median_s is None else [month.median_s]
    caps_s = {cap_s for cap_s in (*median, *USUAL_REPAIRS_S) if cap_s < longest_s}
    times_s = tuple(sorted(caps_s | set(repairs_s)))
    return Cost(month, network, throughputs, times_s, sweep_s, seed)


def _check(month: Variant, network: Network) -> None:
    if not month.failures:
        raise FaultsError(
            f"the logs have no failure of a link of this network ({len(network.kind):,} links) "
            "outside test periods; give logs with failures, and the scenario of their network"
        )
    if month.days <= 0:
        raise FaultsError(
            "the logs cover no time outside test periods; give logs of at least some hours"
        )
