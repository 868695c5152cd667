"""Counters of a unit for Prometheus."""

import errno
import socket
import threading
import urllib.request
from contextlib import ExitStack, closing
from wsgiref.simple_server import WSGIServer

import pytest
from prometheus_client.parser import text_string_to_metric_families

from daqloom._engine import Counters, latency_bucket
from daqloom.control.counters import exporter as exporter_module
from daqloom.control.counters.exporter import BOUNDS_S, MOST_CLIENTS, Collector, Exporter, exporter
from daqloom.results.errors import MeasureError
from daqloom.scenario import Scenario

pytestmark = pytest.mark.process

HUNG_S = 60.0
"""Ends a test that hangs; no test waits for it."""

LABELS = {"run": "r1", "scenario": "mine", "unit": "3"}


def bucket_of(duration_s: float) -> int:
    """Bucket of a duration, by its bounds."""
    for number in range(1000):
        lowest, width = latency_bucket(number)
        if lowest <= duration_s < lowest + width:
            return number
    raise AssertionError(duration_s)


COUNTERS = {
    "waits": 1,
    "meps_built": 7,
    "meps_incomplete": 2,
    "meps_dropped": 1,
    "meps_discarded": 3,
    "mfp_bytes_written": 900,
    "in_barrier_s": 0.25,
    "waiting_for_source_s": 1.5,
    "refused_writes": 4,
    "transport.refused_epoch": 5,
    "wrong.alignment, version or type": 6,
    "building_s": 0.5,
    f"building_bucket.{bucket_of(0.0015)}": 9,
    f"building_bucket.{bucket_of(0.3)}": 1,
}


@pytest.fixture
def served():
    reads = []

    def read():
        reads.append(1)
        return Counters(COUNTERS)

    with closing(Exporter(Collector(read, LABELS, packing=10), "127.0.0.1", 0)) as server:
        yield server, reads


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def page_of(server: Exporter, host: str = "127.0.0.1") -> str:
    with urllib.request.urlopen(f"http://{host}:{server.port}/metrics", timeout=30) as page:
        return page.read().decode()


def scraped(server: Exporter) -> dict[tuple[str, str], float]:
    """Values by name and the label of the metric alone."""
    found = {}
    for family in text_string_to_metric_families(page_of(server)):
        for sample in family.samples:
            assert LABELS.items() <= sample.labels.items()
            (extra,) = (sample.labels.keys() - LABELS.keys()) or {""}
            found[sample.name, sample.labels.get(extra, "")] = sample.value
    return found


def test_all_counters_are_served_in_seconds_bytes_and_events(served) -> None:
    found = scraped(served[0])
    expected: dict[str, dict[str, float]] = {
        # Ten events in a MEP.
        "events_total": {"built": 70, "incomplete": 20, "dropped": 10, "discarded": 30},
        "waiting_seconds_total": {"source": 1.5, "barrier": 0.25},
        "mfp_written_bytes_total": {"": 900},
        "in_barrier_seconds_total": {"": 0.25},
        "waits": {"": 1},
        "refused_total": {"writes": 4},
        "transport_refused_total": {"epoch": 5},
        "meps_wrong_by_cause_total": {"alignment, version or type": 6},
        # Latencies are cumulative histograms.
        "build_seconds_count": {"": 10},
        "build_seconds_sum": {"": 0.5},
        "build_seconds_bucket": {"0.001": 0, "0.002": 9, "0.2": 9, "0.5": 10, "+Inf": 10},
        "barrier_seconds_count": {"": 0},
    }
    for name, values in expected.items():
        assert {label: found[f"daqloom_{name}", label] for label in values} == values
    assert len(BOUNDS_S) == 21


def test_counters_are_read_at_each_scrape_alone(served) -> None:
    server, reads = served
    assert reads == []
    scraped(server)
    scraped(server)
    assert len(reads) == 2


