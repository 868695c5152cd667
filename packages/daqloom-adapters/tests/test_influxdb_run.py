"""Counters of a run of daqloom, which it has posted to a server in line protocol."""

import asyncio
import json
import re
import threading
from collections import defaultdict
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from daqloom.control.publication import Publication
from daqloom.device.adapter import PortCount
from daqloom.device.document import build
from daqloom.scenario.schema.measure import Measure
from daqloom_adapters import influxdb
from daqloom_adapters.influxdb import InfluxDb
from daqloom_adapters.line_protocol import points
from support.measure.controlled_runs import HUNG_S, controlled, status_after_events

pytestmark = pytest.mark.process

OF_RUNS = {
    "database": "daq",
    "measurement": "daqloom_run",
    "label": "run",
    "sent": "events_total",
    "sent_bytes": "bytes_total",
    "dropped": "lost_events_total",
    "fresh": f"{HUNG_S} s",
}


class Store:
    """Points by database, and answers to the queries of the adapter: the last value of a field of
    each series."""

    def __init__(self) -> None:
        self.lines: dict[str, list[str]] = defaultdict(list)

    def query(self, database: str, text: str) -> str:
        return json.dumps({"results": [self._result(database, q) for q in text.split("; ")]})

    def _result(self, database: str, text: str) -> dict[str, object]:
        form = r'SELECT "(\w+)" FROM "(\w+)" WHERE time > .* GROUP BY \* ORDER BY time DESC LIMIT 1'
        match = re.fullmatch(form, text)
        assert match, text
        field, measurement = match.groups()
        last = {}
        for point in points(self.lines[database], measurement):
            if field in point.fields:
                last[tuple(point.tags.items())] = [point.time_ns, point.fields[field]]
        return {
            "series": [
                {"tags": dict(tags), "columns": ["time", field], "values": [row]}
                for tags, row in last.items()
            ]
        }


@contextmanager
def database():
    """Yields the URL of a server with /write and /query, and what it stores."""
    store = Store()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            assert body.endswith("\n")
            store.lines[self._query("db")].extend(body.splitlines())
            self.send_response(204)
            self.end_headers()

        def do_GET(self) -> None:
            text = store.query(self._query("db"), self._query("q")).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def _query(self, name: str) -> str:
            return parse_qs(urlsplit(self.path).query)[name][0]

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", store
        finally:
            server.shutdown()
            thread.join()


async def test_the_adapter_reads_the_counters_that_a_run_has_posted(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(influxdb, "POLL_S", 0.01)
    with database() as (url, store):
        publication = Publication(Measure(influxdb=f"{url}/write?db=daq"))
        async with controlled(tmp_path, publication=publication) as control:
            status = await status_after_events(control, {0, 1, 2})
            await control.until(
                lambda: any(
                    f"events_total={status.built_events}.0," in f"{line},"
                    for line in store.lines["daq"]
                )
            )
            options = build(InfluxDb.Options, {"address": url, **OF_RUNS}, "here")
            with InfluxDb(options, ["test"]) as adapter:
                found = await asyncio.to_thread(adapter.read)
    lost = sum(status.lost.values())
    assert found == {"test": PortCount(status.built_events, status.built_bytes, lost)}
    assert status.built_events > 10
    assert control.status().counts["unsent_points"] == 0
    # The last points are those of the end.
    assert any(",phase=ended phase=1.0 " in line for line in store.lines["daq"][-60:])
