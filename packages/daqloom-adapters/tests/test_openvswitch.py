"""Tests of the Open vSwitch adapter with a real ovsdb-server and a simulated switch, with a real
ovs-vswitchd that has no network, and with faulty servers."""

import contextlib
import json
import re
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from daqloom.control.calls.certificates import make_certificates
from daqloom.device.adapter import AdapterError, PortBuffer, PortCount
from daqloom.device.credentials import Credentials
from daqloom.device.document import build
from daqloom.scenario.errors import ScenarioError
from daqloom_adapters import ovsdb
from daqloom_adapters.openvswitch import OpenVSwitch, OpenVSwitchOptions
from daqloom_adapters.ovsdb import Ovsdb, OvsdbOptions
from support.adapter_conformance import (
    check_configures,
    check_counts,
    check_refuses,
    check_refuses_entry,
)
from support.openvswitch import database, process, vsctl

pytestmark = pytest.mark.process


@pytest.fixture
def folder(tmp_path_factory) -> Path:
    """Folder with a name that is short enough for Unix sockets."""
    return tmp_path_factory.mktemp("o")


@pytest.fixture
def served(folder: Path) -> Iterator[Path]:
    """Yield the folder of a database that has a bridge with three ports; one port has a QoS with a
    queue."""
    with database(folder):
        vsctl(folder, "init", "--", "add-br", "br0")
        vsctl(folder, "add-port", "br0", "a", "--", "add-port", "br0", "b")
        vsctl(folder, "add-bond", "br0", "pair", "c", "d")
        vsctl(
            folder,
            *("--id=@q", "create", "queue", "other_config:max-rate=5000000"),
            *("--", "--id=@qos", "create", "qos", "type=linux-htb", "queues:1=@q"),
            *("other_config:max-rate=80000000", "--", "set", "port", "b", "qos=@qos"),
        )
        yield folder


def rows(folder: Path) -> list[dict]:
    """Return all QoS rows of the database, sorted by `external_ids`."""
    found = json.loads(vsctl(folder, "--format=json", "list", "qos"))
    made = [dict(zip(found["headings"], row, strict=True)) for row in found["data"]]
    return sorted(made, key=lambda row: str(row["external_ids"]))


def adapter(
    at: Path | str,
    *ports: str,
    wait: bool = False,
    timeout: str = "30 s",
    credentials: Credentials | None = None,
    **keys: str,
) -> OpenVSwitch:
    remote = at if isinstance(at, str) else f"unix:{at}/db"
    table = {"remote": remote, "timeout": timeout, "wait": wait} | keys
    options = build(OpenVSwitchOptions, table, "device.toml")
    return OpenVSwitch(options, ports or ("a", "b"), credentials)


@contextmanager
def played(folder: Path) -> Iterator[None]:
    """Set `cur_cfg` to each new `next_cfg`, as ovs-vswitchd does, without any effect."""
    database = Ovsdb(
        build(OvsdbOptions, {"remote": f"unix:{folder}/db", "timeout": "60 s"}, ""), None
    )
    root = {"table": "Open_vSwitch", "where": []}

    def follow() -> None:
        seen = 0
        with contextlib.suppress(AdapterError):
            while seen >= 0:
                waits = {"columns": ["next_cfg"], "until": "!=", "rows": [{"next_cfg": seen}]}
                _, found = database.transact(
                    root | {"op": "wait"} | waits, root | {"op": "select", "columns": ["next_cfg"]}
                )
                seen = found["rows"][0]["next_cfg"]
                database.transact(root | {"op": "update", "row": {"cur_cfg": seen}})

    with ThreadPoolExecutor(1) as pool:
        followed = pool.submit(follow)
        try:
            yield
        finally:
            vsctl(folder, "set", "Open_vSwitch", ".", "next_cfg=-1")
        followed.result()


def test_a_database_without_a_switch_has_its_address_as_identity(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "db")

    def identity(remote: str) -> str:
        return Ovsdb(build(OvsdbOptions, {"remote": remote}, "file"), None).address_identity()

    assert identity(f"unix:{folder}/link") == identity(f"unix:{folder}/db") == f"socket {folder}/db"
    assert identity("tcp:localhost:6640") == identity("ssl:127.0.0.1:6640")
    assert identity("tcp:[::1]:6640") == "address ::1 port 6640"


def test_its_identity_is_that_of_the_database_by_whichever_path_it_is_reached(served: Path) -> None:
    (served / "link").symlink_to(served / "db")
    one, other = adapter(served), adapter(f"unix:{served}/link")
    assert one.identity() == other.identity()
    assert re.fullmatch(r"database [0-9a-f-]{36}", one.identity())


