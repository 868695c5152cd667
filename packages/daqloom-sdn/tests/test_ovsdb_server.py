"""Tests of the OVSDB client with servers that do not answer, or answer nonsense."""

import signal
from contextlib import closing
from types import SimpleNamespace

import pytest

pytest.importorskip("daqloom._switch", reason="daqloom was built without DPDK")
pytest.importorskip("ovs", reason="the Python package ovs is not installed")

from daqloom.results.errors import MeasureError
from daqloom.softswitch.load import build
from daqloom.softswitch.status import OvsdbStatus
from daqloom_sdn import ovsdb
from daqloom_sdn.ovsdb import SCHEMA, OvsdbClient
from support.ovsdb_server import OvsdbServer, schema
from support.softswitch.switches import database_rings, switch, two_ports

pytestmark = pytest.mark.process

RINGS = {
    name: {"port": "down", "to": f"10.0.0.{number}", "rate": "10 Mb/s"}
    for number, name in enumerate(("one", "two", "three"), 1)
}


class Stand:
    """Stand-in for a running switch, which records the rates that the OVSDB client sets."""

    def __init__(self, server: OvsdbServer) -> None:
        ports = {"up": {"device": "net_null0"}, "down": {"device": "net_null1"}}
        control = {"ovsdb": server.remote, "bridge": "daq"}
        self.file = build({"ports": ports, "rings": RINGS, "control": control})
        self.rates: dict[str, int] = {}
        self.owners: dict[str, str] = {}

    def set_owned_rates(self, rates, owners):
        self.rates, self.owners = dict(rates), dict(owners)

    def status(self):
        return SimpleNamespace(ports=())


def until(of: OvsdbClient, is_so) -> OvsdbStatus:
    while not is_so(status := of.status()["ovsdb"]):
        pass
    return status


@pytest.mark.parametrize(
    ("rate", "sentence"),
    [
        ("9" * 5000, "= 999999999999999… of 5000 digits is not a rate"),
        ("0", "= 0 would be no limit at all"),
        ("-5", "= -5 is not a rate"),
        ("fast", "= fast is not a rate"),
        ("10", "= 10 is out of range; it must be"),
    ],
)
def test_a_rate_that_is_none_is_refused_and_the_others_are_followed(tmp_path, rate, sentence):
    rates = {1: "5000000", 2: rate, 3: "7000000"}
    with (
        OvsdbServer(tmp_path / "db", rates) as server,
        closing(OvsdbClient(stand := Stand(server))) as follows,
    ):
        [refusal] = until(follows, lambda status: status.refusals).refusals
        assert refusal.startswith("port down, queue 2: other_config:max-rate =")
        assert sentence in refusal
        while stand.rates != {"one": 5_000_000, "three": 7_000_000}:
            pass
        assert set(stand.owners) == {"one", "two", "three"}
        server.set(2, "6000000")
        while stand.rates.get("two") != 6_000_000:
            pass
        assert until(follows, lambda status: not status.refusals).state == "following"


def wrong_type() -> dict:
    found = schema()
    found["tables"]["Queue"]["columns"]["other_config"]["type"]["value"] = "integer"
    return found


@pytest.mark.parametrize(
    ("schemas", "sentence"),
    [
        ({SCHEMA: wrong_type()}, "column other_config of table Queue is string to integer"),
        ({SCHEMA: {"name": SCHEMA, "version": "1.0.0", "tables": {}}}, "is absent; expected uuid"),
        ({SCHEMA: {"name": SCHEMA, "tables": {"Queue": {"columns": {"x": {"type": 5}}}}}}, "mal"),
        ({SCHEMA: 5}, "malformed"),
    ],
)
def test_a_schema_that_is_another_one_is_refused_in_a_sentence(tmp_path, schemas, sentence):
    with OvsdbServer(tmp_path / "db", schemas=schemas) as server:
        with pytest.raises(MeasureError, match=r"control\.ovsdb = unix:.*") as refused:
            OvsdbClient(Stand(server))
        assert sentence in str(refused.value)


def test_a_silent_server_is_refused_in_time(tmp_path, monkeypatch):
    monkeypatch.setattr(ovsdb, "ANSWER_S", 0.2)
    with (
        OvsdbServer(tmp_path / "db", silent=("*",)) as server,
        pytest.raises(MeasureError, match="has not answered within"),
    ):
        OvsdbClient(Stand(server))


def test_a_failed_client_reports_the_reason_and_restarts(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr("daqloom_sdn.supervision.SHORTEST_PAUSE_S", 0.01)
    odd = {"_Server": {"name": "_Server", "version": "1.0.0", "tables": {}}}
    with (
        OvsdbServer(tmp_path / "db", {1: "5000000"}, schemas=odd) as server,
        closing(OvsdbClient(stand := Stand(server))) as follows,
    ):
        status = until(follows, lambda status: status.restarts >= 2 and status.failure)
        assert status.state == "failed"
        assert status.failure.startswith(f"control.ovsdb = {server.remote}: AssertionError")
        server.schemas.pop("_Server")
        assert until(follows, lambda status: not status.failure).state == "following"
        while stand.rates != {"one": 5_000_000}:
            pass
    assert capfd.readouterr().err.count("; trying again") == 1


def test_a_server_that_never_answers_a_transaction_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(ovsdb, "ANSWER_S", 0.3)
    with (
        OvsdbServer(tmp_path / "db", {1: "5000000"}, silent=("transact",)) as server,
        closing(OvsdbClient(Stand(server))) as follows,
    ):
        status = until(follows, lambda status: status.failure)
        assert "has not answered a transaction within" in status.failure


def test_a_signal_ends_a_switch_whose_database_hangs_and_the_database_owns_its_rates(tmp_path):
    with OvsdbServer(tmp_path / "db", {1: "5000000"}, silent=("transact",)) as server:
        file = two_ports(tmp_path, [], database_rings(server.remote))
        with switch(file) as running:
            while "transact" not in server.methods:
                pass
            one, two = running.status()["rings"][2:]
            assert (one["rate_bps"], one["rate_owner"]) == (
                5_000_000,
                "queue 1 of port down in control.ovsdb",
            )
            refused = running.command("set", 'rings.one.rate="30 Mb/s"')
            assert refused.returncode == 2
            assert "rings.one.rate belongs to queue 1 of port down" in refused.stderr
            assert running.command("set", 'rings.two.rate="30 Mb/s"').returncode == 0
            one, two = running.status()["rings"][2:]
            assert (one["rate_bps"], two["rate_bps"]) == (5_000_000, 30_000_000)
            assert "5 Mb/s (OVSDB)" in running.command("status").stdout
            running.process.send_signal(signal.SIGTERM)
            _, errors = running.process.communicate(timeout=30)
            assert running.process.returncode == 0, errors
