"""Tests of counters by SNMP, from an agent on a loopback port."""

import threading

import pytest
from pysnmp.proto.rfc1902 import Counter64, OctetString

from daqloom.device.adapter import PortCount
from daqloom.device.credentials import Credentials
from daqloom.device.document import build
from daqloom.scenario.errors import ScenarioError
from daqloom_adapters.snmp import REPETITIONS, Snmp
from support.adapter_conformance import check_counts, check_refuses, check_refuses_entry
from support.fake_snmp import (
    COMMUNITY,
    IF_OUT_DISCARDS,
    IF_X_ENTRY,
    NAME,
    OCTETS,
    PASSWORD,
    PRIVACY,
    USER,
    agent,
    answering,
)

pytestmark = pytest.mark.process

PORTS = ("Ethernet1/1", "Ethernet1/2")
LARGEST = (1 << 64) - 1
KNOWN = Credentials(token=COMMUNITY)


@pytest.fixture
def device():
    with agent() as (address, objects):
        objects.interface(17, PORTS[0], sent=100, more=(20, 3), octets=9000, dropped=7)
        objects.interface(4, PORTS[1], sent=1 << 40, octets=LARGEST, dropped=(1 << 32) - 1)
        objects.interface(1, "lo")
        yield address, objects


def adapter(address, ports=PORTS, credentials=KNOWN, **keys):
    return Snmp(build(Snmp.Options, {"address": address, **keys}, "here"), ports, credentials)


def test_counters_are_those_of_if_mib_from_any_thread(device):
    check_counts(adapter(device[0]), PORTS)
    with adapter(device[0]) as found:
        assert found.read() == {
            PORTS[0]: PortCount(123, 9000, 7),
            PORTS[1]: PortCount(1 << 40, LARGEST, (1 << 32) - 1),
        }
    with adapter(device[0]) as found:
        readings = []
        thread = threading.Thread(target=lambda: readings.append(found.read()))
        thread.start()
        thread.join()
        assert readings == [found.read()]


def test_many_interfaces(device):
    address, objects = device
    ports = [f"swp{number}" for number in range(3 * REPETITIONS)]
    for number, port in enumerate(ports):
        objects.interface(1000 + number, port, sent=number)
    with adapter(address, ports) as found:
        assert [count.sent for count in found.read().values()] == list(range(len(ports)))


def test_drops_go_on_beyond_32_bits(device):
    address, objects = device
    with adapter(address) as found:
        assert found.read()[PORTS[1]].dropped == (1 << 32) - 1
        objects.interface(4, PORTS[1], sent=1 << 40, octets=LARGEST, dropped=4)
        assert found.read()[PORTS[1]].dropped == (1 << 32) + 4
        assert found.read()[PORTS[1]].dropped == (1 << 32) + 4
        objects.interface(4, PORTS[1], sent=1 << 40, octets=LARGEST, dropped=3)
        assert found.read()[PORTS[1]].dropped == (2 << 32) + 3


@pytest.mark.parametrize(
    ("user", "token"), [(USER, ""), (f"{USER}2", PRIVACY)], ids=["one", "two passwords"]
)
def test_version_3(device, user, token):
    credentials = Credentials(user=user, password=PASSWORD, token=token)
    check_counts(adapter(device[0], credentials=credentials, version="3"), PORTS)


@pytest.mark.parametrize(
    "credentials",
    [
        Credentials(user=USER, password="wrong-secret"),
        Credentials(user="nobody", password="wrong-secret"),
        Credentials(user=USER, password=PASSWORD, token="wrong-secret"),
    ],
    ids=["password", "user", "encryption"],
)
def test_version_3_with_wrong_credentials(device, credentials):
    found = adapter(device[0], credentials=credentials, version="3", timeout="2 s")
    text = check_refuses_entry(found, "wrong-secret")
    assert PASSWORD not in text


@pytest.mark.parametrize("credentials", [None, Credentials(user=USER), Credentials(password="p")])
@pytest.mark.parametrize("version", ["2c", "3"])
def test_without_credentials(device, credentials, version):
    found = adapter(device[0], credentials=credentials, version=version)
    assert "credentials" in check_refuses_entry(found)


def test_wrong_community_and_host_get_no_answer(device):
    found = adapter(device[0], credentials=Credentials(token="wrong-secret"), timeout="0.3 s")
    assert "accepts the credentials" in check_refuses_entry(found, "wrong-secret")
    found = adapter("nobody.invalid", timeout="5 s")
    assert "nobody.invalid" in check_refuses_entry(found)