@pytest.mark.parametrize(
    "wanted",
    [
        PortBuffer(limit_packets=77),
        PortBuffer(limit_packets=77, pace_bps=0),
        PortBuffer(pace_bps=123_456_000),
        PortBuffer(pace_bps=0),
    ],
)
def test_ports_are_set_and_set_back(served, wanted):
    before = rows(served), vsctl(served, "list", "queue"), vsctl(served, "get", "port", "b", "qos")
    with played(served):
        check_configures(adapter(served, wait=True), wanted)
    assert vsctl(served, "get", "port", "a", "qos") == "[]"
    assert vsctl(served, "get", "port", "b", "qos") == before[2]
    assert (rows(served), vsctl(served, "list", "queue")) == before[:2]
    assert vsctl(served, "get", "Open_vSwitch", ".", "cur_cfg") == "-1"


def test_applied_buffers_are_those_of_the_database(served):
    [theirs] = rows(served)
    with adapter(served) as used:
        assert used.applied() == {"a": PortBuffer(pace_bps=0), "b": PortBuffer(pace_bps=80_000_000)}
        saved = json.loads(json.dumps(used.save()))
        assert saved == {"a": "", "b": theirs["_uuid"][1]}
        used.apply(PortBuffer(limit_packets=77))
        assert used.applied()["a"] == PortBuffer(limit_packets=77, pace_bps=0)
        of_a, of_b, _ = rows(served)
        for port, row in (("a", of_a), ("b", of_b)):
            assert row["type"] == "linux-netem"
            assert row["other_config"] == ["map", [["limit", "77"]]]
            assert row["external_ids"] == ["map", [["daqloom-port", port]]]
            assert vsctl(served, "get", "port", port, "qos") == row["_uuid"][1]
        assert theirs in rows(served), "what others have made stays"
        used.apply(PortBuffer(pace_bps=8))
        vsctl(served, "set", "qos", vsctl(served, "get", "port", "a", "qos"), "type=linux-codel")
        assert used.applied() == {"a": PortBuffer(), "b": PortBuffer(pace_bps=8)}
    # A second process saves the configuration that the first one left; each restores what it saved.
    with adapter(served) as second:
        of_first = second.save()
        second.apply(PortBuffer(limit_packets=5))
        second.restore(of_first)
        assert second.save() == of_first
        assert len(rows(served)) == 3
    with adapter(served) as used:
        used.restore(saved)
        assert used.save() == saved
    assert rows(served) == [theirs]


def test_a_plan_has_the_commands_of_vsctl(served):
    with adapter(served) as used:
        saved = used.save()
        for wanted in (
            PortBuffer(limit_packets=9),
            PortBuffer(pace_bps=8000),
            PortBuffer(pace_bps=0),
        ):
            used.apply(wanted)
            as_applied = used.applied()
            used.restore(saved)
            for step in used.plan(wanted):
                vsctl(served, *step.split()[1:])
            assert used.applied() == as_applied
            used.restore(saved)
        assert len(rows(served)) == 1


def test_counts_are_those_of_all_interfaces_of_a_port(served):
    for number, interface in enumerate(("a", "c", "d"), 1):
        counted = f"{{tx_packets={number},tx_bytes={100 * number},tx_dropped={10 * number}}}"
        vsctl(served, "set", "interface", interface, f"statistics={counted}")
    ports = ("a", "pair")
    check_counts(adapter(served, *ports), ports)
    with adapter(served, *ports) as used:
        assert used.read() == {"a": PortCount(1, 100, 10), "pair": PortCount(5, 500, 50)}
    with adapter(served, "b") as used:
        assert "b has no tx_packets" in check_refuses(used.read)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (PortBuffer(limit_packets=5, pace_bps=8), "leave limit_packets or pace_bps out"),
        (PortBuffer(limit_packets=0), "nearest: 1"),
        (PortBuffer(limit_packets=1 << 32), f"nearest: {(1 << 32) - 1}"),
        (PortBuffer(pace_bps=1_000_003), "nearest: 1000000 and 1000008"),
        (PortBuffer(limit_bytes=5), "expected limit_packets or pace_bps"),
        (PortBuffer(pace_bps=3), "nearest: 8"),
        (PortBuffer(pace_bps=100_000_000_000), "nearest: 34359738360"),
    ],
)
def test_settings_unknown_to_a_qos_are_refused(served, wanted, said):
    with adapter(served) as used:
        for use in (used.plan, used.apply):
            assert said in check_refuses(lambda use=use: use(wanted))
    assert len(rows(served)) == 1


