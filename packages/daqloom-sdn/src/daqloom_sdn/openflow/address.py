"""Addresses of controllers, in the notation of Open vSwitch.

The switch connects to controllers at tcp:HOST:PORT and ssl:HOST:PORT; it listens for controllers at
pssl:PORT:HOST, ptcp:PORT:HOST and punix:PATH.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from daqloom.base.words import reason_of
from daqloom.machine.addresses import is_loopback, split_address
from daqloom.results.errors import MeasureError
from daqloom.softswitch.devices import locked_as

DEFAULT_PORT = 6653
PROBE_S = 2.0
"""Time limit for a test connection to another program's socket (s)."""


@dataclass(frozen=True)
class Address:
    """Address of a controller, or address at which the switch listens for controllers."""

    kind: str
    """tcp, ssl, pssl, ptcp or punix."""
    host: str = ""
    port: int = 0
    path: str = ""


def address_of(text: str) -> Address:
    """Return the address that an entry of `control.openflow` gives. Raises MeasureError."""
    kind, _, rest = text.partition(":")
    if kind == "punix":
        return Address(kind, path=rest)
    if kind in ("tcp", "ssl"):
        has_port = ":" in rest.rpartition("]")[2] if "[" in rest else ":" in rest
        return Address(kind, *split_address(rest if has_port else f"{rest}:{DEFAULT_PORT}"))
    number, _, host = rest.partition(":")
    host, port = split_address(f"{host or '127.0.0.1'}:{number or DEFAULT_PORT}")
    if kind == "ptcp" and not is_loopback(host):
        raise MeasureError(
            f'control.openflow = "{text[:80]}" is reachable from other machines, and OpenFlow over '
            "TCP is not authenticated; use pssl:PORT:HOST"
        )
    return Address(kind, host, port)


def context_of(kind: str, folder: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context for a kind of address; None for kinds without TLS. `folder`: folder
    with the certificates. Raises MeasureError."""
    if kind not in ("ssl", "pssl"):
        return None
    if folder is None:
        raise MeasureError(
            f"control.openflow: {kind} needs control.certificates, the folder that `daqloom "
            "control certificates` makes"
        )
    try:
        purpose = ssl.Purpose.CLIENT_AUTH if kind == "pssl" else ssl.Purpose.SERVER_AUTH
        context = ssl.create_default_context(purpose, cafile=folder / "ca.pem")
        who = "control" if kind == "pssl" else "unit"
        context.load_cert_chain(folder / f"{who}.pem", folder / f"{who}.key")
    except (OSError, ssl.SSLError) as error:
        raise MeasureError(
            f"control.openflow: the certificates of {folder} cannot be used: {reason_of(error)}; "
            f"`daqloom control certificates {folder}` makes them"
        ) from None
    context.verify_mode = ssl.CERT_REQUIRED
    context.check_hostname = False  # a certificate of this authority is enough
    return context


@contextmanager
def listener_at(path: str) -> Iterator[socket.socket]:
    """Yield a listening socket that only this user can reach; it is removed at the end. Raises
    MeasureError or OSError if the path is in use."""
    name = f'control.openflow = "punix:{path}"'
    with (
        locked_as(f"socket {os.path.realpath(path)}", name),
        socket.socket(socket.AF_UNIX) as listener,
    ):
        with suppress(FileNotFoundError):
            _remove_abandoned(path)
        listener.bind(path)
        os.chmod(path, 0o600)  # before the first connection
        own = os.stat(path)
        try:
            yield listener
        finally:
            with suppress(FileNotFoundError):
                if os.path.samestat(own, os.stat(path)):
                    os.unlink(path)


def _remove_abandoned(path: str) -> None:
    """Remove the socket of a process that has ended. Raises OSError if a program still listens."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(PROBE_S)
        with suppress(ConnectionRefusedError):
            probe.connect(path)
            raise OSError(errno.EADDRINUSE, "another program listens there")
    if stat.S_ISSOCK(os.lstat(path).st_mode):
        os.unlink(path)
