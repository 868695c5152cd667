"""Tests of gNMI connections: encodings, silent devices, credentials and certificates."""

import socket
import threading
from contextlib import contextmanager

import pytest

from daqloom.device.credentials import Credentials
from daqloom.device.document import build
from daqloom.scenario.errors import ScenarioError
from daqloom_adapters.gnmi_session import GnmiOptions, Session
from support.adapter_conformance import check_refuses, check_refuses_entry, enter
from support.fake_gnmi import CREDENTIALS, PASSWORD, TOKEN, USER, FakeGnmi, certificate, trusted

pytestmark = pytest.mark.process


def read(session):
    return session.get(("COUNTERS", "Ethernet0"), target="COUNTERS_DB")


@pytest.fixture
def device():
    with FakeGnmi({"COUNTERS_DB": {"COUNTERS": {"Ethernet0": {"sent": "5"}}}}) as fake:
        yield fake


@pytest.fixture
def connect(device, tmp_path):
    """Return a function that opens a session with the test device, as a context manager."""
    authority = trusted(tmp_path)

    @contextmanager
    def make(credentials=CREDENTIALS, **keys):
        table = {"address": device.address, "ca": authority, "timeout": "30 s"} | keys
        session = Session(build(GnmiOptions, table, "file"), credentials)
        session.open(lambda: read(session))
        try:
            yield session
        finally:
            session.close()

    return make


def test_a_device_that_offers_no_known_encoding_is_refused(connect, device):
    device.encodings = ["BYTES"]
    assert "none of the encodings" in check_refuses_entry(connect())


@pytest.mark.parametrize("fault", ["no-protobuf", "no-json", "closes", "closes-on-get"])
def test_a_device_that_answers_wrongly_or_goes_away_is_refused(connect, device, fault):
    device.fault = fault
    check_refuses_entry(connect(), PASSWORD)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("closes", "cannot be reached, or has closed the connection"),
        ("silent", "has not answered Get within 1 s"),
    ],
)
def test_a_device_that_stops_in_the_middle_is_refused(connect, device, fault, reason):
    with connect(timeout="1 s") as session:
        device.fault = fault
        assert reason in check_refuses(lambda: read(session))


@pytest.mark.parametrize("verify", [True, False])
def test_a_port_without_a_server_or_with_a_silent_one_is_refused(connect, verify):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        check_refuses_entry(connect(address=address, timeout="300 ms", verify=verify))
    check_refuses_entry(connect(address=address, verify=verify))


def test_a_server_without_tls_is_refused(connect):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet():
            with listener.accept()[0] as connection:
                connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        greeter = threading.Thread(target=greet)
        greeter.start()
        check_refuses_entry(connect(address=f"127.0.0.1:{listener.getsockname()[1]}"))
        greeter.join()


@pytest.mark.parametrize(
    "credentials",
    [None, Credentials(user=USER, password="wr0ng"), Credentials(user=USER, token="wr0ng")],
)
def test_wrong_credentials_are_refused_without_showing_them(connect, credentials):
    sentence = check_refuses_entry(connect(credentials), "wr0ng")
    user = credentials.user if credentials else ""
    assert f'refuses Capabilities to the user "{user}"' in sentence


def test_a_token_replaces_user_and_password_and_other_keys_do_no_harm(connect):
    enter(connect(Credentials(token=TOKEN)))
    enter(connect(Credentials(user=USER, password=PASSWORD, key_file="/nowhere/key")))
    odd = Credentials(user=USER, password="geheim\n\u00e4")
    assert "printable ASCII" in check_refuses_entry(connect(odd), "geheim")


def test_a_certificate_of_no_known_authority_is_refused_unless_verify_is_off(connect):
    sentence = check_refuses_entry(connect(ca=""))
    assert "certificate that ca, verify and server_name accept" in sentence
    sentence = check_refuses_entry(connect(ca="/nowhere/ca.pem"))
    assert sentence.startswith("ca: /nowhere/ca.pem cannot be read")
    enter(connect(ca="", verify=False))


def test_a_certificate_of_another_name_needs_that_name(connect, device, tmp_path):
    served = certificate("tor2.daq", "")
    (tmp_path / "other.pem").write_bytes(served[0])
    with FakeGnmi(device.databases, served=served) as other:
        keys = {"address": other.address, "ca": str(tmp_path / "other.pem")}
        check_refuses_entry(connect(**keys))
        enter(connect(**keys, server_name="tor2.daq"))
        enter(connect(**keys, verify=False))


def test_a_device_may_ask_for_a_certificate_of_its_user(connect, device, tmp_path):
    for name, content in zip(("daq.pem", "daq.key"), certificate("daq", ""), strict=True):
        (tmp_path / name).write_bytes(content)
    with FakeGnmi(device.databases, client_ca=(tmp_path / "daq.pem").read_bytes()) as strict:
        check_refuses_entry(connect(address=strict.address))
        who = Credentials(user=USER, password=PASSWORD, key_file=str(tmp_path / "daq.key"))
        enter(connect(who, address=strict.address, certificate=str(tmp_path / "daq.pem")))


@pytest.mark.parametrize(
    ("keys", "key_file", "reason"),
    [
        ({"ca": "odd.pem"}, "", "odd.pem is no certificate"),
        ({"certificate": "odd.pem"}, "own.key", "odd.pem is no certificate"),
        ({"certificate": "own.pem"}, "", "expected key_file of credentials"),
        ({"certificate": "own.pem"}, "odd.pem", "key_file: odd.pem is no private key"),
        ({"certificate": "own.pem"}, "other.key", "other.key is not the key of the certificate"),
    ],
)
def test_files_that_are_no_certificates_and_keys_are_refused(
    connect, tmp_path, monkeypatch, keys, key_file, reason
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n")
    for name, content in zip(("own.pem", "own.key"), certificate("daq", ""), strict=True):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "other.key").write_bytes(certificate()[1])
    who = Credentials(user=USER, password=PASSWORD, key_file=key_file)
    text = check_refuses_entry(connect(who, **keys))
    assert reason in text
    assert text.startswith(("ca: ", "certificate: ", "key_file: "))


def test_a_device_without_answer_or_with_too_large_a_one_is_refused(connect, device):
    device.databases["COUNTERS_DB"]["COUNTERS"]["Ethernet0"]["sent"] = "x" * (17 << 20)
    assert "larger than max" in check_refuses_entry(connect())
    device.fault = "silent"
    sentence = check_refuses_entry(connect(timeout="300 ms"))
    assert "has not answered Capabilities within 0.3 s" in sentence


@pytest.mark.parametrize("address", ["tor1", "tor1:99999", "unix:///tmp/x:1"])
def test_wrong_addresses_are_refused_before_a_connection(address):
    with pytest.raises(ScenarioError):
        build(GnmiOptions, {"address": address}, "file")
