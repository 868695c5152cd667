"""HTTP pages, fetched with limits on size and time."""

import base64
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Annotated
from urllib.parse import SplitResult, urlencode, urlsplit

from pydantic import AfterValidator, Field

from daqloom.base.words import reason_of
from daqloom.device.adapter import AdapterError, AdapterOptions
from daqloom.device.credentials import Credentials
from daqloom_adapters.deadline import Deadline, run_within

MOST_PAGE_BYTES = 16 << 20


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        fit = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        fit = False
    if not fit or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError(
            'is not a URL of http or https; expected one such as "https://tor1:9100/metrics"'
        )
    return value


class HttpOptions(AdapterOptions):
    """Options of an adapter that reads pages over HTTP."""

    address: Annotated[str, Field(max_length=2000), AfterValidator(_url)]
    """URL of the page. The server is verified with https, and not with http."""
    verify: bool = True
    """Whether an https server must have a certificate that this machine trusts."""
    insecure: bool = False
    """Whether a token or a password may go over http, where others can read it."""

    @property
    def is_encrypted(self) -> bool:
        """Whether the address has the scheme https."""
        return urlsplit(self.address).scheme == "https"

    @property
    def where(self) -> str:
        """Address for messages, without its query, which may contain a secret."""
        return self.address.partition("?")[0]


def get(
    options: HttpOptions,
    credentials: Credentials | None,
    scheme: str,
    ends: Deadline,
    path: str = "",
    query: Mapping[str, str] | None = None,
) -> str:
    """Return the page at `path` below the address; `scheme` is the authorization scheme of a token.
    Redirections are not followed. Raises AdapterError, and TimeoutError at the deadline."""
    where, headers = options.where, _headers(credentials, scheme)
    if "@" in urlsplit(options.address).netloc:
        raise AdapterError(
            "the address contains credentials; expected these in a file of their own"
        )
    if headers and not (options.is_encrypted or options.insecure):
        raise AdapterError(
            f"{where}: the token or password would go over http, where others can read it; use "
            "https, or set insecure = true beside the address"
        )
    parts = urlsplit(options.address)
    connection = _connection(options, parts.hostname or "", parts.port)
    try:
        status, body = run_within(
            ends.left_s, lambda: _fetch(connection, parts, headers, path, query or {})
        )
    except TimeoutError:
        with suppress(OSError, AttributeError):  # ends the thread that reads
            connection.sock.shutdown(socket.SHUT_RDWR)
        raise
    except ssl.SSLCertVerificationError as error:
        raise AdapterError(
            f"{where}: its certificate is not trusted ({error.verify_message}); expected one of an "
            "authority that this machine trusts, or verify = false"
        ) from None
    except OSError as error:
        raise AdapterError(f"{where}: {reason_of(error)}; expected a server there") from None
    except HTTPException:
        raise AdapterError(f"{where}: the answer breaks off or is not HTTP") from None
    except ValueError:
        raise AdapterError(
            f"{where}: the host's name or the credentials have characters that cannot be sent"
        ) from None
    if status in (401, 403):
        raise AdapterError(
            f"{where}: refuses the credentials (HTTP {status}); expected a token, or a user and a "
            "password, with the right to read"
        )
    if status != 200:
        raise AdapterError(f"{where}: answers with HTTP {status}; expected a page (200)")
    if len(body) > MOST_PAGE_BYTES:
        raise AdapterError(f"{where}: the page is longer than {MOST_PAGE_BYTES >> 20} MiB")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise AdapterError(f"{where}: the page is not text in UTF-8") from None


def _fetch(
    connection: HTTPConnection,
    parts: SplitResult,
    headers: dict[str, str],
    path: str,
    query: Mapping[str, str],
) -> tuple[int, bytes]:
    target = ((parts.path.rstrip("/") + path) if path else parts.path) or "/"
    if both := "&".join(filter(None, (parts.query, urlencode(query)))):
        target += f"?{both}"
    with closing(connection):
        connection.request("GET", target, headers=headers)
        with connection.getresponse() as response:
            body = response.read(MOST_PAGE_BYTES + 1)
            if response.length and len(body) <= MOST_PAGE_BYTES:
                raise HTTPException("shorter than its Content-Length")
            return response.status, body


def _connection(options: HttpOptions, host: str, port: int | None) -> HTTPConnection:
    if not options.is_encrypted:
        return HTTPConnection(host, port, timeout=options.timeout)
    context = ssl.create_default_context()
    if not options.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return HTTPSConnection(host, port, timeout=options.timeout, context=context)


def _headers(credentials: Credentials | None, scheme: str) -> dict[str, str]:
    if credentials is not None and credentials.token:
        return {"Authorization": f"{scheme} {credentials.token}"}
    if credentials is not None and credentials.user:
        pair = f"{credentials.user}:{credentials.password}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}
