"""Sends an operator's request to a run control, on this machine or another."""

from __future__ import annotations

from pathlib import Path

from daqloom.measure.admission import Metadata, greeted
from daqloom.measure.connection import STEER, channel, is_loopback, read_certificates, split
from daqloom.measure.errors import MeasureError
from daqloom.measure.runs_here import find_run
from daqloom.measure.status import Request, Status

PATIENCE_S = 10.0


def steer(request: Request, address: str | None, certificates: Path | None = None) -> Status:
    """Return the answer of the run control at `address` (None: the only one of this user on this
    machine). Raises MeasureError."""
    import grpc

    secret = b""
    if certificates is None and (address is None or is_loopback(split(address)[0])):
        address, secret = find_run(address)
    if address is None:
        raise MeasureError("--certificates requires --address, host:port")
    shown = read_certificates(certificates, "control") if certificates else None
    try:
        with channel(address, shown, PATIENCE_S) as connection:
            # A certificate says who an operator is; without one, the secret of the run does.
            metadata: Metadata = ()
            if secret:
                metadata = greeted(connection, address, STEER, secret, PATIENCE_S)
            call = connection.unary_unary(STEER)
            body = call(request.encode(), timeout=PATIENCE_S, metadata=metadata)
    except grpc.RpcError as error:
        raise MeasureError(
            f"the run control at {address} does not answer: {_reason(error)}"
        ) from None
    return Status.model_validate_json(body)


def _reason(error: object) -> str:
    import grpc

    if isinstance(error, grpc.Call):
        return (error.details() or str(error.code()))[:300]
    return str(error)[:300]
