"""Publication of a run's metrics: a page for Prometheus, points for InfluxDB."""

import os
import time
from collections.abc import Callable

from daqloom.control.counters.exporter import Exporter
from daqloom.control.influxdb import TOKEN, Writer, points
from daqloom.control.run_metrics import RunCollector
from daqloom.control.status import Status
from daqloom.scenario.schema.measure import Measure

FIX = "set measure.prometheus_run_port to a free port of measure.bind"


class Publication:
    """Publisher of the status of a run, where keys of `measure` ask for it."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._collector = RunCollector()
        self._exporter: Exporter | None = None
        self._writer: Writer | None = None
        self._failure = ""

    @property
    def unsent_points(self) -> int:
        """Points that were dropped, because the server did not accept them."""
        return self._writer.unsent if self._writer else 0

    def open(self) -> None:
        """Start to serve. Raises MeasureError if the port is not free."""
        measure = self._measure
        if measure.prometheus_run_port:
            self._exporter = Exporter(
                self._collector, measure.bind, measure.prometheus_run_port, FIX
            )
        if measure.influxdb:
            self._writer = Writer(measure.influxdb, os.environ.get(TOKEN, ""))

    def publish(self, read: Callable[[], Status]) -> str:
        """Publish the status that `read` returns; return a sentence if InfluxDB has begun or ceased
        to accept points."""
        if self._exporter or self._writer:
            self._collector.status = read()
        if not (self._writer and self._collector.status):
            return ""
        self._writer.add(points(self._collector.status, time.time_ns()))
        self._failure, before = self._writer.failure, self._failure
        if bool(self._failure) == bool(before):
            return ""
        why = f"does not accept points: {self._failure}; check measure.influxdb"
        return f"{self._writer.where} {why if self._failure else 'accepts points again'}"

    def close(self) -> None:
        """End the page and the thread of the writer."""
        if self._exporter:
            self._exporter.close()
        if self._writer:
            self._writer.close()
