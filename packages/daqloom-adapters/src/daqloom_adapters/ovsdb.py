"""Client for an OVSDB server of Open vSwitch: transactions over JSON-RPC (RFC 7047)."""

import codecs
import os
import re
import socket
import ssl
import time
from typing import Annotated, Any, Literal

from ovs.json import Parser, to_string
from ovs.jsonrpc import Message
from pydantic import AfterValidator

from daqloom.base.words import printable, reason_of
from daqloom.device.adapter import AdapterError, AdapterOptions, FileName, check_regular
from daqloom.device.credentials import Credentials
from daqloom_adapters.address import address_identity

SCHEMA = "Open_vSwitch"
MOST_ANSWER_BYTES = 4 << 20
_PIECE_BYTES = 4096
_REMOTE = re.compile(
    r"unix:(?P<path>\S{1,100})"
    r"|(?:tcp|ssl):(?:\[(?P<six>[0-9A-Fa-f:.]{2,60})\]|(?P<name>[^\s:\[\]]{1,180}))"
    r":(?P<port>[0-9]{1,5})"
)


def _remote(value: str) -> str:
    found = _REMOTE.fullmatch(value)
    if found is None or int(found["port"] or 0) > 65_535:
        raise ValueError("is no ovsdb-server; expected unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT")
    return value


class OvsdbOptions(AdapterOptions):
    """Options of a connection to an OVSDB server."""

    remote: Annotated[str, AfterValidator(_remote)] = "unix:/var/run/openvswitch/db.sock"
    """Address of the server: unix:PATH, ssl:HOST:PORT, or without encryption tcp:HOST:PORT."""
    authority: FileName = ""
    """With ssl, the file of the authority of the server's certificate; empty: the authorities
    trusted on this machine."""
    certificate: FileName = ""
    """With ssl, the file of the client's certificate; its key is key_file of the credentials."""
    verify: Literal["name", "authority", "nothing"] = "name"
    """With ssl, the checks of the server's certificate: host name and authority, the authority
    alone (as Open vSwitch's own programs do), or nothing."""


class Ovsdb:
    """An OVSDB server; each transaction opens a new connection."""

    def __init__(self, options: OvsdbOptions, credentials: Credentials | None) -> None:
        self._options, self._credentials = options, credentials or Credentials()

    def transact(self, *operations: dict[str, Any], silent: str = "") -> list[Any]:
        """Return the results of a transaction. `silent`: message of the error after a timeout.
        Raises AdapterError."""
        request = Message.create_request("transact", [SCHEMA, *operations])
        try:
            reply = self._answer(request)
        except TimeoutError:
            raise AdapterError(
                silent
                or f"{self._where} has not answered within {self._options.timeout:g} s; expected a "
                "running ovsdb-server"
            ) from None
        except OSError as error:
            raise AdapterError(
                f"{self._where}: {printable(reason_of(error))[:200]}; see whether an ovsdb-server "
                "listens there for this user or certificate"
            ) from None
        except ValueError:
            raise AdapterError(
                f"{self._where}: invalid JSON-RPC answer; expected that of an ovsdb-server"
            ) from None
        return self._results(reply, len(operations))

    def address_identity(self) -> str:
        """Return the address of the server as the identity of a database without a switch."""
        at = _REMOTE.fullmatch(self._options.remote)
        assert at is not None
        if at["path"]:
            return f"socket {os.path.realpath(at['path'])}"
        host = str(at["six"] or at["name"])
        return address_identity(host, int(at["port"]), self._options.timeout)

    @property
    def _where(self) -> str:
        return f"database {self._options.remote}"

    def _results(self, reply: Any, count: int) -> list[Any]:
        """Return the results in a reply. Raises AdapterError for errors."""
        results = reply.result if isinstance(reply.result, list) else [reply.error]
        for each in results:
            if isinstance(each, dict) and isinstance(each.get("error"), str):
                parts = (each["error"], each.get("details"))
                reason = ": ".join(printable(part[:200]) for part in parts if isinstance(part, str))
                raise AdapterError(f"{self._where} refuses: {reason}")
        if len(results) != count or not all(isinstance(each, dict) for each in results):
            raise AdapterError(
                f"{self._where}: invalid result of a transaction; expected that of an "
                f"ovsdb-server with the schema {SCHEMA}"
            )
        return results

    def _answer(self, request: Any) -> Any:
        """Return the reply to a request. Raises OSError, and ValueError if it is not JSON-RPC."""
        ends_s = time.monotonic() + self._options.timeout
        with self._connection() as connection:
            _send(connection, request)
            decoder = codecs.getincrementaldecoder("utf-8")()
            parser, taken_bytes = Parser(), 0
            while taken_bytes < MOST_ANSWER_BYTES:
                connection.settimeout(max(ends_s - time.monotonic(), 1e-3))
                piece = connection.recv(_PIECE_BYTES)
                if not piece:
                    raise ConnectionError("the connection was closed in the middle of an answer")
                taken_bytes += len(piece)
                text = decoder.decode(piece)
                while text:
                    text = text[parser.feed(text) :]
                    if not parser.is_done():
                        break
                    message, parser = Message.from_json(parser.finish()), Parser()
                    if not isinstance(message, Message):
                        raise ValueError(message)
                    if message.method == "echo" and message.id is not None:
                        _send(connection, Message.create_reply(message.params, message.id))
                    elif message.method is None and message.id == request.id:
                        return message
                if time.monotonic() > ends_s:
                    raise TimeoutError
        raise ValueError("it has no end")

    def _connection(self) -> socket.socket:
        """Return a connection. Raises OSError."""
        remote, timeout_s = self._options.remote, self._options.timeout
        kind, at = remote.partition(":")[0], _REMOTE.fullmatch(remote)
        assert at is not None
        if kind == "unix":
            connection = socket.socket(socket.AF_UNIX)
            connection.settimeout(timeout_s)
        else:
            host = at["six"] or at["name"]
            connection = socket.create_connection((host, int(at["port"])), timeout_s)
        try:
            if kind == "unix":
                connection.connect(at["path"])
            elif kind == "ssl":
                return self._context().wrap_socket(connection, server_hostname=host)
        except BaseException:
            connection.close()
            raise
        return connection

    def _context(self) -> ssl.SSLContext:
        """Return the TLS settings of a connection. Raises AdapterError."""
        options, credentials = self._options, self._credentials
        try:
            check_regular(options.authority, options.certificate, credentials.key_file)
            context = ssl.create_default_context(cafile=options.authority or None)
            if options.certificate:
                # With a password, even an empty one, OpenSSL does not prompt for one.
                context.load_cert_chain(
                    options.certificate, credentials.key_file or None, credentials.password
                )
        except OSError as error:
            raise AdapterError(
                "authority, certificate, or key_file of the credentials: "
                f"{printable(reason_of(error))[:200]}; expected files in PEM"
            ) from None
        context.check_hostname = options.verify == "name"
        if options.verify == "nothing":
            context.verify_mode = ssl.CERT_NONE
        return context


def _send(connection: socket.socket, message: Any) -> None:
    connection.sendall(to_string(message.to_json()).encode())
