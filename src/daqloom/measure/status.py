"""Requests of an operator to a run control, and its answers."""

from pathlib import Path
from typing import Annotated, Literal, Self

import grpc
from pydantic import Field, TypeAdapter, model_validator

from daqloom.measure import MeasureError
from daqloom.measure.admission import Metadata, greeted
from daqloom.measure.connection import STEER, channel, is_loopback, read_certificates, split
from daqloom.measure.messages import Count, Counting, Message, Text, UnitNumber, read
from daqloom.measure.runs_here import find_run
from daqloom.measure.states import Goal, Phase, Standing, State

MOST_EVENTS_TOLD = 100
LARGEST_REQUEST_BYTES = 4096


class Request(Message):
    """Request of an operator."""

    command: Literal["status", "configure", "start", "stop", "reset", "exit"]
    unit: UnitNumber | None = None
    """Reset: the unit."""

    @model_validator(mode="after")
    def _reset_names_a_unit(self) -> Self:
        if (self.command == "reset") != (self.unit is not None):
            raise ValueError("reset has to name a unit, and no other request may")
        return self


class UnitStatus(Counting):
    """Status of one unit."""

    unit: UnitNumber
    standing: Standing
    state: State
    member: bool
    host: Text = ""
    pid: Count = 0
    reason: Text = ""
    """Why it was last lost."""


class Status(Message):
    """Status of a run."""

    run: Text
    scenario: Text
    time_s: float
    """Time since the start of the run control (s)."""
    phase: Phase
    goal: Goal
    epoch: Count
    first_mep: Count
    failure: Text
    units: tuple[UnitStatus, ...]
    events: tuple[tuple[float, str], ...]
    """The last entries of the log: time (s), text."""
    counts: Annotated[dict[str, int], Field(max_length=100)]


_REQUEST = TypeAdapter(Request)


def read_request(body: bytes) -> Request:
    """Read a request. Raises MalformedError."""
    return read(_REQUEST, body, LARGEST_REQUEST_BYTES)


PATIENCE_S = 10.0


def steer(request: Request, address: str | None, certificates: Path | None = None) -> Status:
    """Return the answer of the run control at `address` (None: the only one of this user on this
    machine). Raises MeasureError."""
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
    if isinstance(error, grpc.Call):
        return (error.details() or str(error.code()))[:300]
    return str(error)[:300]
