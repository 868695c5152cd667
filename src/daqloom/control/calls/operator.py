"""Requests of an operator to a run control or a switch."""

from pathlib import Path

import grpc

from daqloom.base.words import printable
from daqloom.control.calls.admission import Metadata, greeting
from daqloom.control.calls.connection import STEER, channel, read_certificates
from daqloom.control.calls.registry import RUN, Kind, find_run
from daqloom.machine.addresses import is_loopback, split_address
from daqloom.results.errors import MeasureError

PATIENCE_S = 10.0


def ask(
    request: bytes,
    address: str | None,
    certificates: Path | None = None,
    kind: Kind = RUN,
    patience_s: float = PATIENCE_S,
) -> bytes:
    """Return the answer of the listener at `address`, the user's only one on this machine if None.
    Without `certificates` those of the listener are used, if it has published any. Raises
    MeasureError."""
    secret = b""
    if address is None or (certificates is None and is_loopback(split_address(address)[0])):
        found = find_run(address, kind)
        address, certificates = found.address, certificates or found.certificates
        secret = found.secret if certificates is None else b""
    shown = read_certificates(certificates, "control") if certificates else None
    try:
        with channel(address, shown, patience_s) as connection:
            # An operator has a certificate or the secret.
            metadata: Metadata = ()
            if secret:
                metadata = greeting(connection, address, STEER, secret, patience_s)
            call = connection.unary_unary(STEER)
            answer: bytes = call(request, timeout=patience_s, metadata=metadata)
    except grpc.RpcError as error:
        hint = "" if shown else "; if it has certificates, give their folder with --certificates"
        raise MeasureError(
            f"the {kind.listener} at {address} does not answer: {_reason(error, patience_s)}{hint}"
        ) from None
    return answer


def _reason(error: grpc.RpcError, patience_s: float) -> str:
    """Return why a call failed, without the layers of gRPC that passed it on."""
    if not isinstance(error, grpc.Call):
        return str(error)[:300]
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"no answer within {patience_s:.0f} s"
    details = error.details() or error.code().name.lower().replace("_", " ")
    if error.code() is grpc.StatusCode.UNAVAILABLE:
        details = details.rpartition(": ")[2].lower()
    return printable(details[:300])
