"""Tests of buffers of a Junos switch, with a test server for NETCONF over SSH."""

import copy
import json
import os
import socket
import threading
from dataclasses import replace

import paramiko
import pytest

from daqloom.device.adapter import PortBuffer
from daqloom.device.credentials import Credentials
from daqloom.device.document import build
from daqloom.scenario.errors import ScenarioError
from daqloom_adapters.junos import Junos, JunosOptions
from support.adapter_conformance import check_configures, check_refuses, check_refuses_entry, enter
from support.fake_netconf import BASE_11, REPLY, FakeNetconf, refusal

pytestmark = pytest.mark.process

PORTS = ["et-0/0/48", "xe-0/0/1"]
OTHER = {"buffer-partition lossless": {"percent": "10"}, "buffer-partition multicast": {}}
WANTED = PortBuffer(shared_bytes=8_000_000, alpha=2.0)
SET = [
    "set class-of-service shared-buffer egress percent 25",
    "set class-of-service shared-buffer egress buffer-partition lossy dynamic-threshold 8",
]


def running(egress):
    """Return a configuration with the egress buffer and other statements, which must not change."""
    rest = {"ingress": {"percent": "70"}}
    cos = {"shared-buffer": rest | ({"egress": egress} if egress else {})}
    return {"class-of-service": cos, "system": {"host-name": "tor1"}}


@pytest.fixture(autouse=True)
def _brisk(monkeypatch):
    """Shorten the interval at which ncclient looks for a request to send."""
    monkeypatch.setattr("ncclient.transport.session.TICK", 0.005)


@pytest.fixture
def switch():
    found = FakeNetconf(running({"percent": "40", **OTHER}), [*PORTS, "xe-0/0/2", "lo0"])
    yield found
    found.close()


@pytest.fixture
def junos(switch, tmp_path):
    """Return a function that makes an adapter from keys of its table and credentials."""
    hosts = tmp_path / "known_hosts"
    hosts.write_text(switch.known_host)

    def make(ports=PORTS, credentials=None, **keys):
        table = {"address": switch.address, "buffer": "32 MB", "host_keys": str(hosts)}
        credentials = credentials or Credentials(switch.user, switch.password)
        return Junos(
            build(JunosOptions, table | {"timeout": "20 s"} | keys, ""), ports, credentials
        )

    return make


@pytest.mark.parametrize(
    ("egress", "wanted"),
    [
        ({"percent": "40", **OTHER}, WANTED),
        ({}, WANTED),
        ({"buffer-partition lossy": {"percent": "60"}}, WANTED),
        ({"percent": "100", "buffer-partition lossy": {"dynamic-threshold": "9"}}, WANTED),
        ({"percent": "40"}, PortBuffer(shared_bytes=16_000_000)),
        ({}, PortBuffer(alpha=1 / 128)),
    ],
)
def test_sets_reads_back_and_sets_back(switch, junos, egress, wanted):
    switch.running, switch.candidate = running(egress), running(egress)
    check_configures(junos(), wanted)
    assert switch.running == running(egress)
    assert switch.locked_by is None
    assert switch.before_confirm is None


@pytest.mark.parametrize("base_11", [True, False])
def test_applied_and_restored_settings_are_those_of_the_switch(switch, junos, base_11):
    if not base_11:
        switch.capabilities.remove(BASE_11)
    with junos() as adapter:
        assert adapter.plan(WANTED) == [*SET, "commit confirmed 1", "commit"]
        saved = adapter.save()
        adapter.apply(WANTED)
        assert adapter.applied() == dict.fromkeys(PORTS, WANTED)
    lossy = {"buffer-partition lossy": {"dynamic-threshold": "8"}}
    assert switch.running == running({"percent": "25", **OTHER, **lossy})
    assert switch.loaded == SET
    assert switch.confirm_minutes == 1
    assert saved == {"percent": 40, "threshold": None, "partition": False}
    with junos() as later:
        later.restore(json.loads(json.dumps(saved)))
    assert switch.running == running({"percent": "40", **OTHER})
    assert switch.loaded[2:] == [
        "set class-of-service shared-buffer egress percent 40",
        "delete class-of-service shared-buffer egress buffer-partition lossy",
    ]


