"""A unit's counters for Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats.

They are read when somebody asks, and never otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from daqloom.measure.connection import joined
from daqloom.measure.counters import GROUPS
from daqloom.measure.errors import MeasureError
from daqloom.measure.interface import own_address
from daqloom.measure.latencies import Buckets, split
from daqloom.measure.tally import LEVELS

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Read = Callable[[], Mapping[str, int | float]]
"""What has been counted up to now."""

LABELLED: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "daqloom_events": (
        "Events by what has become of them: built whole, delivered incomplete, dropped for "
        "being incomplete, discarded for want of room.",
        "fate",
        "events",
        {
            "built": "meps_built",
            "incomplete": "meps_incomplete",
            "dropped": "meps_dropped",
            "discarded": "meps_discarded",
        },
    ),
    "daqloom_waiting_seconds": (
        "Time of the readout unit in which it does not send, by what it waits for.",
        "cause",
        "one",
        {
            "source": "waiting_for_source_s",
            "builder": "waiting_for_builder_s",
            "network": "waiting_for_network_s",
            "barrier": "in_barrier_s",
            "dummy": "idle_s",
        },
    ),
}
"""Metrics that are several counters, told apart by a label: what it is, the label, what is counted
(MEPs stand for as many events as are packed), and the counter for each value of the label."""

FAMILIES = {
    "refused_": ("daqloom_refused", "Messages and writes that were refused, by why."),
    "transport.refused_": ("daqloom_transport_refused", "The same by the transport."),
    "wrong.": ("daqloom_meps_wrong_by_cause", "MEPs found wrong, by what was wrong first."),
}
"""Counters that begin alike and are told apart by a label: name, what it is."""

HISTOGRAMS = {
    "building": ("daqloom_build_seconds", "building_s", "From a MEP's grant until it is built."),
    "in_barrier": ("daqloom_barrier_seconds", "in_barrier_s", "From entering to being released."),
    "in_phase": ("daqloom_phase_seconds", "in_phases_s", "From one step to the next."),
}
"""Metrics by the histogram that they are: name, counter of the sum, what it is."""
BOUNDS_S = tuple(m * 10.0**e for e in range(-6, 1) for m in (1, 2, 5))
"""1 µs to 5 s."""


def exposed_name(counter: str) -> str:
    """The metric's, in units that Prometheus wants last: waiting_s → daqloom_waiting_seconds."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", counter).split("_")
    if words[-1] == "s":
        words[-1] = "seconds"
    elif "bytes" in words:
        words.remove("bytes")
        words.append("bytes")
    return "_".join(("daqloom", *words))


def meaning(counter: str) -> str:
    """What it counts, in one sentence."""
    known = (each for group in GROUPS.values() for each in group if each.matches(counter))
    return next((each.meaning for each in known), counter)


class Collector:
    """Of one unit; `labels` are on everything it tells, `packing` is events in a MEP."""

    def __init__(self, read: Read, labels: Mapping[str, str], packing: int) -> None:
        self._read, self._labels, self._packing = read, dict(labels), packing

    def collect(self) -> Iterator[Metric]:
        """Called when somebody asks."""
        numbers, histograms = split(self._read())
        for name, (text, label, what, counters) in LABELLED.items():
            factor = self._packing if what == "events" else 1
            found = {value: numbers.get(key) for value, key in counters.items()}
            yield self._counter(name, text, {k: factor * (v or 0) for k, v in found.items()}, label)
        for prefix, (name, text) in FAMILIES.items():
            causes = {
                counter.removeprefix(prefix): numbers.pop(counter)
                for counter in list(numbers)
                if counter.startswith(prefix)
            }
            yield self._counter(name, text, causes, "cause")
        for name, value in numbers.items():
            if name in LEVELS:
                yield self._gauge(exposed_name(name), meaning(name), value)
            else:
                yield self._counter(exposed_name(name), meaning(name), {"": value})
        for name, (exposed, total, text) in HISTOGRAMS.items():
            total_s = float(numbers.get(total, 0))
            yield self._histogram(exposed, text, histograms.get(name, {}), total_s)

    def _counter(
        self, name: str, text: str, values: Mapping[str, int | float], label: str = ""
    ) -> Metric:
        from prometheus_client.core import CounterMetricFamily

        extra = [label] if label else []
        family = CounterMetricFamily(name, text, labels=[*self._labels, *extra])
        for value, count in values.items():
            family.add_metric([*self._labels.values(), *([value] if label else [])], count)
        return family

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(name, text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), value)
        return family

    def _histogram(self, name: str, text: str, buckets: Buckets, total_s: float) -> Metric:
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(name, text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), _cumulative(buckets), total_s)
        return family


def _cumulative(buckets: Buckets) -> list[tuple[str, float]]:
    """As Prometheus has it: how many took at most so long. A bucket of ours that a bound divides
    counts above it."""
    from daqloom._engine import latency_bucket

    ends_s = [(sum(latency_bucket(bucket)), count) for bucket, count in buckets.items()]
    found = [
        (f"{bound_s:g}", float(sum(n for end_s, n in ends_s if end_s <= bound_s * (1 + 1e-9))))
        for bound_s in BOUNDS_S
    ]
    return [*found, ("+Inf", float(sum(buckets.values())))]


class Exporter:
    """Serves a collector over HTTP until it is closed."""

    def __init__(self, collector: Collector, host: str, port: int) -> None:
        """Raises MeasureError where it cannot listen."""
        from prometheus_client import CollectorRegistry, start_http_server

        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        try:
            self._server, self._thread = start_http_server(port, host, registry)
        except (OSError, OverflowError):
            raise MeasureError(
                f"cannot serve counters for Prometheus on {joined(host, port)}; give a "
                "measure.prometheus_port from which on as many ports are free as there are units"
            ) from None
        self.port: int = self._server.server_port

    def close(self) -> None:
        """Ends it, and its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def exporter(
    scenario: Mapping[str, Any], unit: int, run: str, control: str, read: Read
) -> Exporter | None:
    """As the scenario's document wants it, on the address with which this machine reaches the run
    control at `control`: loopback, or where others may look. None: it is not wanted. Raises
    MeasureError."""
    port = scenario.get("measure", {}).get("prometheus_port", 0)
    if not port:
        return None
    labels = {"run": run, "scenario": str(scenario.get("name", "")), "unit": str(unit)}
    packing = int(scenario.get("fragments", {}).get("packing", 1))
    return Exporter(Collector(read, labels, packing), own_address(control), port + unit)
