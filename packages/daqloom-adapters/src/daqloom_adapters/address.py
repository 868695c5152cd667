"""Network address as the identity of a device that reports no identity of its own."""

import socket
from contextlib import suppress

from daqloom_adapters.deadline import run_within


def address_identity(host: str, port: int, timeout_s: float) -> str:
    """Return the lowest IP address of a host name, with the port, as an identity."""
    found = [host.lower()]
    with suppress(OSError, UnicodeError):  # names are looked up without a time limit
        rows = run_within(
            timeout_s, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        found = sorted(str(at[0]) for *_, at in rows)
    return f"address {found[0]} port {port}"