def test_impossible_requests_are_refused_in_one_sentence(served):
    text = check_refuses_entry(adapter(served, "left"))
    assert "left is no port" in text
    assert "a, b, br0, pair" in text
    with adapter(served) as used:
        saved = used.save()
        assert "is damaged" in check_refuses(lambda: used.restore({"a": "x"}))
        used.apply(PortBuffer(limit_packets=5))
        vsctl(served, "destroy", "qos", saved["b"])
        assert "its former QoS" in check_refuses(lambda: used.restore(saved))
        assert used.applied()["a"].limit_packets == 5, "then nothing is done"
    with adapter(served, wait=True, timeout="3 s") as used:
        text = check_refuses(lambda: used.apply(PortBuffer(limit_packets=6)))
    assert "ovs-vswitchd has not applied" in text


def test_a_port_that_two_rows_name_is_the_databases_to_refuse(served):
    with adapter(served) as used:
        used.apply(PortBuffer(limit_packets=5))
        made = vsctl(served, "get", "port", "a", "qos")
        vsctl(served, "set", "port", "pair", f"qos={made}")
        text = check_refuses(lambda: used.restore({"a": ""}))
    assert "referential integrity violation" in text


def test_a_database_that_no_switch_ever_followed(folder):
    with database(folder):
        assert "it has none" in check_refuses_entry(adapter(folder))
        used = adapter(folder, wait=True)
        assert "ovs-vsctl --no-wait init" in check_refuses(
            lambda: used.apply(PortBuffer(pace_bps=8))
        )


def test_a_real_switch_applies_the_settings(folder):
    with (
        database(folder),
        process(folder, "ovs-vswitchd", f"unix:{folder}/db", "--enable-dummy", "--disable-system"),
    ):
        vsctl(
            folder, "add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", wait=True
        )
        vsctl(
            folder, "add-port", "br0", "a", "--", "set", "interface", "a", "type=dummy", wait=True
        )
        check_configures(adapter(folder, "a", wait=True), PortBuffer(limit_packets=77))


def test_certificates_are_checked(folder):
    make_certificates(folder / "own")
    make_certificates(folder / "others")
    own = folder / "own"
    with database(
        folder,
        "--remote=pssl:0:127.0.0.1",
        *(f"--private-key={own}/control.key", f"--certificate={own}/control.pem"),
        f"--ca-cert={own}/ca.pem",
    ):
        vsctl(folder, "init", "--", "add-br", "br0", "--", "add-port", "br0", "a")
        found = re.search(r"listening on port ([0-9]+)", (folder / "log").read_text())
        assert found

        def at(host: str, who: str, whose: str = "own", **keys: str) -> OpenVSwitch:
            shown = {"authority": f"{folder}/{whose}/ca.pem", "certificate": f"{who}.pem"} | keys
            key = Credentials(key_file=f"{who}.key", password="hidden")
            return adapter(f"ssl:{host}:{found[1]}", "a", credentials=key, **shown)

        with at("127.0.0.1", f"{own}/unit") as used:
            assert used.applied() == {"a": PortBuffer(pace_bps=0)}
        others = at("127.0.0.1", f"{own}/unit", "others")
        assert "certificate verify failed" in check_refuses_entry(others, "hidden")
        with at("127.0.0.1", f"{own}/unit", "others", verify="nothing") as used:
            assert used.save() == {"a": ""}
        # If the client's certificate is refused, the error comes with the first request.
        unknown = at("127.0.0.1", f"{folder}/others/unit")
        assert f"database ssl:127.0.0.1:{found[1]}" in check_refuses_entry(unknown, "hidden")
        absent = at("127.0.0.1", f"{own}/absent")
        assert "expected files in PEM" in check_refuses_entry(absent, "hidden")


