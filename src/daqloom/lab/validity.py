"""Validity of a laboratory's metrics: whether they describe its network, or are distorted by this
machine's processors.

Each metric has its own evidence. Rates and means average over late timers; a few late timers
already distort high percentiles and peaks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

from daqloom._engine import latency_bucket
from daqloom.base.words import plural
from daqloom.control.counters.metrics import (
    HISTOGRAMS,
    Buckets,
    Reading,
    difference,
    merge,
    window_s,
)
from daqloom.lab.laboratory import LabCount
from daqloom.machine.machine import Machine
from daqloom.results.metrics import with_unit

AROUND_P99 = (0.9875, 0.9925)
"""Shares of events between which the 99th percentile must not jump."""
MOST_SPREAD = 6.0
"""Standard errors by which the halves of a run may differ; waiting events are not independent."""
_PRESSURE = Path("/proc/pressure/cpu")


@dataclass(frozen=True)
class Limits:
    """Limits of evidence above which metrics are rejected; see `Evidence`."""

    lateness: float
    excess: float
    lateness_unwatched: float
    """Limit on `lateness` without watched ports, when only the machine gives evidence."""
    pressure_unwatched: float
    """Limit on pressure without watched ports, which may keep their rates at any pressure."""


@dataclass(frozen=True)
class Kind:
    """Group of metrics that are judged by the same evidence."""

    name: str
    """Name of the group for messages, a plural noun."""
    metrics: tuple[str, ...]
    """Dotted names of the metrics; empty: all metrics of the run."""
    tolerance: float
    """Relative error up to which a metric of the group is valid."""
    limits: Limits


RATES = Kind("rates", (), 0.05, Limits(0.45, 0.4, 0.2, 0.95))
"""Evidence about rates, on which all metrics depend."""
MEANS = Kind(
    "means of latencies and phases",
    (
        *(f"collection_latency_s.{part}" for part in ("min", "mean", "p50")),
        *(f"barrier_s.{part}" for part in ("whole", "least", "most", "p50")),
        "phase_s",
        "barrier_share",
    ),
    0.05,
    Limits(0.075, 0.15, 0.075, 0.8),
)
TAILS = Kind(
    "99th percentiles and maxima of latencies",
    tuple(f"{name}.{part}" for name in HISTOGRAMS for part in ("p99", "max")),
    0.1,
    Limits(0.07, 0.15, 0.05, 0.7),
)
PEAKS = Kind("peaks of buffers", ("buffer_peak_bytes",), 0.1, Limits(0.07, 0.08, 0.05, 0.7))
KINDS = (RATES, MEANS, TAILS, PEAKS)


@dataclass(frozen=True)
class Halves:
    """Values of one metric in the two halves of a run."""

    values: tuple[float, float]
    error: float
    """Standard error of the difference between the halves, in the metric's unit."""

    def differ(self, tolerance: float) -> bool:
        """Return whether the halves differ significantly, and by more than the relative `tolerance`
        of the whole run's value."""
        apart, middle = abs(self.values[0] - self.values[1]), sum(self.values) / 2
        return apart > 2 * tolerance * middle + MOST_SPREAD * self.error


class _Estimate(NamedTuple):
    value: float
    variance: float


@dataclass(frozen=True)
class Evidence:
    """Evidence about the validity of a run's metrics."""

    lateness: float
    """Share of time in which timers were later than a port's token bucket lasts."""
    pressure: float | None = None
    """Share of time in which a process waited for a core; None if unknown."""
    excess: float | None = None
    """Share of a switch's peak that ports caused by sending below their rates; None: no port was
    watched."""
    rates: Halves | None = None
    means: Halves | None = None
    tail_s: tuple[float, float] | None = None
    """Percentiles of latency just below and above the 99th, at `AROUND_P99` (s)."""
    tails_s: tuple[tuple[float, float], tuple[float, float]] | None = None
    """Confidence bounds of the 99th percentile of latency in each half of the run (s)."""

    def against(self, kind: Kind) -> str:
        """Return the reason why metrics of a kind do not describe the network; empty if they do."""
        limits, is_watched = kind.limits, self.excess is not None
        if not is_watched and (self.pressure or 0.0) > limits.pressure_unwatched:
            return (
                f"some process waited for a core {self.pressure:.0%} of the time, more than the "
                f"{limits.pressure_unwatched:.0%} at which they hold"
            )
        most = limits.lateness if is_watched else limits.lateness_unwatched
        if self.lateness > most:
            return (
                f"timers were late for {self.lateness:.1%} of the time by more than a port's token "
                f"bucket lasts, more than the {most:.1%} at which they hold"
            )
        if self.excess is not None and self.excess > limits.excess:
            return (
                f"ports that sent below their rates made {self.excess:.0%} of a switch's peak, and "
                f"they hold up to {limits.excess:.0%}"
            )
        halves = {RATES.name: self.rates, MEANS.name: self.means}.get(kind.name)
        if halves and halves.differ(kind.tolerance):
            one, other = halves.values
            return f"the halves of the run differ, {one:.3g} and {other:.3g}"
        if kind is not RATES and self.tails_s:
            (low, high), (other_low, other_high) = self.tails_s
            if max(low, other_low) > (1 + TAILS.tolerance) * min(high, other_high):
                return "the slowest events of one half of the run are slower than all of the other"
        if kind is TAILS and self.tail_s and self.tail_s[1] > self.tail_s[0] * (1 + kind.tolerance):
            near, far = (with_unit(s, "s") for s in self.tail_s)
            return f"one event in 400 more or less moves the 99th percentile from {near} to {far}"
        return ""


