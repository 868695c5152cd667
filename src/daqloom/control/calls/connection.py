"""Connections to the run control: gRPC, its limits and TLS."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from daqloom.base.words import reason_of
from daqloom.control.protocol.messages import LARGEST_ORDER_BYTES
from daqloom.machine.addresses import is_loopback, split_address
from daqloom.results.errors import MeasureError
from daqloom.scenario.files import open_regular

SERVICE = "daqloom.Run"
JOIN = f"/{SERVICE}/Join"
"""Call of a unit: a stream of reports, answered by a stream of orders."""
STEER = f"/{SERVICE}/Steer"
"""Call of an operator: one request, one answer."""
GREET = f"/{SERVICE}/Greet"
"""Call before Join and Steer, by which both sides prove their identity."""

CONTROL = "daqloom control"
UNIT = "daqloom unit"
"""Common names of certificates. Only the holder of the first may steer a run off loopback."""

SOCKET = "unix:"
"""Prefix of an address at a socket in the file system."""

Option = tuple[str, int | str]
LIMITS: tuple[Option, ...] = (
    ("grpc.max_receive_message_length", LARGEST_ORDER_BYTES + 4096),
    ("grpc.max_send_message_length", LARGEST_ORDER_BYTES + 4096),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.enable_http_proxy", 0),  # addresses are within a site
    ("grpc.enable_retries", 0),
)
"""gRPC's limits, above our own, whose violations are counted."""
REFUSALS = (
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.UNIMPLEMENTED,
)
"""Status codes of final refusals."""


@dataclass(frozen=True)
class Certificates:
    """Certificate and key of a process, and the authority for its peers; PEM."""

    authority: bytes
    certificate: bytes
    key: bytes
    folder: Path


def read_certificates(folder: Path, holder: str) -> Certificates:
    """Read the certificates of "control" or "unit". Raises MeasureError."""
    parts = []
    for name in ("ca.pem", f"{holder}.pem", f"{holder}.key"):
        try:
            with open_regular(folder / name) as file:
                parts.append(file.read(1 << 20))
        except OSError as error:
            raise MeasureError(
                f"{folder / name} cannot be read: {reason_of(error)}; {_cure(error, folder)}"
            ) from None
    authority, certificate, key = parts
    return Certificates(authority, certificate, key, folder)


def _cure(error: OSError, folder: Path) -> str:
    """Return what to do about certificates that cannot be read."""
    if isinstance(error, PermissionError):
        return f"let the user who runs daqloom own {folder}"
    if isinstance(error, FileNotFoundError) and (folder / "ca.pem").exists():
        return (
            "a unit needs ca.pem, unit.pem and unit.key, a run control and its operators need "
            "ca.pem, control.pem and control.key of the same authority"
        )
    return f"`daqloom control certificates {folder}` makes certificates"


def is_here(address: str) -> bool:
    """Return whether only processes of this machine reach an address."""
    return address.startswith(SOCKET) or is_loopback(split_address(address)[0])


def channel(address: str, certificates: Certificates | None, patience_s: float) -> Any:
    """Open a channel to the run control. Raises MeasureError off loopback without certificates."""
    if certificates is None and not is_here(address):
        raise MeasureError(
            f"{address} is reached over the network, which requires certificates: name the folder "
            "of those of the run control with --certificates"
        )
    options = [*LIMITS, *keep_alive(patience_s)]
    if certificates is None or address.startswith(SOCKET):
        return grpc.insecure_channel(address, options)
    credentials = grpc.ssl_channel_credentials(
        certificates.authority, certificates.key, certificates.certificate
    )
    return grpc.secure_channel(address, credentials, options)


def keep_alive(patience_s: float) -> list[Option]:
    """Return the keep-alive options, by which connections to dead machines end."""
    half_ms = max(1000, round(patience_s * 500))
    return [
        ("grpc.keepalive_time_ms", half_ms),
        ("grpc.keepalive_timeout_ms", half_ms),
        ("grpc.keepalive_permit_without_calls", 0),
        ("grpc.http2.max_pings_without_data", 0),
    ]