@contextmanager
def answering(reply: Callable[[dict], bytes], beside: str = "") -> Iterator[str]:
    """Yield the address of a server that answers a request with `reply(request)` and then closes.
    It uses TLS if `beside` names a folder with certificates."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        ended = False

        def serve() -> None:
            while True:
                connection, _ = server.accept()
                with connection, contextlib.suppress(OSError):
                    if ended:
                        return
                    if beside:
                        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                        context.load_cert_chain(f"{beside}/control.pem", f"{beside}/control.key")
                        connection = context.wrap_socket(connection, server_side=True)
                    with connection:
                        connection.sendall(reply(json.loads(connection.recv(65_536))))

        served = pool.submit(serve)
        port = server.getsockname()[1]
        try:
            yield f"tcp:127.0.0.1:{port}"
        finally:
            ended = True
            socket.create_connection(("127.0.0.1", port)).close()
        served.result()


def result(*results: object) -> Callable[[dict], bytes]:
    def reply(request: dict) -> bytes:
        return json.dumps({"id": request["id"], "result": results, "error": None}).encode()

    return reply


A = "00000000-0000-0000-0000-00000000000a"
PORT = {"_uuid": ["uuid", A], "name": "a", "qos": ["set", []], "interfaces": ["uuid", A]}


def test_a_plain_answer_is_understood_after_an_echo_too():
    with answering(result({"rows": [PORT]})) as remote, adapter(remote, "a") as used:
        assert used.save() == {"a": ""}

    def reply(request: dict) -> bytes:
        echo = {"method": "echo", "params": [], "id": "echo"}
        return json.dumps(echo).encode() + result({"rows": [PORT]})(request)

    with answering(reply) as remote, adapter(remote, "a") as used:
        assert used.save() == {"a": ""}


@pytest.mark.parametrize(
    "reply",
    [
        lambda _: b"",
        lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n",
        lambda _: b"\xff\xfe\x00",
        lambda _: b"[" * 5000,
        lambda _: b'{"id": 1' + b"0" * 5000 + b"}",
        lambda _: b'{"method": "echo", "params": [], "id": "echo"}',
        lambda _: b'{"result": 1}',
        lambda request: result({"rows": [PORT]})(request)[:-1],
        lambda request: json.dumps({"id": request["id"], "result": None, "error": "no"}).encode(),
        lambda request: json.dumps({"id": request["id"], "result": {}, "error": None}).encode(),
        result(),
        result(None),
        result({"rows": [PORT]}, {}),
        result({}),
        result({"rows": 7}),
        result({"rows": [[]]}),
        result({"rows": [PORT | {"qos": ["map", [[[], 1]]]}]}),
        result({"rows": [PORT | {"qos": ["set", [["uuid", A], ["uuid", A]]]}]}),
        result({"rows": [PORT | {"name": ["\n"]}]}),
        result({"error": "permission\nerror", "details": ["x"] * 5000}),
    ],
)
def test_garbage_is_refused(reply):
    with answering(reply) as remote:
        assert check_refuses_entry(adapter(remote, "a")).isprintable()


def test_rows_of_another_kind_are_refused():
    replies = [PORT, {"_uuid": ["uuid", A], "statistics": ["map", [[[], 1], 3]]}]

    def reply(request: dict) -> bytes:
        table = request["params"][1]["table"]
        return result({"rows": [replies[table == "Interface"]]})(request)

    with answering(reply) as remote, adapter(remote, "a") as used:
        assert "rows of Interface" in check_refuses(used.read)


def test_a_server_that_does_not_answer_or_end_is_not_waited_for(folder, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        for kind in ("tcp", "ssl"):
            used = adapter(f"{kind}:127.0.0.1:{port}", "a", timeout="0.3 s")
            assert "within 0.3 s" in check_refuses_entry(used)
    assert "no such file" in check_refuses_entry(adapter(folder))
    most_bytes = ovsdb.MOST_ANSWER_BYTES // 16  # its parser takes seconds for a megabyte
    monkeypatch.setattr(ovsdb, "MOST_ANSWER_BYTES", most_bytes)
    endless = b'{"id": 0, "result": [' + b"[]," * (most_bytes // 3)
    with answering(lambda _: endless) as remote:
        used = adapter(remote, "a", timeout="60 s")
        assert "invalid JSON-RPC" in check_refuses_entry(used)


def test_a_name_that_is_not_the_hosts_is_refused(folder):
    make_certificates(folder / "own")
    with answering(result({"rows": [PORT]}), beside=f"{folder}/own") as remote:
        port, authority = remote.rpartition(":")[2], f"{folder}/own/ca.pem"
        # The certificate is valid for 127.0.0.1, ::1 and localhost.
        strict = adapter(f"ssl:127.1:{port}", "a", authority=authority)
        assert "certificate verify failed" in check_refuses_entry(strict)
        with adapter(f"ssl:127.1:{port}", "a", authority=authority, verify="authority") as used:
            assert used.save() == {"a": ""}


@pytest.mark.parametrize("remote", ["", "udp:a:1", "tcp:a", "tcp:a:70000", "unix:"])
def test_other_texts_than_remotes_are_refused(remote):
    with pytest.raises(ScenarioError, match="is no ovsdb-server"):
        adapter(remote)
