"""Certificates of runs: files of their owner, names of the run control, and their mistakes."""

import socket
import ssl
import stat

import pytest
from cryptography import x509

from daqloom.control.calls.certificates import make_certificates, reachable_host
from daqloom.control.calls.connection import Certificates, read_certificates
from daqloom.control.calls.operator import ask
from daqloom.control.calls.registry import publish
from daqloom.results.errors import MeasureError


def test_keys_are_their_owners_alone_and_are_never_overwritten(tmp_path):
    folder = tmp_path / "certificates"
    make_certificates(folder, ["daq1.site.org", "10.0.0.1"])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    names = ("ca.pem", "control.pem", "control.key", "unit.pem", "unit.key")
    assert modes == dict.fromkeys(names, 0o600)
    with pytest.raises(MeasureError, match=r"already has a ca\.pem"):
        make_certificates(folder)
    with pytest.raises(MeasureError, match="is not the name or address"):
        make_certificates(tmp_path / "b", ["not a host"])


def test_a_certificate_names_the_hosts_it_was_made_for(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "daq7")
    make_certificates(tmp_path / "c", ["daq1.site.org", "10.0.0.1"])
    made = x509.load_pem_x509_certificate((tmp_path / "c" / "control.pem").read_bytes())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(names.get_values_for_type(x509.DNSName)) == {"daq1.site.org", "daq7", "localhost"}
    addresses = {str(each) for each in names.get_values_for_type(x509.IPAddress)}
    assert addresses == {"10.0.0.1", "127.0.0.1", "::1"}
    unit = x509.load_pem_x509_certificate((tmp_path / "c" / "unit.pem").read_bytes())
    with pytest.raises(x509.ExtensionNotFound):
        unit.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    context = ssl.create_default_context(cafile=tmp_path / "c" / "ca.pem")
    assert context.cert_store_stats()["x509_ca"] == 1


def test_a_machine_whose_name_no_certificate_can_have_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "my_host")
    make_certificates(tmp_path, ["10.0.0.1"])
    shown = read_certificates(tmp_path, "control")
    assert reachable_host(shown, "my_host") == "10.0.0.1"


@pytest.mark.parametrize(
    ("hosts", "here", "reached_as"),
    [
        (["daq1.site.org", "10.0.0.1"], "daq1.site.org", "daq1.site.org"),
        (["daq1.site.org", "10.0.0.1"], "10.0.0.1", "10.0.0.1"),
        (["10.0.0.1", "daq1.site.org"], "daq1", "10.0.0.1"),
    ],
)
def test_units_reach_a_run_control_as_its_certificate_names_it(
    tmp_path, monkeypatch, hosts, here, reached_as
):
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    make_certificates(tmp_path, hosts)
    assert reachable_host(read_certificates(tmp_path, "control"), here) == reached_as


def test_a_certificate_under_whose_names_no_unit_reaches_the_run_control_is_refused(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    make_certificates(tmp_path)
    with pytest.raises(MeasureError, match="make certificates with --host daq1"):
        reachable_host(read_certificates(tmp_path, "control"), "daq1")
    nameless = Certificates(b"", (tmp_path / "unit.pem").read_bytes(), b"", tmp_path)
    for shown in (nameless, Certificates(b"", b"no certificate", b"", tmp_path)):
        with pytest.raises(MeasureError, match="without names of its machine"):
            reachable_host(shown, "daq1")


def test_the_cure_of_a_missing_certificate_fits_the_folder(tmp_path):
    with pytest.raises(MeasureError, match=r"`daqloom control certificates .*` makes"):
        read_certificates(tmp_path, "control")
    (tmp_path / "ca.pem").touch()
    with pytest.raises(MeasureError, match=r"control\.pem cannot be read.* operators need ca\.pem"):
        read_certificates(tmp_path, "control")


def test_operators_use_the_certificates_that_a_run_control_has_published(tmp_path, monkeypatch):
    """They are read from the published folder, here an empty one, not from the folder of the
    operator."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    shown = Certificates(b"", b"", b"", tmp_path / "its own folder")
    with publish("127.0.0.1:4711", bytes(16), certificates=shown):
        for address in (None, "127.0.0.1:4711"):
            with pytest.raises(MeasureError, match=r"its own folder/ca\.pem cannot be read"):
                ask(b"", address)
        with pytest.raises(MeasureError, match=r"others/ca\.pem cannot be read"):
            ask(b"", None, tmp_path / "others")
