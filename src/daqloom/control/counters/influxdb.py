"""Points of a run's metrics for InfluxDB, in line protocol:
https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol."""

import re
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import islice
from urllib.parse import urlsplit

from daqloom.base.words import reason_of
from daqloom.control.counters.run_metrics import samples
from daqloom.control.status import Status
from daqloom.machine.addresses import is_loopback
from daqloom.results.errors import MeasureError

MEASUREMENT = "daqloom_run"
TOKEN = "DAQLOOM_INFLUXDB_TOKEN"
"""Environment variable with the token of the server."""
MOST_WAITING = 10_000
"""Points that wait for the server; beyond, the oldest ones are dropped."""
MOST_AT_ONCE = 1000
TIMEOUT_S = 2.0
RETRY_S = 1.0
"""Pause after a failure."""
TEMPORARY = (408, 429)


def points(status: Status, time_ns: int) -> list[str]:
    """Return the metrics of a run as points: the fields are named as for Prometheus, without the
    prefix, and labels are tags."""
    found: dict[str, list[str]] = {}
    for sample in samples(status):
        fields = found.setdefault(_tags(sample.labels), [])
        fields.append(f"{sample.metric.suffixed}={sample.value!r}")
    return [f"{MEASUREMENT}{tags} {','.join(fields)} {time_ns}\n" for tags, fields in found.items()]


def _tags(labels: Mapping[str, str]) -> str:
    """Return tags; a value has no line feed, no backslash at its end, and is not empty."""
    values = {key: re.sub(r"\s", " ", value).rstrip("\\") for key, value in labels.items()}
    escaped = {key: re.sub(r"([,= ])", r"\\\1", value) for key, value in values.items()}
    return "".join(f",{key}={value}" for key, value in escaped.items() if value)


class Writer:
    """Writer of points to a server, in a thread of its own. Raises MeasureError for a token that
    others could read."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = urlsplit(url)
        self._headers = {"Authorization": f"Token {token}"} if token else {}
        self.where = url.partition("?")[0]
        host = self._url.hostname or ""
        if token and self._url.scheme == "http" and not is_loopback(host):
            raise MeasureError(
                f"measure.influxdb = {self.where}: the token in {TOKEN} would go over http, where "
                "others can read it; use https"
            )
        self.unsent = 0
        """Dropped points."""
        self.failure = ""
        """Failure of the last attempt; empty if the server took the points."""
        self._waiting: deque[str] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="influxdb", daemon=True)
        self._thread.start()

    def add(self, new: Sequence[str]) -> None:
        """Add points; return at once."""
        with self._changed:
            self._waiting.extend(new)
            self._limit(MOST_WAITING)
            self._changed.notify()

    def close(self) -> None:
        """Send what waits, in one attempt, and end the thread; give up after `TIMEOUT_S`."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(TIMEOUT_S)

    def _limit(self, most: int) -> None:
        while len(self._waiting) > most:
            self._waiting.popleft()
            self.unsent += 1

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                batch = list(islice(self._waiting, MOST_AT_ONCE))
                for _ in batch:
                    self._waiting.popleft()
            if not batch:
                return
            self.failure, is_final = self._post("".join(batch).encode())
            with self._changed:
                if is_final:
                    self.unsent += len(batch)
                elif self.failure:
                    self._waiting.extendleft(reversed(batch))
                    self._limit(MOST_WAITING)
                if self.failure and self._changed.wait_for(lambda: self._closing, RETRY_S):
                    self._limit(0)

    def _post(self, body: bytes) -> tuple[str, bool]:
        """Return why the server did not take the points, and whether it never will."""
        url = self._url
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        try:
            connection = kind(url.hostname or "", url.port, timeout=TIMEOUT_S)
            try:
                target = (url.path or "/") + (f"?{url.query}" if url.query else "")
                connection.request("POST", target, body, self._headers)
                code = connection.getresponse().status
            finally:
                connection.close()
        except OSError as error:
            return reason_of(error), False
        except (HTTPException, ValueError):
            return "the answer is not HTTP", False
        if code < 300:
            return "", False
        return f"HTTP {code}", 300 <= code < 500 and code not in TEMPORARY