def test_defaults_and_groups(switch, junos):
    """Without statements, ports share the whole buffer, and alpha has the switch's default."""
    switch.running = running({})
    with junos() as adapter:
        assert adapter.applied()["xe-0/0/1"] == PortBuffer(shared_bytes=32_000_000)
        switch.inherited = running({"percent": "50"})
        assert adapter.applied()["xe-0/0/1"] == PortBuffer(shared_bytes=16_000_000)
        assert adapter.save()["percent"] is None


def test_a_schedulers_threshold_goes_before(switch, junos):
    own = {"schedulers daq": {"buffer-dynamic-threshold": "3"}, "schedulers rest": {}}
    switch.running["class-of-service"] |= own
    with junos() as adapter:
        assert adapter.applied()["xe-0/0/1"].alpha is None
        assert "scheduler daq" in check_refuses(lambda: adapter.apply(WANTED))
        assert adapter.plan(replace(WANTED, alpha=None)) == [SET[0], "commit confirmed 1", "commit"]
    assert switch.loaded == []


@pytest.mark.parametrize(
    ("wanted", "nearest"),
    [
        (PortBuffer(shared_bytes=1_100_000), "960000 and 1280000"),
        (PortBuffer(shared_bytes=40_000_000), "31680000 and 32000000"),
        (PortBuffer(alpha=3.0), "2 and 4"),
        (PortBuffer(alpha=0.1), "0.0625 and 0.125"),
        (PortBuffer(alpha=16.0), "4 and 8"),
    ],
)
def test_values_that_it_cannot_have(switch, junos, wanted, nearest):
    with junos() as adapter:
        assert nearest in check_refuses(lambda: adapter.plan(wanted))
        check_refuses(lambda: adapter.apply(wanted))
    assert switch.loaded == []


def test_values_are_rounded_within_their_share_and_not_committed_twice(junos, switch):
    with junos() as adapter:
        assert adapter.plan(PortBuffer(shared_bytes=8_070_000))[0] == SET[0]
        adapter.apply(WANTED)
        switch.requests.clear()
        adapter.apply(WANTED)
        assert adapter.plan(WANTED) == []
    assert "commit-configuration" not in switch.requests
    assert "load-configuration" not in switch.requests


def test_an_unknown_port_and_a_switch_without_confirmed_commits_are_refused(junos, switch):
    text = check_refuses_entry(junos(["xe-0/0/1", "xe-0/0/11"]))
    assert "xe-0/0/11" in text
    assert "xe-0/0/1" in text.replace("xe-0/0/11", "")
    switch.capabilities = [each for each in switch.capabilities if "confirmed" not in each]
    assert "confirmed-commit" in check_refuses_entry(junos())


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials("daq", "wr0ng-secret"),
        Credentials("daq"),
        Credentials("daq", "wr0ng-secret", key_file="/nowhere/id"),
        Credentials("", "wr0ng-secret"),
    ],
)
def test_wrong_credentials(junos, credentials):
    text = check_refuses_entry(junos(credentials=credentials), "wr0ng-secret")
    assert "credentials" in text


def test_keys_of_users_and_of_the_host_have_to_be_known(switch, junos, tmp_path):
    key = paramiko.ECDSAKey.generate()
    key.write_private_key_file(str(tmp_path / "id"))
    credentials = Credentials(switch.user, key_file=str(tmp_path / "id"))
    assert "key_file" in check_refuses_entry(junos(credentials=credentials))
    switch.user_keys.append(key)
    enter(junos(credentials=credentials))
    (tmp_path / "other").write_text("")
    text = check_refuses_entry(junos(host_keys=str(tmp_path / "other")), switch.password)
    assert "host key" in text
    enter(junos(host_keys=str(tmp_path / "other"), verify=False))
    os.mkfifo(tmp_path / "fifo")
    for name in ("missing", "fifo"):
        assert name in check_refuses_entry(junos(host_keys=str(tmp_path / name)))


