"""Addresses of this machine, and parsing of host:port."""

import ipaddress
import socket

from daqloom.base.words import reason_of
from daqloom.results.errors import MeasureError


def is_loopback(host: str) -> bool:
    """Return whether an address is reachable only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def split_address(address: str) -> tuple[str, int]:
    """Split host:port. Raises MeasureError."""
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise MeasureError(f'"{address[:80]}" is not an address; expected host:port')
    return host.strip("[]"), int(port)


def join_address(host: str, port: int) -> str:
    """Return host:port in the form that gRPC expects."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


ANY_PORT = 9
"""Port for route lookups; nothing is sent to it."""


def own_address(control: str, network: str = "", *, for_others: bool = False) -> str:
    """Return the address from which this machine reaches the run control at `control` (host:port),
    or `network`. Raises MeasureError without a route, or for a loopback address if `for_others`
    (other machines of the run must reach it)."""
    if not network:
        target = split_address(control)[0]
    else:
        known = ipaddress.ip_network(network)
        target = str(known[1] if known.num_addresses > 1 else known[0])
    try:
        found = socket.getaddrinfo(target, ANY_PORT, type=socket.SOCK_DGRAM)
        with socket.socket(*found[0][:2]) as probe:
            probe.connect(found[0][4])
            own = str(probe.getsockname()[0])
    except OSError as error:
        raise MeasureError(f"no route to {network or control}: {reason_of(error)}") from None
    if network and ipaddress.ip_address(own) not in ipaddress.ip_network(network):
        raise MeasureError(
            f"measure.network = {network}: this machine has no address in this network; it "
            f"reaches it from {own}"
        )
    if for_others and ipaddress.ip_address(own.partition("%")[0]).is_loopback:
        raise MeasureError(
            f"{control} is a loopback address on this machine, which units of other machines "
            "cannot reach; set measure.bind to this machine's address, or measure.network to its "
            "network"
        )
    return own
