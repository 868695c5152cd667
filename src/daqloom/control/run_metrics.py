"""Metrics of a run, over all its units, from its status: for Prometheus and InfluxDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

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
Numbers = Mapping[str, float]
"""Numbers by the value of a label."""


class RunMetric(NamedTuple):
    """Metric without its prefix, with one label or none. A name that ends with `_total` is one of a
    number that only rises. Present rates are means over the last seconds."""

    name: str
    label: str
    meaning: str
    read: Callable[[Status], Numbers | float | None]


def _flags(kind: Iterable[str], present: str) -> Numbers:
    return {each: each == present for each in kind}


def _tally(status: Status, kind: Iterable[str], name: str) -> Numbers:
    return dict.fromkeys(kind, 0) | Counter(getattr(unit, name) for unit in status.units)


def _rates(status: Status, names: Mapping[str, str]) -> Numbers:
    return {label: status.rates[name] for label, name in names.items() if name in status.rates}


def _most(status: Status, names: Mapping[str, str]) -> Numbers:
    rates = [unit.rates for unit in status.units if unit.member] or [{}]
    found = {label: [each[name] for each in rates if name in each] for label, name in names.items()}
    return {label: max(shares) for label, shares in found.items() if shares}


METRICS = (
    RunMetric("phase", "phase", "1 for the present phase.", lambda s: _flags(Phase, s.phase)),
    RunMetric("goal", "goal", "1 for the operator's goal.", lambda s: _flags(Goal, s.goal)),
    RunMetric("number", "", "Number of the last run that started.", lambda s: s.number),
    RunMetric("epoch", "", "Number of the epoch.", lambda s: s.epoch),
    RunMetric("members", "", "Members of the epoch.", lambda s: sum(u.member for u in s.units)),
    RunMetric("units", "standing", "Units by standing.", lambda s: _tally(s, Standing, "standing")),
    RunMetric("units_in_state", "state", "Units by state.", lambda s: _tally(s, State, "state")),
    RunMetric("events_total", "", "Events built, complete or not.", lambda s: s.built_events),
    RunMetric("bytes_total", "", "Bytes of fragments built.", lambda s: s.built_bytes),
    RunMetric(
        "lost_events_total",
        "cause",
        "Events incomplete or lost.",
        lambda s: {cause: s.lost.get(cause, 0) for cause in LOSSES},
    ),
    RunMetric("units_lost_total", "", "Losses of units.", lambda s: s.counts["units_lost"]),
    RunMetric("regroupings_total", "", "Regroupings.", lambda s: s.counts["regroupings"]),
    RunMetric(
        "refused_calls_total",
        "cause",
        "Calls that the run control refused.",
        lambda s: {cause: s.counts.get(f"refused.{cause}", 0) for cause in Refusal},
    ),
    RunMetric("event_rate_hertz", "", "Event rate.", lambda s: s.rates.get("event_rate_hz")),
    RunMetric("throughput_bps", "", "Throughput (b/s).", lambda s: s.rates.get("throughput_bps")),
    RunMetric(
        "latency_seconds", "quantile", "Time to build a MEP.", lambda s: _rates(s, QUANTILES)
    ),
    RunMetric("waiting_ratio", "cause", "Mean waiting share.", lambda s: _rates(s, WAITING)),
    RunMetric("waiting_max_ratio", "cause", "Largest waiting share.", lambda s: _most(s, WAITING)),
    RunMetric("buffer_fill_ratio", "buffer", "Largest filled share.", lambda s: _rates(s, FILLS)),
    RunMetric("disk_free_bytes", "", "Least free space.", lambda s: s.rates.get("disk_free_bytes")),
    RunMetric(
        "unsent_points_total",
        "",
        "Points not accepted by InfluxDB.",
        lambda s: s.counts.get("unsent_points"),
    ),
    RunMetric("time_seconds", "", "Time since the start of the run.", lambda s: s.time_s),
)


def samples(status: Status) -> Iterator[tuple[RunMetric, dict[str, str], float]]:
    """Yield the numbers of a run with their labels, also `run` (its ID) and `scenario`."""
    common = {"run": status.run, "scenario": status.scenario}
    for metric in METRICS:
        found = metric.read(status)
        if isinstance(found, Mapping):
            for value, number in found.items():
                yield metric, {**common, metric.label: value}, float(number)
        elif found is not None:
            yield metric, common, float(found)


class RunCollector:
    """Collector of a run's metrics; `status` is the last one of the run, None before it."""

    status: Status | None = None

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics; called at each scrape."""
        families: dict[str, Any] = {}
        for metric, labels, number in samples(self.status) if self.status else ():
            is_total = metric.name.endswith("_total")
            kind = core.CounterMetricFamily if is_total else core.GaugeMetricFamily
            made = kind(PREFIX + metric.name, metric.meaning, labels=list(labels))
            families.setdefault(metric.name, made).add_metric(list(labels.values()), number)
        yield from families.values()
