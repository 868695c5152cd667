"""NETCONF over SSH to an untrusted switch: all waits and answers are bounded, and every failure is
reported in one sentence."""

import contextlib
import logging
import os
import re
import socket
import threading
from collections.abc import Callable
from typing import Annotated, Any, Self

from ncclient.devices.junos import JunosDeviceHandler
from ncclient.manager import Manager
from ncclient.operations import RaiseMode, TimeoutExpiredError
from ncclient.transport import AuthenticationError, SessionError, SSHSession, SSHUnknownHostError
from pydantic import BeforeValidator, Field

from daqloom.base.words import printable, reason_of
from daqloom.device.adapter import AdapterError, AdapterOptions, FileName, check_regular
from daqloom.device.credentials import Credentials
from daqloom.scenario.quantities import PositiveSeconds
from daqloom_adapters.address import address_identity
from daqloom_adapters.deadline import run_within

PORT = 830
MOST_ANSWER_BYTES = 4 << 20
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?")
_HANDLER = JunosDeviceHandler({"name": "junos"})
_NO_TIME = "has not answered within {:g} s"
_SERVICE = "a switch with `set system services netconf ssh`"

for _name in ("ncclient", "paramiko"):  # print tracebacks unless their loggers have a handler
    logging.getLogger(_name).addHandler(logging.NullHandler())


