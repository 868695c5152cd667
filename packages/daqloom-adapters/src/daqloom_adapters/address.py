"""The address of a device as its identity, where the device itself has none."""

import socket
from contextlib import suppress

from daqloom_adapters.deadline import run_within


def address_identity(host: str, port: int, timeout_s: float) -> str:
    """Return the lowest address of a host name, with the port."""
    found = [host.lower()]
    with suppress(OSError, UnicodeError):  # names are looked up without a time limit
        rows = run_within(
            timeout_s, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        found = sorted(str(at[0]) for *_, at in rows)
    return f"address {found[0]} port {port}"