def is_closed(client: socket.socket) -> bool:
    """Waits until the server has closed the connection."""
    client.settimeout(HUNG_S)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_silent_clients_block_no_others(served, monkeypatch) -> None:
    monkeypatch.setattr(exporter_module, "CLIENT_S", HUNG_S)
    address = "127.0.0.1", served[0].port
    with ExitStack() as stack:
        silent = [socket.create_connection(address) for _ in range(3 * MOST_CLIENTS)]
        for client in silent:
            stack.enter_context(client)
        assert scraped(served[0])["daqloom_events_total", "built"] == 70
        # The scrape was one of the clients at that time.
        assert all(is_closed(client) for client in silent[: 2 * MOST_CLIENTS + 1])


def test_a_client_with_half_a_request_is_closed_in_time(served, monkeypatch, capfd) -> None:
    monkeypatch.setattr(exporter_module, "CLIENT_S", 0.05)
    with socket.create_connection(("127.0.0.1", served[0].port)) as client:
        client.sendall(b"GET /metr")
        assert is_closed(client)
    assert capfd.readouterr().err == ""


def test_it_listens_on_ipv6() -> None:
    try:
        server = Exporter(Collector(Counters, LABELS, 1), "::1", 0)
    except MeasureError:
        pytest.skip("no IPv6 here")
    with closing(server):
        assert "daqloom_events_total" in page_of(server, "[::1]")


def test_the_port_is_the_scenarios_plus_the_units_number() -> None:
    assert exporter({"name": "x"}, 0, "r", "127.0.0.1:1", dict) is None
    port = free_port()
    document = {"name": "x", "measure": {"prometheus_port": port - 2}}
    with closing(exporter(document, 2, "r", "127.0.0.1:1", dict)) as server:
        assert server.port == port
        with pytest.raises(MeasureError, match=rf"127\.0\.0\.1:{port}; set measure\.prom"):
            exporter({"measure": {"prometheus_port": port}}, 0, "r", "127.0.0.1:1", dict)


@pytest.mark.parametrize(
    ("tables", "packing"),
    [
        ({"event": {"packing": 7}, "building": {"protocol": "shift"}, "readout": {"units": 2}}, 7),
        ({"network": {"technology": "infiniband"}}, Scenario().event.packing),
        ({}, 1),
    ],
    ids=["shift", "shift by default", "pull by default"],
)
def test_a_mep_has_the_scenarios_packing(tables: dict, packing: int) -> None:
    document = tables | {"name": "mine", "measure": {"prometheus_port": free_port() - 3}}
    with closing(exporter(document, 3, "r1", "127.0.0.1:1", lambda: Counters(COUNTERS))) as server:
        assert scraped(server)["daqloom_events_total", "built"] == 7 * packing  # MEPs built


def test_after_a_client_that_cannot_be_accepted_comes_a_pause(served, monkeypatch) -> None:
    server, _ = served
    tries: list[str] = []
    enough, again = threading.Event(), threading.Event()

    def refuse(self: object) -> None:
        tries.append("try")
        if again.is_set():
            return accept(self)
        raise OSError(errno.EMFILE, "too many open files")

    def pause(seconds: float) -> None:
        assert seconds == exporter_module.ACCEPT_PAUSE_S
        tries.append("pause")
        if len(tries) >= 6:
            enough.set()
            again.wait(HUNG_S)

    accept = WSGIServer.get_request
    monkeypatch.setattr(WSGIServer, "get_request", refuse)
    monkeypatch.setattr(exporter_module.time, "sleep", pause)
    with socket.create_connection(("127.0.0.1", server.port), timeout=HUNG_S) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert enough.wait(HUNG_S)
        assert tries == ["try", "pause"] * 3
        again.set()
        assert client.recv(12) == b"HTTP/1.0 200"


def test_an_invalid_port_is_refused() -> None:
    with pytest.raises(MeasureError, match=r":65537; set"):
        exporter({"measure": {"prometheus_port": 65535}}, 2, "r", "127.0.0.1:1", dict)
