"""Exporter of a unit's counters for Prometheus, read at each scrape alone:
https://prometheus.io/docs/instrumenting/exposition_formats."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from socketserver import ThreadingMixIn
from typing import Any, Protocol
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from daqloom._engine import Counters, known_counters, latency_bucket
from daqloom.base import lazy
from daqloom.control.counters.metrics import Buckets, Count
from daqloom.control.counters.reference import counter_meanings
from daqloom.machine.addresses import join_address, own_address
from daqloom.results.errors import MeasureError
from daqloom.scenario.schema.models import Scenario

with lazy.imports():
    import prometheus_client
    from prometheus_client import core


Read = Callable[[], Counters]
"""Reader of the present counters."""

MEANINGS = counter_meanings()
GAUGES = frozenset(each.name for each in known_counters() if each.is_gauge)

LABELLED: dict[str, tuple[str, str, str, dict[str, Count]]] = {
    "daqloom_events": (
        "Events by fate: built, delivered incomplete, dropped because incomplete, or discarded "
        "because the output buffer was full.",
        "fate",
        "events",
        {
            "built": lambda c: c.meps_built,
            "incomplete": lambda c: c.meps_incomplete,
            "dropped": lambda c: c.meps_dropped,
            "discarded": lambda c: c.meps_discarded,
        },
    ),
    "daqloom_waiting_seconds": (
        "Time in which the readout unit waits instead of sending, by cause.",
        "cause",
        "one",
        {
            "source": lambda c: c.waiting_for_source_s,
            "builder": lambda c: c.waiting_for_builder_s,
            "network": lambda c: c.waiting_for_network_s,
            "barrier": lambda c: c.in_barrier_s,
            "dummy": lambda c: c.idle_s,
        },
    ),
}
"""Metrics of several counters under one label: HELP text, label, unit of counting (a MEP counts as
its events), and the counter of each label value."""

FAMILIES: dict[str, tuple[str, Callable[[Counters], Mapping[str, int]]]] = {
    "daqloom_refused": ("Messages and writes refused, by cause.", lambda c: c.refused),
    "daqloom_transport_refused": (
        "Messages refused by the transport, by cause.",
        lambda c: c.transport_refused,
    ),
    "daqloom_packets_lost": ("Packets not written to files, by error.", lambda c: c.not_written),
    "daqloom_meps_wrong_by_cause": ("Wrong MEPs, by the first error found.", lambda c: c.wrong),
}
"""Metrics with the cause as a label: HELP text and counters."""
SLOTS = ("consumer_meps", "consumer_returned", "sampler_meps", "sampler_skipped")
"""Counters by slot of a process at the output."""

HISTOGRAMS: dict[str, tuple[str, Callable[[Counters], Buckets], Count]] = {
    "daqloom_build_seconds": (
        "Time from a MEP's grant to its completion.",
        lambda c: c.building,
        lambda c: c.building_s,
    ),
    "daqloom_barrier_seconds": (
        "Time from entering a barrier to release.",
        lambda c: c.in_barrier,
        lambda c: c.in_barrier_s,
    ),
    "daqloom_phase_seconds": (
        "Time from one step of the shift to the next.",
        lambda c: c.in_phase,
        lambda c: c.in_phases_s,
    ),
}
"""Histogram metrics: HELP text, counts, sum of the times."""
BOUNDS_S = tuple(m * 10.0**e for e in range(-6, 1) for m in (1, 2, 5))
"""Upper bounds of the exposed buckets: 1 µs to 5 s."""

CLIENT_S = 10.0
"""Idle timeout of a client connection."""
MOST_CLIENTS = 16
ACCEPT_PAUSE_S = 0.2
"""Pause after a client that could not be accepted (s)."""

PORTS = "set measure.prometheus_port to the first of as many free ports as there are units"


def exposed_name(counter: str) -> str:
    """Return the metric's name with its unit last, such as daqloom_waiting_seconds."""
    words = re.sub(r"[^A-Za-z0-9]+", "_", counter).split("_")
    if words[-1] == "s":
        words[-1] = "seconds"
    elif "bytes" in words:
        words.remove("bytes")
        words.append("bytes")
    return "_".join(("daqloom", *words))


