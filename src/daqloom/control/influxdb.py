"""Points of a run's metrics for InfluxDB, in line protocol:
https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol."""

import re
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from daqloom.base.words import reason_of
from daqloom.control.run_metrics import samples
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


def points(status: Status, time_ns: int) -> list[str]:
    """Return the metrics of a run as points: fields with the names of `METRICS`, labels as tags."""
    found: dict[str, list[str]] = {}
    for metric, labels, number in samples(status):
        found.setdefault(_tags(labels), []).append(f"{metric.name}={number!r}")
    return [f"{MEASUREMENT}{tags} {','.join(fields)} {time_ns}\n" for tags, fields in found.items()]


def _tags(labels: Mapping[str, str]) -> str:
    """Return tags. No value may be empty or end with a backslash, which has no escape."""
    plain = {key: value.rstrip("\\") for key, value in labels.items()}
    escaped = {key: re.sub(r"([,= ])", r"\\\1", value) for key, value in plain.items() if value}
    return "".join(f",{key}={value}" for key, value in escaped.items())


class Writer:
    """Writer of points to a server, in a thread of its own. Raises MeasureError for a token that
    others could read."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = urlsplit(url)
        self._headers = {"Authorization": f"Token {token}"} if token else {}
        self.where = url.partition("?")[0]
        """Address for messages, without its query, which may contain a secret."""
        if token and self._url.scheme == "http" and not is_loopback(self._url.hostname or ""):
            raise MeasureError(
                f"measure.influxdb = {self.where}: the token in {TOKEN} would go over http, where "
                "others can read it; use https"
            )
        self.unsent = 0
        """Dropped points."""
        self.failure = ""
        """Failure of the last attempt; empty if the server accepted the points."""
        self._waiting: deque[str] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="influxdb", daemon=True)
        self._thread.start()

    def add(self, new: Sequence[str]) -> None:
        """Add points; return at once."""
        with self._changed:
            self._waiting.extend(new)
            self._drop(MOST_WAITING)
            self._changed.notify()

    def close(self) -> None:
        """Send the points that wait, and end the thread; give up after a failure or `TIMEOUT_S`."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(TIMEOUT_S)

    def _drop(self, most: int) -> None:
        """Drop the oldest points, so that `most` are left."""
        while len(self._waiting) > most:
            self._waiting.popleft()
            self.unsent += 1

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                count = min(len(self._waiting), MOST_AT_ONCE)
                batch = [self._waiting.popleft() for _ in range(count)]
            if not batch:
                return
            self.failure = self._post("".join(batch).encode())
            with self._changed:
                if self.failure:
                    self._waiting.extendleft(reversed(batch))
                    is_over = self._changed.wait_for(lambda: self._closing, RETRY_S)
                    self._drop(0 if is_over else MOST_WAITING)

    def _post(self, body: bytes) -> str:
        """Return why the server did not accept the points; empty if it did."""
        url = self._url
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
        try:
            with closing(kind(url.hostname or "", url.port, timeout=TIMEOUT_S)) as connection:
                connection.request("POST", target, body, self._headers)
                status = connection.getresponse().status
        except OSError as error:
            return reason_of(error)
        except (HTTPException, ValueError):
            return "no answer in HTTP, or an invalid port or token"
        return "" if 200 <= status < 300 else f"HTTP {status}"
