"""Tests of counters by gNMI, from OpenConfig and from SONiC."""

import pytest

from daqloom.device.adapter import PortCount
from daqloom.device.document import build
from daqloom_adapters.gnmi import Gnmi
from support.adapter_conformance import check_counts, check_refuses_entry
from support.fake_gnmi import CREDENTIALS, FakeGnmi, trusted

PORTS = ("Ethernet1/1", "Ethernet1/2")
MODELS = ("openconfig", "sonic")


def counted(sent, sent_bytes, dropped):
    return {"out-pkts": sent, "out-octets": sent_bytes, "out-discards": dropped, "in-pkts": 7}


def sai(unicast, others, sent_bytes, dropped):
    return {
        "SAI_PORT_STAT_IF_OUT_UCAST_PKTS": str(unicast),
        "SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS": str(others),
        "SAI_PORT_STAT_IF_OUT_OCTETS": str(sent_bytes),
        "SAI_PORT_STAT_IF_OUT_DISCARDS": str(dropped),
        "SAI_PORT_STAT_IF_IN_OCTETS": "N/A",
    }


@pytest.fixture
def device():
    interfaces = {PORTS[0]: counted(5, 7000, 2), PORTS[1]: counted(2**64 - 1, 9, 0)}
    rows = {PORTS[0]: sai(3, 2, 7000, 2), PORTS[1]: sai(2**64 - 1, 0, 9, 0)}
    names = {port: f"oid:0x{at}" for at, port in enumerate(PORTS)}
    tables = {"COUNTERS": rows, "COUNTERS_PORT_NAME_MAP": names}
    with FakeGnmi({"COUNTERS_DB": tables}, interfaces) as fake:
        yield fake


@pytest.fixture
def adapter(device, tmp_path):
    """Return a function that makes an adapter of the test device."""
    authority = trusted(tmp_path)

    def make(ports=PORTS, **keys):
        keys = {"address": device.address, "ca": authority, "timeout": "30 s"} | keys
        return Gnmi(build(Gnmi.Options, keys, "file"), ports, CREDENTIALS)

    return make


@pytest.mark.parametrize("model", MODELS)
def test_it_counts(adapter, model):
    check_counts(adapter(model=model), PORTS)


@pytest.mark.parametrize("encodings", [["JSON_IETF"], ["JSON"], ["PROTO", "ASCII"]])
@pytest.mark.parametrize("leafwise", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_the_counters_are_those_that_the_device_has(adapter, device, model, leafwise, encodings):
    device.leafwise, device.encodings = leafwise, encodings
    with adapter(model=model) as counts:
        assert counts.read() == {
            PORTS[0]: PortCount(5, 7000, 2),
            PORTS[1]: PortCount(2**64 - 1, 9, 0),
        }


def test_packets_may_be_counted_by_kind(adapter, device):
    kinds = {"out-unicast-pkts": 4, "out-multicast-pkts": 2, "out-broadcast-pkts": 1}
    device.interfaces[PORTS[0]] = {"out-octets": 600, "out-discards": 0} | kinds
    with adapter(ports=PORTS[:1]) as counts:
        assert counts.read() == {PORTS[0]: PortCount(7, 600, 0)}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("port", ["Ethernet1/3", "*", "Ethernet*"])
def test_an_unknown_port_is_named_with_known_ones(adapter, model, port):
    sentence = check_refuses_entry(adapter(ports=(port,), model=model))
    assert f'no counters of a port "{port}"; ' in sentence
    assert PORTS[0] in sentence or PORTS[1] in sentence


def test_a_port_without_a_counter_or_a_name_is_refused(adapter, device):
    del device.interfaces[PORTS[1]]["out-discards"]
    assert f"does not report out-discards of {PORTS[1]}" in check_refuses_entry(adapter())
    device.interfaces.clear()
    assert "expected a name that the device itself uses" in check_refuses_entry(adapter())


@pytest.mark.parametrize("value", [2**64, "-5", "1.5", "1_0", "", "²", "N/A", "\x1b[31m", "9" * 99])
def test_a_counter_that_is_no_number_is_refused(adapter, device, value):
    device.interfaces[PORTS[0]]["out-octets"] = value
    sentence = check_refuses_entry(adapter())
    assert "as out-octets of Ethernet1/1; expected a whole number" in sentence
    assert sentence.isprintable()