@dataclass(frozen=True)
class Judgement:
    """Metrics that are valid, with warnings about the others."""

    metrics: dict[str, Any]
    warnings: tuple[str, ...] = ()
    refusal: str = ""
    """Reason why no metric is valid; empty if some are."""


def judge(found: Mapping[str, Any], evidence: Evidence) -> Judgement:
    """Return the metrics that the evidence supports, with a warning for each group left out."""
    left, unsupported = dict(found), dict[str, list[str]]()
    for kind in KINDS:
        if not (why := evidence.against(kind)):
            continue
        if not kind.metrics:
            what = "not a valid measurement of the network, as the processors were the limit"
            return Judgement(dict(found), refusal=f"{what}: {why}; {_remedy()}")
        if (given := _drop_metrics(left, kind)) != left:
            left = given
            unsupported.setdefault(why, []).append(kind.name)
    return Judgement(
        left,
        tuple(
            f"{' and '.join(names)} are left out, as this machine may have made them, and not the "
            f"network: {why}; {_remedy()}"
            for why, names in unsupported.items()
        ),
    )


def _drop_metrics(found: dict[str, Any], kind: Kind) -> dict[str, Any]:
    left = dict(found)
    for path in kind.metrics:
        name, _, inner = path.partition(".")
        if not inner:
            left.pop(name, None)
        elif isinstance(left.get(name), dict):
            left[name] = {key: value for key, value in left[name].items() if key != inner}
            if not left[name]:
                del left[name]
    return left


def _remedy() -> str:
    load, cores = Machine().load()
    return (
        f"the load is {load:.1f} on {plural(cores, 'core')}: let nothing else run here, lower the "
        "rates of links and events in proportion, or measure longer"
    )


def evidence_of(found: Mapping[str, Any], count: LabCount, readings: Sequence[Reading]) -> Evidence:
    """Return the evidence for the metrics `found`, from the counters of ports, and from counters of
    units at the begin, middle and end of the run (or none)."""
    watched = [
        1 - punctual / peak if peak else 0.0
        for peak, punctual in zip(count.peaks, count.punctual_peaks, strict=True)
        if punctual is not None
    ]
    of_host = Evidence(
        lateness=found.get("host_lateness", 0.0),
        pressure=found.get("host_pressure"),
        excess=None if len(watched) < len(count.peaks) else max(watched, default=0.0),
    )
    if len(readings) != 3:
        return of_host
    begin, middle, end = readings
    halves = (difference(begin, middle), difference(middle, end))
    one_s, other_s = (_percentiles_s(half, *_bounds(half)) for half in halves)
    return replace(
        of_host,
        rates=_compare(*map(_rate, halves)),
        means=_compare(*map(_mean_s, halves)),
        tail_s=_percentiles_s(difference(begin, end), *AROUND_P99),
        tails_s=(one_s, other_s) if one_s and other_s else None,
    )


def _compare(one: _Estimate | None, other: _Estimate | None) -> Halves | None:
    if one is None or other is None:
        return None
    return Halves((one.value, other.value), sqrt(one.variance + other.variance))


def _rate(half: Reading) -> _Estimate | None:
    """Return the event rate of a half (1/s), with the variance of a Poisson process."""
    count, time_s = _deliveries(half), window_s(half)
    return _Estimate(count / time_s, count / time_s**2) if count and time_s else None


def _deliveries(half: Reading) -> int:
    return sum(unit.meps_delivered or 0 for unit in half.values())


def _bounds(half: Reading) -> tuple[float, float]:
    """Return the shares of events 2 standard errors below and above the 99th percentile."""
    error = 2 * sqrt(0.99 * 0.01 / max(_deliveries(half), 1))
    return max(0.0, 0.99 - error), min(1.0, 0.99 + error)


def _latencies(part: Reading) -> Buckets:
    return merge(HISTOGRAMS["collection_latency_s"](unit) for unit in part.values())


def _percentiles_s(part: Reading, *shares: float) -> tuple[float, float] | None:
    """Return the percentiles of latency for two shares of events (s); None without events."""
    buckets = _latencies(part)
    up_to = list(accumulate(buckets.values()))
    if not up_to:
        return None
    low, high = (
        next(b for b, n in zip(buckets, up_to, strict=True) if n >= share * up_to[-1])
        for share in shares
    )
    return latency_bucket(low)[0], latency_bucket(high)[0]


def _mean_s(half: Reading) -> _Estimate | None:
    """Return the mean latency in a half of the run (s), with its variance."""
    buckets = _latencies(half)
    if not (count := sum(buckets.values())):
        return None
    middles = {n: low + width / 2 for n in buckets for low, width in (latency_bucket(n),)}
    mean = sum(middles[n] * times for n, times in buckets.items()) / count
    square = sum((middles[n] - mean) ** 2 * times for n, times in buckets.items())
    return _Estimate(mean, square / count**2)


def host_metrics(count: LabCount, waited_s: float | None) -> dict[str, float]:
    """Return the load of this machine while `count` was taken; `waited_s`: time in which some
    process waited for a core."""
    if not count.watched_s:
        return {}
    found = {"host_lateness": min(1.0, count.late_s / count.watched_s)}
    if waited_s is not None:
        found["host_pressure"] = min(1.0, waited_s / count.watched_s)
    return found


def pressure_s() -> float | None:
    """Return the time since boot in which some process waited for a core (s); None if unknown."""
    try:
        line = _PRESSURE.read_text().splitlines()[0]
        return int(line.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None
