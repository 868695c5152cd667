"""Metrics of a run, over all its units, from its status: for Prometheus and InfluxDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

from daqloom.base import lazy
from daqloom.control.protocol.states import Goal, Phase, Refusal, Standing, State
from daqloom.control.record.meter import LOSSES, WAITS
from daqloom.control.status import Status

with lazy.imports():
    from prometheus_client import core

PREFIX = "daqloom_run_"
QUANTILES = {"0.5": "latency_p50_s", "0.99": "latency_p99_s", "1": "latency_max_s"}
WAITING = {name.removeprefix("wait_").removesuffix("_s"): name.removesuffix("_s") for name in WAITS}
FILLS = {"source": "source_fill", "output": "output_fill"}
SUMMARIES: Mapping[str, Callable[[list[float]], float]] = {"min": min, "mean": fmean, "max": max}
"""Summaries over the members of a run."""
Values = Mapping[tuple[str, ...], float]
"""Numbers by the values of labels."""


@dataclass(frozen=True)
class RunMetric:
    """Metric with its name after `PREFIX`, labels and numbers; `is_total`: it only rises."""

    name: str
    meaning: str
    read: Callable[[Status], Values]
    labels: tuple[str, ...] = ()
    is_total: bool = False

    @property
    def suffixed(self) -> str:
        """Name as Prometheus has it, without the prefix."""
        return f"{self.name}_total" if self.is_total else self.name


def _total(
    name: str, meaning: str, read: Callable[[Status], Values], labels: tuple[str, ...] = ()
) -> RunMetric:
    return RunMetric(name, meaning, read, labels, is_total=True)


def _one(value: float | None) -> Values:
    return {} if value is None else {(): value}


def _state(kind: type[StrEnum], now: StrEnum) -> Values:
    return {(each,): float(each == now) for each in kind}


def _number(kind: type[StrEnum], values: Iterator[StrEnum]) -> Values:
    found = Counter(values)
    return {(each,): found[each] for each in kind}


def _causes(counts: Mapping[str, int], causes: Iterable[str], prefix: str = "") -> Values:
    return {(cause,): counts.get(prefix + cause, 0) for cause in causes}


def _shares(status: Status, names: Mapping[str, str]) -> Values:
    """Return the summaries over members of the present rates with these names, by label."""
    found: dict[tuple[str, ...], float] = {}
    for label, name in names.items():
        units = (unit.rates.get(name) for unit in status.units if unit.member)
        if shares := [share for share in units if share is not None]:
            found |= {(label, each): how(shares) for each, how in SUMMARIES.items()}
    return found


METRICS: tuple[RunMetric, ...] = (
    RunMetric("phase", "1 for the present phase.", lambda s: _state(Phase, s.phase), ("phase",)),
    RunMetric("goal", "1 for the operator's goal.", lambda s: _state(Goal, s.goal), ("goal",)),
    RunMetric("number", "Number of the last run that was started.", lambda s: _one(s.number)),
    RunMetric("epoch", "Number of the epoch.", lambda s: _one(s.epoch)),
    RunMetric(
        "members",
        "Units that are members of the epoch.",
        lambda s: _one(sum(unit.member for unit in s.units)),
    ),
    RunMetric(
        "units",
        "Units by their standing in the run control.",
        lambda s: _number(Standing, (unit.standing for unit in s.units)),
        ("standing",),
    ),
    RunMetric(
        "units_in_state",
        "Units by their own state.",
        lambda s: _number(State, (unit.state for unit in s.units)),
        ("state",),
    ),
    RunMetric(
        "excluded_units",
        "Units that the operator has excluded.",
        lambda s: _one(sum(unit.is_excluded for unit in s.units)),
    ),
    _total("events", "Events built, complete or not.", lambda s: _one(s.built_events)),
    _total("bytes", "Bytes of fragments in built events.", lambda s: _one(s.built_bytes)),
    _total(
        "lost_events",
        "Events incomplete or lost, by cause.",
        lambda s: _causes(s.lost, LOSSES),
        ("cause",),
    ),
    _total("units_lost", "Losses of units.", lambda s: _one(s.counts["units_lost"])),
    _total("regroupings", "Changes of epoch.", lambda s: _one(s.counts["regroupings"])),
    _total(
        "refused_calls",
        "Calls that the run control refused, by cause.",
        lambda s: _causes(s.counts, Refusal, "refused."),
        ("cause",),
    ),
    RunMetric(
        "event_rate_hertz",
        "Events built per second, over the last seconds.",
        lambda s: _one(s.rates.get("event_rate_hz")),
    ),
    RunMetric(
        "throughput_bits_per_second",
        "Bits of fragments built per second, over the last seconds.",
        lambda s: _one(s.rates.get("throughput_bps")),
    ),
    RunMetric(
        "latency_seconds",
        "Time from a MEP's grant to its completion, in the last second; quantile 1: the maximum.",
        lambda s: {(q,): s.rates[name] for q, name in QUANTILES.items() if name in s.rates},
        ("quantile",),
    ),
    RunMetric(
        "waiting_ratio",
        "Share of time in which members wait, by cause, over the last seconds.",
        lambda s: _shares(s, WAITING),
        ("cause", "members"),
    ),
    RunMetric(
        "buffer_fill_ratio",
        "Filled share of the members' source and output buffers.",
        lambda s: _shares(s, FILLS),
        ("buffer", "members"),
    ),
    RunMetric(
        "disk_free_bytes",
        "Least free space of any unit for files.",
        lambda s: _one(s.rates.get("disk_free_bytes")),
    ),
    _total(
        "unsent_points",
        "Points dropped because InfluxDB did not accept them.",
        lambda s: _one(s.counts.get("unsent_points")),
    ),
    RunMetric("time_seconds", "Time since the start of the run.", lambda s: _one(s.time_s)),
)


@dataclass(frozen=True)
class Sample:
    """A number of a metric with all its labels."""

    metric: RunMetric
    labels: Mapping[str, str]
    value: float


def samples(status: Status) -> Iterator[Sample]:
    """Yield the numbers of a run; each has the labels `run` (its ID) and `scenario`."""
    common = {"run": status.run, "scenario": status.scenario}
    for metric in METRICS:
        for values, value in metric.read(status).items():
            labels = dict(zip(metric.labels, values, strict=True))
            yield Sample(metric, common | labels, float(value))


class RunCollector:
    """Collector of a run's metrics; `status` is the last one of the run, None before it."""

    status: Status | None = None

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics; called at each scrape."""
        families: dict[str, Any] = {}
        for sample in samples(self.status) if self.status else ():
            metric = sample.metric
            kind = core.CounterMetricFamily if metric.is_total else core.GaugeMetricFamily
            family = families.setdefault(
                metric.name, kind(PREFIX + metric.name, metric.meaning, labels=list(sample.labels))
            )
            family.add_metric(list(sample.labels.values()), sample.value)
        yield from families.values()