@pytest.mark.parametrize("token", ["\N{SNOWMAN}", "x\ny", "x" * 60_000])
@pytest.mark.parametrize("version", ["2c", "3"])
def test_odd_credentials(device, token, version):
    credentials = Credentials(user=token, password=token, token=token)
    found = adapter(device[0], credentials=credentials, version=version, timeout="0.3 s")
    check_refuses_entry(found, token)


def test_unknown_ports_and_names_that_are_no_text(device):
    address, objects = device
    text = check_refuses_entry(adapter(address, ["Ethernet1/3"]))
    assert "Ethernet1/3" in text
    assert "Ethernet1/" in text.partition(";")[2]
    objects.values[(*IF_X_ENTRY, NAME, 5)] = OctetString(hexValue="ff0a1b00")
    text = check_refuses_entry(adapter(address, ["nothing"]))
    assert text.isprintable()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda objects: objects.interface(99, PORTS[0]), "2 interfaces"),
        (lambda objects: objects.values.clear(), "known are none"),
        (lambda objects: setattr(objects, "stuck", True), "disorder"),
        (
            lambda objects: objects.values.update({(*IF_X_ENTRY, NAME, 4, 1): OctetString("deep")}),
            "disorder",
        ),
    ],
    ids=["two of one name", "none", "walk without progress", "disorder"],
)
def test_names_of_interfaces_that_cannot_be_used_are_refused(device, spoil, reason):
    address, objects = device
    spoil(objects)
    assert reason in check_refuses_entry(adapter(address))


def test_index_that_has_become_another_port(device):
    address, objects = device
    with adapter(address) as found:
        objects.interface(17, "Ethernet9/9")
        assert "17" in check_refuses(found.read)


def test_counters_that_were_cleared_or_are_not_there(device):
    address, objects = device
    with adapter(address) as found:
        found.read()
        objects.interface(17, PORTS[0], sent=1, octets=60)
        assert "have fallen" in check_refuses(found.read)
    with adapter(address) as found:
        del objects.values[(*IF_X_ENTRY, OCTETS, 17)]
        assert "1.3.6.1.2.1.31.1.1.1.10" in check_refuses(found.read)
        objects.values[(*IF_X_ENTRY, OCTETS, 17)] = OctetString("9000")
        assert "Counter64" in check_refuses(found.read)
        objects.interface(17, PORTS[0])
        objects.values[(*IF_OUT_DISCARDS, 17)] = Counter64(1 << 40)
        assert "Counter32" in check_refuses(found.read)


def test_refused(device):
    address, objects = device
    with adapter(address) as found:
        objects.refuse = True
        assert "noAccess" in check_refuses(found.read)
    check_refuses_entry(adapter(address))


@pytest.mark.parametrize(
    "reply",
    [
        lambda _asked: None,
        lambda _asked: b"garbage",
        lambda _asked: b"\x30\x84\xff\xff\xff\xff\x02\x01\x01",
        lambda asked: asked,
        lambda asked: asked[: len(asked) // 2],
        lambda asked: asked.replace(b"\xa5", b"\xa2"),
        lambda asked: asked.replace(b"\xa5", b"\xa2").replace(b"\x05\x00", b"\x41\x00"),
    ],
    ids=["silence", "garbage", "long length", "echo", "half", "request as answer", "empty value"],
)
def test_garbage(reply):
    with answering(reply) as address:
        check_refuses_entry(adapter(address, timeout="0.3 s"), COMMUNITY)


def test_agent_that_falls_silent(device):
    address, objects = device
    with adapter(address) as found:
        objects.values = None
        # The timeout is short only from here on, as a slow machine may take longer to connect.
        found._options = found._options.model_copy(update={"timeout": 0.1})
        check_refuses(found.read, COMMUNITY)


@pytest.mark.parametrize(
    "address", ["", "tor1:port", "user@tor1", "tor1/x", "tor1:70000", "tor 1", "\N{SNOWMAN}"]
)
def test_addresses_that_are_none(address):
    with pytest.raises(ScenarioError, match="address"):
        adapter(address)


@pytest.mark.parametrize("address", ["tor1", "tor1:1161", "[::1]", "[::1]:1161", "10.0.0.1"])
def test_addresses(address):
    adapter(address)
