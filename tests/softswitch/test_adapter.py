"""The adapter of daqloom's software switch: with a switch that runs, and with what only listens."""

import importlib.util
import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc
import pytest

from daqloom.control.calls.admission import Greetings
from daqloom.control.calls.connection import GREET, STEER
from daqloom.control.calls.registry import publish
from daqloom.device.adapter import PortBuffer, PortCount
from daqloom.device.document import build
from daqloom.scenario.errors import ScenarioError
from daqloom.softswitch.adapter import SWITCH, Software, SoftwareOptions
from support.adapter_conformance import check_configures, check_counts, check_refuses
from support.softswitch.switches import frame, switch, two_ports

needs_switch = pytest.mark.skipif(
    importlib.util.find_spec("daqloom._switch") is None, reason="daqloom was built without DPDK"
)
RINGS = """
[rings.one]
port = "down"
to = "10.0.0.1"
packets = 10
rate = "1 Mb/s"
[rings.two]
port = "down"
to = "10.0.0.2"
bytes = "100 kB"
ecn_threshold = "50 kB"
"""
WANTED = PortBuffer(limit_packets=77, limit_bytes=123_456, ecn_bytes=20_000, pace_bps=123_456_789)
SECRET = bytes(range(16))


@pytest.fixture(autouse=True)
def _runs_of_this_test_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def adapter(address: str = "", *ports: str, timeout: str = "30 s") -> Software:
    options = build(SoftwareOptions, {"address": address, "timeout": timeout}, "device.toml")
    return Software(options, ports or ("down",))


def limits(status: dict) -> dict[str, tuple[int, int, int, int]]:
    """Packets, bytes, ECN and rate of each ring in a status."""
    names = ("most_packets", "most_bytes", "mark_bytes", "rate_bps")
    return {ring["name"]: tuple(ring[name] for name in names) for ring in status["rings"]}


@needs_switch
@pytest.mark.process
def test_a_running_switch_is_set_and_set_back(tmp_path):
    with switch(two_ports(tmp_path, [], RINGS)) as running:
        before = limits(running.status())
        assert before["one"] == (10, (1 << 32) - (1 << 16), 0, 1_000_000)
        assert before["two"] == (4096, 100_000, 50_000, 0)
        used = adapter(running.address)
        check_configures(used, WANTED)
        assert limits(running.status()) == before
        with adapter() as used:  # the only switch of this user
            assert used.applied() == {"down": PortBuffer()}, "its rings differ"
            saved = json.loads(json.dumps(used.save()))
            assert saved["one"] == {
                "limit_packets": 10,
                "limit_bytes": (1 << 32) - (1 << 16),
                "ecn_bytes": 0,
                "pace_bps": 1_000_000,
            }
            used.apply(WANTED)
            changed = limits(running.status())
            assert changed["one"] == changed["two"] == (77, 123_456, 20_000, 123_456_789)
            assert changed["port down"] == before["port down"]
            assert used.plan(PortBuffer(limit_bytes=5, pace_bps=0)) == [
                f"daqloom switch set 'rings.{ring}.{key}'"
                for ring in ("one", "two")
                for key in ('bytes="5 B"', 'rate="0 b/s"')
            ]
        with adapter() as used, adapter(running.address) as other:
            assert used.identity() == other.identity() == f"switch {running.status()['identity']}"
            used.restore(saved)
        assert limits(running.status()) == before


@needs_switch
@pytest.mark.process
def test_a_refusal_of_the_switch_is_one_sentence(tmp_path):
    with switch(two_ports(tmp_path, [], RINGS)) as running:
        before = limits(running.status())
        used = adapter(running.address)
        text = check_refuses(lambda: used.apply(PortBuffer(limit_packets=5, pace_bps=10)))
        assert "refuses the change" in text
        assert "must be" in text
        text = check_refuses(lambda: used.restore({"gone": {"limit_packets": 5}}))
        assert "rings.gone" in text
        assert limits(running.status()) == before, "of what is refused nothing is done"
        text = check_refuses(lambda: used.restore({"one": {"limit_packets": "many"}}))
        assert "damaged" in text
        text = check_refuses(adapter(running.address, "left").__enter__)
        assert "left is no port" in text
        assert "up, down" in text
        with adapter(running.address, "up") as bare:
            assert "up has no rings of its own" in check_refuses(bare.applied)
        running.process.kill()
        running.process.communicate()
        assert "software switch" in check_refuses(used.applied)