def test_nothing_that_listens_or_is_found_by_its_name(junos, monkeypatch):
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        assert "cannot be reached" in check_refuses_entry(junos(address=address))
    asked = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: asked.wait())
    try:
        text = check_refuses_entry(junos(address="tor1:830", timeout="0.05 s"))
        assert "tor1:830 cannot be reached: it does not answer" in text
    finally:
        asked.set()


@pytest.mark.parametrize("at", ["connect", "hello"])
@pytest.mark.parametrize(
    "how", ["hang", "close", "HTTP/1.1 400 Bad Request\r\n\r\n", "<hello/>]]>]]>", "\xff]]>]]>"]
)
def test_peers_without_netconf_are_refused(switch, junos, at, how):
    switch.misbehave[at] = how
    check_refuses_entry(junos(timeout="0.5 s"), switch.password)


WITH_TYPE = '<!DOCTYPE a [<!ENTITY b "25">]>' + REPLY.format(
    "<ok/><configuration>&b;</configuration>"
)
TOO_LONG = REPLY.format(f"<ok/><configuration>{'x' * (5 << 20)}</configuration>")
GARBAGE = [
    "hang",
    "close",
    "no XML",
    "",
    REPLY.format("<unclosed>"),
    REPLY.format("<other/>"),
    REPLY.format(""),
    WITH_TYPE,
    REPLY.format("<ok/>" + "<a>" * 5000 + "</a>" * 5000),
    TOO_LONG,
    REPLY.replace("ID", "another").format("<ok/><configuration/>"),
    REPLY.format(refusal("no\n\x85permission for s3cret-of-daq")),
]


@pytest.mark.parametrize(
    "name",
    [
        "get-interface-information",
        "get-configuration",
        "lock",
        "load-configuration",
        "validate",
        "commit-configuration",
    ],
)
@pytest.mark.parametrize("how", GARBAGE, ids=range(len(GARBAGE)))
def test_invalid_answers_are_refused(switch, junos, name, how):
    before = copy.deepcopy(switch.running)
    switch.misbehave[name] = how

    def use():
        with junos(timeout="0.5 s", ports=["xe-0/0/1"]) as adapter:
            adapter.apply(WANTED)

    text = check_refuses(use, switch.password)
    assert text.isprintable()
    assert len(text) < 400
    assert switch.running == before


@pytest.mark.parametrize("how", [WITH_TYPE, TOO_LONG], ids=["type", "long"])
def test_an_answer_that_is_not_read(switch, junos, how):
    switch.misbehave["get-configuration"] = how
    with junos() as adapter:
        assert "invalid NETCONF answer" in check_refuses(adapter.applied)


@pytest.mark.parametrize(
    "percent", ["101", "-1", "many", "4" * 5000, "40</percent><percent>50", "&#x85;"]
)
def test_numbers_out_of_range(switch, junos, percent):
    switch.running = running({"percent": percent})
    with junos() as adapter:
        text = check_refuses(adapter.applied)
        assert "percent" in text
        assert text.isprintable()
        check_refuses(adapter.save)


def test_deactivated_statements(switch, junos):
    statements = '<class-of-service><shared-buffer inactive="inactive"><egress/></shared-buffer>'
    reply = REPLY.format(f"<configuration>{statements}</class-of-service></configuration>")
    switch.misbehave["get-configuration"] = reply
    with junos() as adapter:
        assert "deactivated" in check_refuses(adapter.applied)


