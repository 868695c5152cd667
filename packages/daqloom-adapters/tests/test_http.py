"""Tests of pages over HTTP: credentials, certificates, and servers that answer wrongly."""

import socket
import ssl

import pytest

from daqloom.control.calls.certificates import make_certificates
from daqloom.device.credentials import Credentials
from daqloom.device.document import build
from daqloom.scenario.errors import ScenarioError
from daqloom_adapters import http
from daqloom_adapters.deadline import Deadline
from support.adapter_conformance import check_refuses
from support.fake_http import saying, serving, silent, speaking, trickling

pytestmark = pytest.mark.process

PAGE = "a page\n"
TOKEN = Credentials(token="my-secret")
PASSWORD = Credentials("daq", "my-secret")


def get(address, credentials=None, timeout_s=30.0, **keys):
    options = build(http.HttpOptions, {"address": address, **keys}, "here")
    return http.get(options, credentials, "Bearer", Deadline(timeout_s))


def check_no_page(address, credentials=None, **keys):
    return check_refuses(lambda: get(address, credentials, **keys), "my-secret")


def test_credentials_are_sent_in_a_header():
    seen = []

    def page(path, query, headers):
        seen.append((path, query, headers["Authorization"]))
        return PAGE

    aladdin = Credentials(user="Aladdin", password="open sesame")
    with serving(page) as url:
        for credentials in (None, Credentials(), Credentials(token="abc"), aladdin):
            assert get(f"{url}/metrics", credentials, insecure=True) == PAGE
    assert seen == [
        ("/metrics", {}, None),
        ("/metrics", {}, None),
        ("/metrics", {}, "Bearer abc"),
        ("/metrics", {}, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
    ]


@pytest.mark.parametrize("credentials", [TOKEN, PASSWORD])
def test_a_secret_goes_over_http_only_by_a_word_in_the_file(credentials):
    seen = []
    with serving(lambda *asked: seen.append(asked) or PAGE) as url:
        assert "set insecure = true" in check_no_page(url, credentials)
    assert seen == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "refuses the credentials (HTTP 401)"),
        (403, "refuses the credentials (HTTP 403)"),
        (404, "HTTP 404"),
        (500, "HTTP 500"),
    ],
)
def test_other_statuses_are_refused_without_their_page(status, reason):
    with serving(lambda _path, _query, headers: (status, str(headers))) as url:
        assert reason in check_no_page(url, TOKEN, insecure=True)
        assert reason in check_no_page(f"{url}/?key=my-secret")


def test_a_page_that_is_too_long_or_at_another_place_is_refused(monkeypatch):
    asked = []
    with serving(lambda path, *_: asked.append(path) or (302, "")) as url:
        assert "302" in check_no_page(f"{url}/metrics")
    assert asked == ["/metrics"]
    monkeypatch.setattr(http, "MOST_PAGE_BYTES", len(PAGE) - 1)
    with serving(lambda *_: PAGE) as url:
        assert "longer" in check_no_page(url)


@pytest.mark.parametrize("token", ["my-secret\n", "my-secret\N{SNOWMAN}"])
def test_credentials_that_a_header_cannot_carry_are_refused(token):
    with serving(lambda *_: PAGE) as url:
        check_no_page(url, Credentials(token=token), insecure=True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "tor1:9100",
        "file:///etc/passwd",
        "ftp://tor1/",
        "http://",
        "http://tor1:port/",
        "http://[::1/",
        "http://tor1/a b",
        "http://tor1/\n",
    ],
)
def test_addresses_that_are_no_url_are_refused(url):
    with pytest.raises(ScenarioError, match="address"):
        get(url)


@pytest.mark.parametrize("talk", [silent, trickling])
def test_a_server_without_an_end_is_given_up_at_the_deadline(talk):
    with speaking(talk) as url, pytest.raises(TimeoutError):
        get(url, timeout_s=0.3)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + PAGE.encode(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\nabc",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n\xff",
    ],
    ids=["nothing", "garbage", "length", "chunk", "long header", "headers", "binary"],
)
def test_an_answer_that_breaks_off_or_is_no_page_is_refused(answer):
    with speaking(saying(answer)) as url:
        check_no_page(url)


def test_a_port_without_a_server_and_credentials_in_an_address_are_refused():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert "refused" in check_no_page(f"http://127.0.0.1:{port}/")
    check_no_page("http://user:my-secret@127.0.0.1:9/")


def test_https_is_verified_unless_verify_is_off_and_http_is_no_https(tmp_path, monkeypatch):
    make_certificates(tmp_path / "c", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "c" / "control.pem", tmp_path / "c" / "control.key")
    with serving(lambda *_: PAGE, context) as url:
        assert "certificate" in check_no_page(url, TOKEN)
        assert get(url, TOKEN, verify=False) == PAGE
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "c" / "ca.pem"))
        assert get(url, TOKEN) == PAGE
    with serving(lambda *_: PAGE) as url:
        check_no_page(url.replace("http:", "https:"))