@needs_switch
@pytest.mark.process
def test_all_that_left_or_was_dropped_is_counted(tmp_path):
    frames = [frame(mark=mark, size=1500) for mark in range(40)]
    frames += [frame("10.0.0.2", mark=mark) for mark in range(30)]
    frames += [frame("10.0.0.3", mark=mark) for mark in range(20)]
    with switch(two_ports(tmp_path, frames, RINGS)) as running:
        running.until(90)
        check_counts(adapter(running.address, "down", "up"), ("down", "up"))
        with adapter(running.address, "down", "up") as used:
            while True:
                found = used.read()
                slow = found["down"].sent - 50
                if slow + found["down"].dropped == 40:
                    break
            used.begin()
            after = used.read()
        rings = {ring["name"]: ring["counts"] for ring in running.last()["rings"]}
    assert found["up"] == PortCount(0, 0, 0, 0)
    assert found["down"].dropped == rings["one"]["drops"]
    assert found["down"].dropped in (28, 29, 30)
    # Frames without a ring leave by the port, too.
    assert found["down"].sent_bytes == 50 * 100 + slow * 1500
    assert after["down"].peak_bytes == 0, "all has left, and peaks were forgotten then"


@contextmanager
def answering(answer: Callable[[bytes], bytes], known: bytes = SECRET) -> Iterator[str]:
    """The address of a service like that of a switch, with given answers."""
    greetings = Greetings({STEER: known})

    def greet(_: bytes, context: grpc.ServicerContext) -> bytes:
        return greetings.greet(context.invocation_metadata()) or b""

    def steer(body: bytes, context: grpc.ServicerContext) -> bytes:
        if not greetings.admits(STEER, context.invocation_metadata()):
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "the secret is another one")
        return answer(body)

    class Handlers(grpc.GenericRpcHandler):
        def service(self, details):
            call = {GREET: greet, STEER: steer}[details.method]
            return grpc.unary_unary_rpc_method_handler(call)

    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool, handlers=(Handlers(),))
        address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            with publish(address, SECRET, kind=SWITCH):
                yield address
        finally:
            server.stop(None).wait()


def status(**changed: object) -> dict[str, object]:
    """The status of a switch with a port and a ring."""
    ring = {
        "name": "one",
        "port": "down",
        "is_of_port": False,
        "rate_bps": 0,
        "most_packets": 10,
        "most_bytes": 1000,
        "mark_bytes": 0,
        "packets": 0,
        "bytes": 0,
        "counts": {"packets": 0, "bytes": 0, "drops": 0, "memory_drops": 0},
        "waits": [],
    }
    port = {"name": "down", "device": "", "is_up": True, "frames": {}, "device_counts": {}}
    whole = {"title": "", "pid": 1, "time_s": 1.0, "stopping": False, "failure": ""}
    counts = {"addresses": {}, "loop": {}, "memory": {}}
    return whole | counts | {"ports": [port], "rings": [ring | changed]}


def test_applied_limits_are_read_from_the_switch():
    asked: list[dict] = []

    def answer(body: bytes) -> bytes:
        asked.append(json.loads(body))
        return json.dumps(status()).encode()

    with answering(answer) as address, adapter(address) as used:
        used.apply(PortBuffer(limit_packets=7))
        assert asked[-1] == {"command": "change", "keys": {"rings.one.packets": 7}}
        assert used.applied()["down"].limit_packets == 10, "it has not done it"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff\xfe",
        b"{}",
        b"[" * 100_000,
        json.dumps(status(packets=-1)).encode(),
        json.dumps(status(name=7)).encode(),
    ],
)
def test_garbage_is_refused(answer):
    with answering(lambda _: answer) as address:
        assert "an invalid status" in check_refuses(adapter(address).__enter__)


@pytest.mark.parametrize("wrong", [{"packets": 3}, {"bytes": 3}, {"counts": {}}])
def test_counters_that_contradict_each_other_are_refused(wrong):
    answer = json.dumps(status(**wrong)).encode()
    with answering(lambda _: answer) as address, adapter(address) as used:
        assert "not its own" in check_refuses(used.read)


def test_a_failure_is_printable():
    failure = json.dumps(status() | {"failure": "no\n\x1b[31mred"}).encode()
    with answering(lambda _: failure) as address:
        text = check_refuses(lambda: adapter(address).apply(PortBuffer(limit_packets=1)))
    assert text.isprintable()


@pytest.mark.process
def test_a_switch_that_is_silent_or_disconnects_is_refused_in_time():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with publish(address, SECRET, kind=SWITCH):
            text = check_refuses(adapter(address, timeout="0.3 s").__enter__, SECRET.hex())
    assert address in text
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        closed = pool.submit(lambda: server.accept()[0].close())
        with publish(address, SECRET, kind=SWITCH):
            check_refuses(adapter(address, timeout="5 s").__enter__, SECRET.hex())
        closed.result()


def test_a_switch_that_is_not_there_or_knows_another_secret_is_one_sentence():
    assert "you have no switch" in check_refuses(adapter().__enter__)
    assert "expected host:port" in check_refuses(adapter("nowhere").__enter__)
    with answering(lambda _: b"{}", known=bytes(16)) as address:
        text = check_refuses(adapter(address).__enter__, SECRET.hex())
    assert "has another token" in text
    with pytest.raises(ScenarioError, match="certificates needs address"):
        build(SoftwareOptions, {"certificates": "folder"}, "device.toml")