@pytest.mark.parametrize("refusing", ["validate", "commit-configuration"])
def test_a_refused_value_changes_nothing(switch, junos, refusing):
    before = copy.deepcopy(switch.running)
    switch.misbehave[refusing] = REPLY.format(refusal("percent is out of range"))
    with junos() as adapter:
        assert "percent is out of range" in check_refuses(lambda: adapter.apply(WANTED))
        assert switch.running == switch.candidate == before
        assert switch.locked_by is None
        switch.misbehave.clear()
        adapter.apply(WANTED)
    assert switch.loaded == SET * 2


def test_a_warning_is_no_refusal_and_an_error_behind_it_is(switch, junos):
    switch.misbehave["validate"] = REPLY.format(refusal("take care", "warning") + "<ok/>")
    check_configures(junos(), WANTED)
    switch.misbehave["validate"] = REPLY.format(refusal("first", "warning") + refusal("then"))
    with junos() as adapter:
        assert check_refuses(lambda: adapter.apply(WANTED)).endswith("refuses `validate`: then")


def test_accepted_and_not_applied(switch, junos):
    before = copy.deepcopy(switch.running)
    switch.misbehave["commit-configuration"] = "ignore"
    with junos() as adapter:
        assert "has not applied" in check_refuses(lambda: adapter.apply(WANTED))
        assert adapter.applied() == dict.fromkeys(PORTS, PortBuffer(shared_bytes=12_800_000))
    assert switch.running == before


def test_a_configuration_that_another_locks_or_changes_is_as_the_switch_has_it(switch, junos):
    switch.locked_by = "operator"
    with junos() as adapter:
        assert "locked by" in check_refuses(lambda: adapter.apply(WANTED))
        assert switch.locked_by == "operator"
        assert switch.loaded == []
        switch.locked_by = None
        adapter.apply(WANTED)
        switch.running["class-of-service"]["shared-buffer"]["egress"]["percent"] = "50"
        assert adapter.applied()["xe-0/0/1"] == replace(WANTED, shared_bytes=16_000_000)


def test_unconfirmed_it_goes_back(switch, junos):
    """If a connection ends between the two commits, the earlier configuration returns."""
    before = copy.deepcopy(switch.running)
    commit = FakeNetconf.commit

    def cut(self, request):
        commit(self, request)
        self.misbehave["get-configuration"] = "close"

    switch.commit = cut.__get__(switch)
    with junos() as adapter:
        check_refuses(lambda: adapter.apply(WANTED))
    assert switch.running != before
    switch.expire()
    assert switch.running == before


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"percent": 40},
        {"percent": "40", "threshold": None, "partition": False},
        {"percent": 400, "threshold": None, "partition": False},
        {"percent": 40, "threshold": None, "partition": False, "line": "delete system"},
        [],
    ],
)
def test_damaged_save(switch, junos, saved):
    with junos() as adapter:
        assert "damaged" in check_refuses(lambda: adapter.restore(saved))
    assert switch.loaded == []


@pytest.mark.parametrize(
    "keys",
    [
        {"address": ""},
        {"address": "tor1:0"},
        {"address": "tor1:99999"},
        {"address": "user@tor1"},
        {"address": 830},
        {"buffer": "0 B"},
        {"buffer": 32},
        {"host_keys": ""},
        {"unknown": 1},
    ],
)
def test_keys_that_are_no_such(junos, keys):
    with pytest.raises(ScenarioError):
        junos(**keys)


@pytest.mark.parametrize(
    "address", ["tor1", "tor1.example.org:22", "[2001:db8::1]:830", "10.0.0.1"]
)
def test_addresses(junos, address):
    assert junos(address=address)


def test_its_identity_is_its_serial_number_by_whichever_name_it_is_reached(switch, junos):
    def identity(**keys):
        with junos(**keys) as adapter:
            return adapter.identity()

    other = {"address": f"localhost:{switch.port}", "verify": False, "buffer": "16 MB"}
    assert identity() == identity(**other) == f"chassis {switch.serial}"
    switch.serial = ""
    assert identity() == f"address 127.0.0.1 port {switch.port}"