def _parts(address: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(address[:300])
    if found is None or not 0 < int(found[2] or PORT) < 1 << 16:
        raise ValueError('is not HOST:PORT; expected one such as "tor1:830"')
    return found[1].strip("[]"), int(found[2] or PORT)


def _address(value: object) -> str:
    text = value if isinstance(value, str) else ""
    _parts(text)
    return text


class NetconfOptions(AdapterOptions):
    """Options of a connection by NETCONF."""

    address: Annotated[str, BeforeValidator(_address)] = Field(max_length=300)
    """HOST:PORT of NETCONF over SSH; port 830 if none is given."""
    host_keys: FileName = Field(default="~/.ssh/known_hosts", min_length=1)
    """File of trusted host keys, in the format of ssh."""
    verify: bool = True
    """Whether the host key of the switch must be in host_keys."""
    timeout: PositiveSeconds = 60.0
    """Time within which the device must answer, even to a commit (s)."""


class _Session(SSHSession):  # type: ignore[misc]
    """Session that limits the size of answers, refuses document types, and trusts the host keys in
    one file."""

    left_bytes = MOST_ANSWER_BYTES

    def __init__(self, host_keys: str) -> None:
        super().__init__(_HANDLER)
        self._file = host_keys

    def load_known_hosts(self, filename: str | None = None) -> None:
        super().load_known_hosts(os.path.expanduser(filename or self._file))

    def _transport_read(self) -> bytes:
        data: bytes = super()._transport_read()
        self.left_bytes -= len(data)
        if self.left_bytes < 0:
            raise SessionError("the answer is too long")
        return data

    def _dispatch_message(self, raw: str) -> None:
        if "<!DOCTYPE" in raw:
            raise SessionError("the answer has a document type, which NETCONF forbids")
        super()._dispatch_message(raw)


class Netconf:
    """A connection; a context. Entering raises AdapterError if the switch does not answer."""

    manager: Any
    """Manager of ncclient; its methods are the requests."""

    def __init__(self, options: NetconfOptions, credentials: Credentials) -> None:
        self._options, self._credentials = options, credentials

    def __enter__(self) -> Self:
        options = self._options
        self._session = _Session(options.host_keys)
        try:
            self._connect()
        except BaseException:
            self._close()
            raise
        self.manager = Manager(self._session, _HANDLER, options.timeout, RaiseMode.NONE)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(Exception):
            self.manager.close_session()
        self._close()

    def ask(self, what: str, call: Callable[..., Any], *values: object, **named: object) -> Any:
        """Return the answer to a request, without namespaces. Raises AdapterError, also for an
        error in the answer. Without an answer the session is closed, so that the switch discards
        uncommitted changes."""
        where = self._options.address
        self._session.left_bytes = MOST_ANSWER_BYTES
        try:
            reply = call(*values, **named)
        except TimeoutExpiredError:
            self._close()
            raise AdapterError(
                f"{where} {_NO_TIME.format(self._options.timeout)}: `{what}`"
            ) from None
        except Exception:  # the parsers of the library raise many kinds
            self._close()
            raise AdapterError(
                f"{where}: connection closed, or invalid NETCONF answer, after "
                f"`{what}`; expected {_SERVICE}"
            ) from None
        for error in reply.xpath("//rpc-error"):
            if (error.findtext("error-severity") or "").strip() != "warning":
                message = error.findtext("error-message") or error.findtext("error-tag") or ""
                reason = one_line(self._credentials.without_secrets(message)) or "no reason given"
                raise AdapterError(f"{where} refuses `{what}`: {reason}")
        return reply

    def do(self, what: str, call: Callable[..., Any], *values: object, **named: object) -> None:
        """Make a request that the switch must answer with ok. Raises AdapterError."""
        reply = self.ask(what, call, *values, **named)
        if not reply.xpath("//ok | //load-success | //commit-success"):
            raise AdapterError(
                f"{self._options.address} answers `{what}` neither with ok nor with an error"
            )

    def address_identity(self) -> str:
        """Return the address as the identity of a switch without a readable serial number."""
        return address_identity(*_parts(self._options.address), self._options.timeout)

    def needs(self, capabilities: tuple[str, ...]) -> None:
        """Raise AdapterError unless the switch offers all these NETCONF capabilities."""
        for name in capabilities:
            if f":{name}" not in self._session.server_capabilities:
                raise AdapterError(
                    f"{self._options.address} does not offer {name} by NETCONF; expected a switch "
                    "with Junos"
                )

    def _connect(self) -> None:
        options, credentials = self._options, self._credentials
        if not credentials.user:
            raise AdapterError(
                f"{options.address}: the user is missing; set DAQLOOM_DEVICE_USER, or name a file "
                "in credentials"
            )
        try:
            check_regular(credentials.key_file, options.host_keys if options.verify else "")
        except OSError as error:
            raise AdapterError(
                f"{options.address} cannot be reached: {error.filename}: {reason_of(error)}; "
                "expected the files of host_keys, and of key_file of the credentials"
            ) from None
        host, port = _parts(options.address)
        try:
            wire = run_within(  # names are looked up without a time limit
                options.timeout, lambda: socket.create_connection((host, port), options.timeout)
            )
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or "it does not answer"
            raise AdapterError(f"{options.address} cannot be reached: {reason}") from None
        late = threading.Event()

        def disconnect() -> None:
            late.set()
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)

        clock = threading.Timer(options.timeout, disconnect)
        clock.start()
        try:
            self._session.connect(
                host,
                port,
                timeout=options.timeout,
                username=credentials.user,
                password=credentials.password or None,
                key_filename=credentials.key_file or None,
                allow_agent=False,
                look_for_keys=False,
                hostkey_verify=options.verify,
                sock=wire,
            )
        except Exception as error:
            wire.close()
            reason = _NO_TIME.format(options.timeout) if late.is_set() else self._reason(error)
            raise AdapterError(f"{options.address} {reason}") from None
        finally:
            clock.cancel()

    def _reason(self, error: Exception) -> str:
        if isinstance(error, SSHUnknownHostError):
            return (
                f"shows a host key that {self._options.host_keys} does not have; compare it with "
                "the switch's and add it, or set verify = false"
            )
        if isinstance(error, AuthenticationError):
            return (
                f"does not let the user {one_line(self._credentials.user)} in; check the "
                "password or the key_file of the credentials"
            )
        if isinstance(error, OSError) and error.filename:
            return f"cannot be verified: {self._options.host_keys}: {error.strerror}"
        return f"does not support NETCONF over SSH; expected {_SERVICE}"

    def _close(self) -> None:
        with contextlib.suppress(Exception):
            self._session.close()


def one_line(text: str) -> str:
    """Return a text from the device as one line of at most 200 printable characters."""
    return printable(" ".join(text[:2000].split()))[:200]
