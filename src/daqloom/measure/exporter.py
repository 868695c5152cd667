"""A unit's counters for Prometheus: https://prometheus.io/docs/instrumenting/exposition_formats.

They are read when somebody asks, and never otherwise.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from daqloom._engine import CounterName
from daqloom.measure.connection import joined
from daqloom.measure.counters import GROUPS, REFUSED
from daqloom.measure.errors import MeasureError
from daqloom.measure.interface import own_address
from daqloom.measure.latencies import Buckets, split
from daqloom.measure.tally import LEVELS
from daqloom.scenario.document import ABSENT, look
from daqloom.scenario.event import Event

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Read = Callable[[], Mapping[str, int | float]]
"""Returns all counters as they stand now."""

LABELLED: dict[str, tuple[str, str, str, dict[str, str]]] = {
    "daqloom_events": (
        "Events by fate: built, delivered incomplete, dropped because incomplete, or discarded "
        "because the output buffer was full.",
        "fate",
        "events",
        {
            "built": CounterName.meps_built,
            "incomplete": CounterName.meps_incomplete,
            "dropped": CounterName.meps_dropped,
            "discarded": CounterName.meps_discarded,
        },
    ),
    "daqloom_waiting_seconds": (
        "Time in which the readout unit waits instead of sending, by cause.",
        "cause",
        "one",
        {
            "source": CounterName.waiting_for_source_s,
            "builder": CounterName.waiting_for_builder_s,
            "network": CounterName.waiting_for_network_s,
            "barrier": CounterName.in_barrier_s,
            "dummy": CounterName.idle_s,
        },
    ),
}
"""Metrics that combine several counters under one label: HELP text, label, what is counted
(a MEP counts as the number of events packed in it), and the counter for each label value."""

FAMILIES = {
    REFUSED: ("daqloom_refused", "Messages and writes refused, by cause."),
    CounterName.transport + REFUSED: (
        "daqloom_transport_refused",
        "Messages refused by the transport, by cause.",
    ),
    CounterName.not_written: ("daqloom_packets_lost", "Packets not written to files, by error."),
    CounterName.wrong: ("daqloom_meps_wrong_by_cause", "Wrong MEPs, by the first error found."),
}
"""Counters with a common prefix, which become one metric with a label: its name and HELP text."""

HISTOGRAMS = {
    CounterName.building_histogram: (
        "daqloom_build_seconds",
        CounterName.building_s,
        "Time from a MEP's grant to its completion.",
    ),
    CounterName.in_barrier_histogram: (
        "daqloom_barrier_seconds",
        CounterName.in_barrier_s,
        "Time from entering a barrier to release.",
    ),
    CounterName.in_phase_histogram: (
        "daqloom_phase_seconds",
        CounterName.in_phases_s,
        "Time from one step of the shift to the next.",
    ),
}
"""Histogram metrics: name, counter of the sum, HELP text."""
BOUNDS_S = tuple(m * 10.0**e for e in range(-6, 1) for m in (1, 2, 5))
"""Upper bounds of the exposed buckets: 1 µs to 5 s."""

CLIENT_S = 10.0
"""Idle timeout of a client connection."""
MOST_CLIENTS = 16


def exposed_name(counter: str) -> str:
    """Return the metric's name, its unit last as Prometheus wants: daqloom_waiting_seconds."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", counter).split("_")
    if words[-1] == "s":
        words[-1] = "seconds"
    elif "bytes" in words:
        words.remove("bytes")
        words.append("bytes")
    return "_".join(("daqloom", *words))


def meaning(counter: str) -> str:
    """Return the HELP text of a counter."""
    known = (each for group in GROUPS.values() for each in group if each.matches(counter))
    return next((each.meaning for each in known), counter)


class Collector:
    """Collects the metrics of one unit: `labels` go on each of them, a MEP has `packing` events."""

    def __init__(self, read: Read, labels: Mapping[str, str], packing: int) -> None:
        self._read, self._labels, self._packing = read, dict(labels), packing

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; called at each scrape."""
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
    """Return cumulative counts by upper bound, as Prometheus wants them. One of our buckets that
    a bound divides counts above it."""
    from daqloom._engine import latency_bucket

    ends_s = [(sum(latency_bucket(bucket)), count) for bucket, count in buckets.items()]
    found = [
        (f"{bound_s:g}", float(sum(n for end_s, n in ends_s if end_s <= bound_s * (1 + 1e-9))))
        for bound_s in BOUNDS_S
    ]
    return [*found, ("+Inf", float(sum(buckets.values())))]


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a scrape is no news."""


class _Server(ThreadingMixIn, WSGIServer):
    """Serves each client in a thread of its own, so that a slow one blocks no other."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int]) -> None:
        self._clients: list[socket.socket] = []
        self._changing = threading.Lock()
        super().__init__(address, _Silent)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Close the oldest connection where there are too many clients."""
        request.settimeout(CLIENT_S)
        with self._changing:
            self._clients.append(request)
            if len(self._clients) > MOST_CLIENTS:
                with suppress(OSError):  # it has just hung up itself
                    self._clients.pop(0).shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been served or has timed out."""
        with self._changing, suppress(ValueError):
            self._clients.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect or time out."""


class _Server6(_Server):
    address_family = socket.AF_INET6


def _server(host: str, port: int) -> _Server:
    return (_Server6 if ":" in host else _Server)((host, port))


class Exporter:
    """Serves a collector over HTTP until it is closed."""

    def __init__(self, collector: Collector, host: str, port: int) -> None:
        """Raises MeasureError where it cannot listen."""
        from prometheus_client import CollectorRegistry, make_wsgi_app

        registry = CollectorRegistry(auto_describe=False)
        registry.register(collector)
        try:
            self._server = _server(host, port)
        except (OSError, OverflowError):
            raise MeasureError(
                f"cannot serve counters for Prometheus on {joined(host, port)}; set "
                "measure.prometheus_port to the first of as many free ports as there are units"
            ) from None
        self._server.set_app(make_wsgi_app(registry))
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server and its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def exporter(
    scenario: Mapping[str, Any], unit: int, run: str, control: str, read: Read
) -> Exporter | None:
    """Start the exporter that the scenario's document asks for, or return None where it asks for
    none.

    It listens on the address with which this machine reaches the run control at `control`, which
    may be loopback. Raises MeasureError."""
    port = scenario.get("measure", {}).get("prometheus_port", 0)
    if not port:
        return None
    labels = {"run": run, "scenario": str(scenario.get("name", "")), "unit": str(unit)}
    packing = look(scenario, "event.packing")
    if packing is ABSENT:
        packing = Event.model_fields["packing"].default
    return Exporter(Collector(read, labels, int(packing)), own_address(control), port + unit)
