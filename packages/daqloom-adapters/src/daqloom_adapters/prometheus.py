"""Metrics on a page in the format of Prometheus: node_exporter on a switch, or snmp_exporter."""

import re
from collections.abc import Iterable
from typing import ClassVar

from prometheus_client.parser import text_string_to_metric_families

from daqloom.base.words import did_you_mean
from daqloom.device.adapter import AdapterError
from daqloom_adapters.deadline import Deadline
from daqloom_adapters.http import get
from daqloom_adapters.series import Name, Sample, Series, SeriesOptions

LONGEST_LINE = 4096
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,199}(?![a-zA-Z0-9_:])")


class PrometheusOptions(SeriesOptions):
    """Options of a page of metrics; values are named by metrics. The defaults fit node_exporter."""

    label: Name = "device"
    """Label that contains the name of the port."""
    sent: Name = "node_network_transmit_packets_total"
    """Metric of the packets that a port has sent."""
    sent_bytes: Name = "node_network_transmit_bytes_total"
    """Metric of the bytes that a port has sent."""
    dropped: Name = "node_network_transmit_drop_total"
    """Metric of the packets that a port has dropped."""


class Prometheus(Series[PrometheusOptions]):
    """A page of metrics, which is fetched each time counters are read."""

    Options: ClassVar[type[PrometheusOptions]] = PrometheusOptions

    def _samples(self, ends: Deadline) -> list[Sample]:
        where, desired = self._options.where, self._options.names
        page = get(self._options, self._credentials, "Bearer", ends)
        if not page.endswith("\n"):
            raise AdapterError(f"{where}: the page breaks off; expected a line feed at its end")
        lines, others = [], set()
        for line in ends.until_deadline(page.split("\n")):
            line = line.strip(" \t\r")
            match = _NAME.match(line)
            if match is not None and match[0] in desired:
                lines.append(line)
            elif match is not None:
                others.add(match[0])
        # Without type lines, the parser keeps the names of samples as on the page.
        found = self._parse(ends.until_deadline(lines))
        for name in sorted(desired - {sample.name for sample in found}):
            hint = did_you_mean(name, sorted(others)[:1000], "expected a page of metrics with it")
            raise AdapterError(f"{where}: there is no metric {name}; {hint}")
        return found

    def _parse(self, lines: Iterable[str]) -> list[Sample]:
        found: dict[tuple[str, frozenset[tuple[str, str]]], Sample] = {}
        for line in lines:
            try:
                [family] = text_string_to_metric_families(_excerpt(line))
                [sample] = family.samples
            except (ValueError, IndexError):
                raise AdapterError(
                    f"{self._options.where}: {line[:100]!r} is not a sample; expected one such as "
                    f'{self._options.sent}{{{self._options.label}="..."}} 12'
                ) from None
            key = sample.name, frozenset(sample.labels.items())
            if key in found:
                raise AdapterError(f"{self._options.where}: {line[:100]!r} is there twice")
            found[key] = Sample(sample.name, sample.labels, sample.value)
        return list(found.values())


def _excerpt(line: str) -> str:
    if len(line) > LONGEST_LINE:
        raise ValueError("too long")
    return line
