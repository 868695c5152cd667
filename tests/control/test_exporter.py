"""A unit's counters as Prometheus reads them."""

import errno
import socket
import threading
import urllib.request
from contextlib import ExitStack, closing
from wsgiref.simple_server import WSGIServer

import pytest
from prometheus_client.parser import text_string_to_metric_families

from daqloom._engine import Counters, latency_bucket
from daqloom.control import exporter as exporter_module
from daqloom.control.exporter import BOUNDS_S, MOST_CLIENTS, Collector, Exporter, exporter
from daqloom.results.errors import MeasureError
from daqloom.scenario import Scenario

pytestmark = pytest.mark.process

HUNG_S = 60.0
"""Ends a test that hangs; no test waits for it."""

LABELS = {"run": "r1", "scenario": "mine", "unit": "3"}


def bucket_of(duration_s: float) -> int:
    """By its bounds."""
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
    """Value by name and the label that is not on everything."""
    found = {}
    for family in text_string_to_metric_families(page_of(server)):
        for sample in family.samples:
            assert LABELS.items() <= sample.labels.items()
            (extra,) = (sample.labels.keys() - LABELS.keys()) or {""}
            found[sample.name, sample.labels.get(extra, "")] = sample.value
    return found


def test_everything_that_a_unit_counts_is_there_in_seconds_bytes_and_events(served) -> None:
    found = scraped(served[0])
    assert found["daqloom_events_total", "built"] == 70  # ten events in a MEP
    assert found["daqloom_events_total", "incomplete"] == 20
    assert found["daqloom_events_total", "dropped"] == 10
    assert found["daqloom_events_total", "discarded"] == 30
    assert found["daqloom_waiting_seconds_total", "source"] == 1.5
    assert found["daqloom_waiting_seconds_total", "barrier"] == 0.25
    assert found["daqloom_mfp_written_bytes_total", ""] == 900
    assert found["daqloom_in_barrier_seconds_total", ""] == 0.25
    assert found["daqloom_waits", ""] == 1
    assert found["daqloom_refused_total", "writes"] == 4
    assert found["daqloom_transport_refused_total", "epoch"] == 5
    assert found["daqloom_meps_wrong_by_cause_total", "alignment, version or type"] == 6


def test_latencies_are_cumulative_histograms(served) -> None:
    found = scraped(served[0])
    assert found["daqloom_build_seconds_count", ""] == 10
    assert found["daqloom_build_seconds_sum", ""] == 0.5
    assert found["daqloom_build_seconds_bucket", "0.001"] == 0
    assert found["daqloom_build_seconds_bucket", "0.002"] == 9
    assert found["daqloom_build_seconds_bucket", "0.2"] == 9
    assert found["daqloom_build_seconds_bucket", "0.5"] == 10
    assert found["daqloom_build_seconds_bucket", "+Inf"] == 10
    assert len(BOUNDS_S) == 21
    assert found["daqloom_barrier_seconds_count", ""] == 0


def test_counters_are_read_when_somebody_asks_and_never_otherwise(served) -> None:
    server, reads = served
    assert reads == []
    scraped(server)
    scraped(server)
    assert len(reads) == 2


def hung_up_on(client: socket.socket) -> bool:
    """Waits until it is."""
    client.settimeout(HUNG_S)
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_clients_that_say_nothing_keep_nobody_out(served, monkeypatch) -> None:
    monkeypatch.setattr(exporter_module, "CLIENT_S", HUNG_S)
    address = "127.0.0.1", served[0].port
    with ExitStack() as stack:
        silent = [
            stack.enter_context(socket.create_connection(address)) for _ in range(3 * MOST_CLIENTS)
        ]
        assert scraped(served[0])["daqloom_events_total", "built"] == 70
        # One of those who may be there at a time was the scrape.
        assert all(hung_up_on(client) for client in silent[: 2 * MOST_CLIENTS + 1])


def test_a_client_that_says_half_is_hung_up_on_in_time(served, monkeypatch, capfd) -> None:
    monkeypatch.setattr(exporter_module, "CLIENT_S", 0.05)
    with socket.create_connection(("127.0.0.1", served[0].port)) as client:
        client.sendall(b"GET /metr")
        assert hung_up_on(client)
    assert capfd.readouterr().err == ""


def test_it_listens_on_an_address_of_either_version() -> None:
    try:
        server = Exporter(Collector(Counters, LABELS, 1), "::1", 0)
    except MeasureError:
        pytest.skip("no IPv6 here")
    with closing(server):
        assert "daqloom_events_total" in page_of(server, "[::1]")


def test_a_scenario_says_on_which_port_and_units_add_their_number() -> None:
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
def test_a_mep_has_as_many_events_as_the_scenario_packs(tables: dict, packing: int) -> None:
    document = tables | {"name": "mine", "measure": {"prometheus_port": free_port() - 3}}
    with closing(exporter(document, 3, "r1", "127.0.0.1:1", lambda: Counters(COUNTERS))) as server:
        assert scraped(server)["daqloom_events_total", "built"] == 7 * packing  # MEPs built


def test_a_client_that_cannot_be_accepted_is_waited_for_with_pauses(served, monkeypatch) -> None:
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


def test_a_port_that_there_is_not_is_refused() -> None:
    with pytest.raises(MeasureError, match=r":65537; set"):
        exporter({"measure": {"prometheus_port": 65535}}, 2, "r", "127.0.0.1:1", dict)
