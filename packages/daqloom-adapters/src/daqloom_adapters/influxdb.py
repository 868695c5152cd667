"""Counters that a collector such as Telegraf has stored in InfluxDB, or publishes in its line
protocol."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from daqloom.device.adapter import AdapterError, PortCount
from daqloom.scenario.quantities import PositiveSeconds
from daqloom_adapters.deadline import Deadline
from daqloom_adapters.http import get
from daqloom_adapters.line_protocol import points
from daqloom_adapters.series import Name, Sample, Series, SeriesOptions

POLL_S = 1.0
"""Time between two queries that wait for newer values (s)."""
NANOSECONDS = 1_000_000_000


class InfluxDbOptions(SeriesOptions):
    """Options of a database; values are named by fields, labels are tags. The defaults fit
    Telegraf's IF-MIB table."""

    format: Literal["query", "line-protocol"] = "query"
    """Type of the address: a server with /query, such as InfluxDB 1 and 2 (query), or a page in
    line protocol with times in nanoseconds (line-protocol)."""
    database: Name = "telegraf"
    """Database of a query; with InfluxDB 2, one that is mapped to a bucket."""
    measurement: Name = "interface"
    """Measurement that contains the fields."""
    label: Name = "ifName"
    """Tag that contains the name of the port."""
    sent: Name = "ifHCOutUcastPkts"
    """Field of the packets that a port has sent."""
    sent_bytes: Name = "ifHCOutOctets"
    """Field of the bytes that a port has sent."""
    dropped: Name = "ifOutDiscards"
    """Field of the packets that a port has dropped."""
    fresh: PositiveSeconds = 30.0
    """Maximum age of a value, and maximum wait for a value newer than the request; must be longer
    than the collector's interval (s)."""


class _Series(BaseModel):
    """Rows of a query's result for one series, with times and field values."""

    model_config = ConfigDict(strict=True)

    tags: dict[str, str] = Field(default_factory=dict)
    columns: list[str]
    values: list[list[Any]]


class _Result(BaseModel):
    """Result of one query of a request."""

    model_config = ConfigDict(strict=True)

    series: list[_Series] = Field(default_factory=list)
    error: str = ""
    partial: bool = False


class _Answer(BaseModel):
    """Answer to a request with several queries."""

    model_config = ConfigDict(strict=True)

    results: list[_Result] = Field(default_factory=list)
    error: str = ""


class InfluxDb(Series[InfluxDbOptions]):
    """A database, which is queried each time counters are read."""

    Options: ClassVar[type[InfluxDbOptions]] = InfluxDbOptions

    def read(self) -> Mapping[str, PortCount]:
        """Return values that were collected after the call; wait for them, at most for `fresh`."""
        begin_s = time.time()
        while True:
            samples = self._matching(self._now())
            if all(_time_s(sample) >= begin_s for sample in samples):
                return self._counts(samples)
            left_s = begin_s + self._options.fresh - time.time()
            if left_s <= 0:
                raise self._stale(samples)
            time.sleep(min(POLL_S, left_s))

    def _samples(self, ends: Deadline) -> list[Sample]:
        found = self._query(ends) if self._options.format == "query" else self._page(ends)
        oldest_s = time.time() - self._options.fresh
        taken = self._matching(found)
        if any(_time_s(sample) < oldest_s for sample in taken):
            raise self._stale(taken)
        return taken

    @property
    def _nothing(self) -> str:
        fresh, label = self._options.fresh, self._options.label
        return f'nothing of the last {fresh:g} s has the tag "{label}"'

    def _stale(self, samples: Iterable[Sample]) -> AdapterError:
        oldest = min(samples, key=_time_s)
        age_s = max(0.0, time.time() - _time_s(oldest))
        return AdapterError(
            f"{self._options.where}: {oldest.name} of {oldest.labels[self._options.label]} was "
            f"collected {age_s:.1f} s ago, and none came since; expected one at least every "
            f"{self._options.fresh:g} s: from a collector that runs, with a clock like this one"
        )

    def _page(self, ends: Deadline) -> list[Sample]:
        options = self._options
        page = get(options, self._credentials, "Token", ends)
        if not page.endswith("\n"):
            raise AdapterError(
                f"{options.where}: the page breaks off; expected a line feed at its end"
            )
        try:
            found = points(ends.until_deadline(page.split("\n")), options.measurement)
        except ValueError as error:
            raise AdapterError(
                f"{options.where}: {str(error)[:100]!r} is not a line of line protocol with a time"
            ) from None
        # If a page has several values of a series, the last one counts.
        last = {
            (name, frozenset(point.tags.items())): Sample(
                name, point.tags, value, point.time_ns / NANOSECONDS
            )
            for point in sorted(found, key=lambda at: at.time_ns)
            for name, value in point.fields.items()
        }
        return list(last.values())

    def _query(self, ends: Deadline) -> list[Sample]:
        options = self._options
        query = {"db": options.database, "q": _statements(options), "epoch": "ns"}
        page = get(options, self._credentials, "Token", ends, "/query", query)
        try:
            answer = _Answer.model_validate_json(page)
        except ValidationError:
            raise AdapterError(
                f"{options.where}: invalid result ({page[:60]!r}); expected "
                "that of InfluxDB's /query"
            ) from None
        for refusal in (answer.error, *(result.error for result in answer.results)):
            if refusal:
                reason = refusal[:1000]
                if self._credentials:
                    reason = self._credentials.without_secrets(reason)
                raise AdapterError(f"{options.where}: refuses the query: {reason[:200]!r}")
        if any(result.partial for result in answer.results):
            raise AdapterError(f"{options.where}: the answer is cut; use match to select less")
        series = [each for result in answer.results for each in result.series]
        try:
            return [sample for each in ends.until_deadline(series) for sample in _last(each)]
        except ValueError:
            raise AdapterError(
                f"{options.where}: a series has rows without a time, or not of its columns"
            ) from None


def _last(series: _Series) -> list[Sample]:
    """Return the numeric fields of the newest row. Raises ValueError for a row without time."""
    rows = [dict(zip(series.columns, row, strict=True)) for row in series.values]
    if not all(type(row.get("time")) is int and abs(row["time"]) < 1 << 63 for row in rows):
        raise ValueError("no time")
    newest: dict[str, Any] = max(rows, key=lambda row: row["time"], default={})
    return [
        Sample(name, series.tags, value, newest["time"] / NANOSECONDS)
        for name, value in newest.items()
        if name != "time" and type(value) in (int, float)
    ]


def _statements(options: InfluxDbOptions) -> str:
    """Return a query for each field: the last value of each series, if fresh by the server's clock.
    A single query would miss fields that a collector stores in separate points."""
    conditions = [f"time > now() - {round(options.fresh * 1000) or 1}ms"]
    conditions += [f"{_identifier(tag)} = {_text(value)}" for tag, value in options.match.items()]
    return "; ".join(
        f"SELECT {_identifier(name)} FROM {_identifier(options.measurement)} "
        f"WHERE {' AND '.join(conditions)} GROUP BY * ORDER BY time DESC LIMIT 1"
        for name in sorted(options.names)
    )


def _identifier(name: str) -> str:
    return '"' + _escape(name).replace('"', '\\"') + '"'


def _text(value: str) -> str:
    return "'" + _escape(value).replace("'", "\\'") + "'"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _time_s(sample: Sample) -> float:
    return sample.time_s or 0.0
