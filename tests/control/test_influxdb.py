"""Points for InfluxDB, and the thread that sends them."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from daqloom.control import influxdb
from daqloom.control.influxdb import MOST_WAITING, Writer, points
from daqloom.control.protocol.states import Goal, Phase
from daqloom.control.status import Status
from daqloom.results.errors import MeasureError

HUNG_S = 60.0


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(influxdb, "RETRY_S", 0.01)


def status(**more) -> Status:
    fields = {"run": "r1", "scenario": "mine", "time_s": 1.5, "phase": Phase.READY}
    fields |= {"goal": Goal.READY, "epoch": 3, "first_mep": 0, "failure": "", "units": ()}
    fields |= {"events": (), "counts": {"units_lost": 2, "regroupings": 4}, "lost": {"dropped": 7}}
    return Status.model_validate(fields | more)


def test_points_have_a_line_for_each_set_of_labels() -> None:
    found = points(status(built_events=12, built_bytes=34), 1_700_000_000_000_000_000)
    assert found[0].startswith("daqloom_run,run=r1,scenario=mine,phase=waiting phase=0.0 17")
    assert "daqloom_run,run=r1,scenario=mine,phase=ready phase=1.0 1700000000000000000\n" in found
    assert (
        "daqloom_run,run=r1,scenario=mine epoch=3.0,members=0.0,events_total=12.0,"
        "bytes_total=34.0,units_lost_total=2.0,regroupings_total=4.0,"
        "time_seconds=1.5 1700000000000000000\n"
    ) in found
    assert (
        "daqloom_run,run=r1,scenario=mine,cause=dropped lost_events_total=7.0 1700000000000000000\n"
    ) in found


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        ("two words", ",scenario=two\\ words"),
        ("a=b,c", ",scenario=a\\=b\\,c"),
        ("back\\slash\\\\", ",scenario=back\\slash"),  # a backslash would escape what follows
        ("", ""),  # no tag may be empty
    ],
)
def test_values_of_tags_are_escaped(name: str, tag: str) -> None:
    expected = f"daqloom_run,run=r1{tag},phase=waiting phase=0.0 1\n"
    assert points(status(scenario=name), 1)[0] == expected


@contextmanager
def serving(*codes: int):
    """Yields the URL of a server that answers with these codes in turn, the last one for good, its
    accepted requests, and an event for each answer."""
    left, accepted, answered = list(codes), [], threading.Semaphore(0)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            code = left.pop(0) if len(left) > 1 else left[0]
            if code == 204:
                accepted.append((self.path, self.headers["Authorization"], body))
            self.send_response(code)
            self.end_headers()
            answered.release()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", accepted, answered
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.process
def test_points_are_posted_with_the_token_and_are_kept_while_the_server_is_away() -> None:
    with serving(503, 204) as (url, accepted, answered):
        writer = Writer(f"{url}/api/v2/write?bucket=daq&org=x", "secret")
        writer.add(["a f=1.0 1\n", "a f=2.0 2\n"])
        for _ in range(2):
            assert answered.acquire(timeout=HUNG_S)
        writer.add(["a f=3.0 3\n"])
        writer.close()
    assert {each[:2] for each in accepted} == {("/api/v2/write?bucket=daq&org=x", "Token secret")}
    assert "".join(body for *_, body in accepted) == "a f=1.0 1\na f=2.0 2\na f=3.0 3\n"
    assert (writer.unsent, writer.failure) == (0, "")


@pytest.mark.process
def test_a_refusal_is_a_failure_and_the_points_are_counted_at_the_end() -> None:
    with serving(401) as (url, accepted, answered):
        writer = Writer(f"{url}/write?db=x&p=secret")
        writer.add(["a f=1.0 1\n"])
        assert answered.acquire(timeout=HUNG_S)
        writer.close()
    assert accepted == []
    assert (writer.unsent, writer.failure, writer.where) == (1, "HTTP 401", f"{url}/write")


@pytest.mark.process
def test_a_hung_server_costs_the_oldest_points_which_are_counted(monkeypatch) -> None:
    hung, goes_on, sent = threading.Event(), threading.Event(), []

    def post(_writer, body):
        hung.set()
        assert goes_on.wait(HUNG_S)
        sent.extend(body.decode().splitlines())
        return ""

    monkeypatch.setattr(Writer, "_post", post)
    writer = Writer("http://127.0.0.1:1/write")
    writer.add(["a f=-1.0 0\n"])
    assert hung.wait(HUNG_S)
    writer.add([f"a f={number}.0 1\n" for number in range(MOST_WAITING + 25)])
    assert writer.unsent == 25
    monkeypatch.setattr(influxdb, "TIMEOUT_S", HUNG_S)
    goes_on.set()
    writer.close()
    assert sent == ["a f=-1.0 0", *(f"a f={25 + number}.0 1" for number in range(MOST_WAITING))]
    assert writer.unsent == 25


@pytest.mark.process
def test_a_closed_port_is_one_sentence() -> None:
    with serving(204) as (url, _, _):
        pass
    writer = Writer(url)
    writer.add(["a f=1.0 1\n"])
    writer.close()
    assert writer.failure == "connection refused"
    assert writer.unsent == 1


@pytest.mark.process
def test_a_token_goes_to_this_machine_or_over_https_alone() -> None:
    with pytest.raises(MeasureError, match=r"measure.influxdb = http://10.0.0.1/write: the token"):
        Writer("http://10.0.0.1/write?db=x", "secret")
    for url, token in (("https://10.0.0.1/write", "secret"), ("http://10.0.0.1/write", "")):
        Writer(url, token).close()