class Collector:
    """Collector of one unit's metrics with `labels`; a MEP has `packing` events."""

    def __init__(
        self,
        read: Read,
        labels: Mapping[str, str],
        packing: int,
        run_number: Callable[[], int] = int,
    ) -> None:
        self._read, self._labels, self._packing = read, dict(labels), packing
        self._run_number = run_number

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics; called at each scrape."""
        counted = self._read()
        if number := self._run_number():
            text = "Number of the run, as its registry or a hook gave it."
            yield self._family("daqloom_run_number", text, {"": number}, is_gauge=True)
        for name, (text, label, what, counters) in LABELLED.items():
            factor = self._packing if what == "events" else 1
            found = {value: factor * (count(counted) or 0) for value, count in counters.items()}
            yield self._family(name, text, found, label)
        for name, (text, causes) in FAMILIES.items():
            yield self._family(name, text, causes(counted), "cause")
        for name in SLOTS:
            text = MEANINGS[f"{name}.*"]
            yield self._family(exposed_name(name), text, getattr(counted, name), "slot")
        for name, count in counted.plain.items():
            text = MEANINGS.get(name, name)
            yield self._family(exposed_name(name), text, {"": count}, is_gauge=name in GAUGES)
        for name, (text, buckets, total_s) in HISTOGRAMS.items():
            yield self._histogram(name, text, buckets(counted), total_s(counted) or 0.0)

    def _family(
        self,
        name: str,
        text: str,
        values: Mapping[str, int | float],
        label: str = "",
        *,
        is_gauge: bool = False,
    ) -> core.Metric:
        extra = [label] if label else []
        kind = core.GaugeMetricFamily if is_gauge else core.CounterMetricFamily
        family = kind(name, text, labels=[*self._labels, *extra])
        for value, count in values.items():
            family.add_metric([*self._labels.values(), *([value] if label else [])], count)
        return family

    def _histogram(self, name: str, text: str, buckets: Buckets, total_s: float) -> core.Metric:
        family = core.HistogramMetricFamily(name, text, labels=list(self._labels))
        family.add_metric(list(self._labels.values()), _cumulative(buckets), total_s)
        return family


def _cumulative(buckets: Buckets) -> list[tuple[str, float]]:
    """Return cumulative counts by upper bound, for Prometheus. A bucket across a bound counts above
    it."""
    ends_s = [(sum(latency_bucket(bucket)), count) for bucket, count in buckets.items()]
    found = [
        (f"{bound_s:g}", float(sum(n for end_s, n in ends_s if end_s <= bound_s * (1 + 1e-9))))
        for bound_s in BOUNDS_S
    ]
    return [*found, ("+Inf", float(sum(buckets.values())))]


class _Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Server(ThreadingMixIn, WSGIServer):
    """Server with a thread for each client, so that a slow one blocks no other."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int) -> None:
        self._clients: list[socket.socket] = []
        self._changing = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Silent)

    def get_request(self) -> Any:
        """Accept a client. Without a free descriptor, the next try comes after a pause."""
        try:
            return super().get_request()
        except OSError:
            time.sleep(ACCEPT_PAUSE_S)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Close the oldest connection where there are too many clients."""
        request.settimeout(CLIENT_S)
        with self._changing:
            self._clients.append(request)
            if len(self._clients) > MOST_CLIENTS:
                with suppress(OSError):  # the client has closed it
                    self._clients.pop(0).shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been served or has timed out."""
        with self._changing, suppress(ValueError):
            self._clients.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect or time out."""


class Collects(Protocol):
    """Yields metrics at each scrape."""

    def collect(self) -> Iterator[core.Metric]:
        """Yield the metrics."""


class Exporter:
    """HTTP server of a collector."""

    def __init__(self, collector: Collects, host: str, port: int, fix: str = PORTS) -> None:
        """Start the server. Raises MeasureError, with the remedy `fix`, if it cannot listen."""
        registry = prometheus_client.CollectorRegistry(auto_describe=False)
        registry.register(collector)
        try:
            self._server = _Server(host, port)
        except (OSError, OverflowError):
            raise MeasureError(
                f"cannot serve counters for Prometheus on {join_address(host, port)}; {fix}"
            ) from None
        self._server.set_app(prometheus_client.make_wsgi_app(registry))
        self.port: int = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the server and its thread."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def exporter(
    document: Mapping[str, Any],
    unit: int,
    run: str,
    control: str,
    read: Read,
    run_number: Callable[[], int] = int,
) -> Exporter | None:
    """Start the exporter of the scenario's document, if it has one, on the address with which this
    machine reaches the run control at `control`. Raises MeasureError."""
    port = document.get("measure", {}).get("prometheus_port", 0)
    if not port:
        return None
    scenario = Scenario.model_validate(document)
    labels = {"run": run, "scenario": scenario.name, "unit": str(unit)}
    collector = Collector(read, labels, scenario.packing, run_number)
    return Exporter(collector, own_address(control), port + unit)
