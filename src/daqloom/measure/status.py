"""Requests of an operator to a run control, and its answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from daqloom.measure.messages import Count, Counting, MalformedError, Message, Text, UnitNumber
from daqloom.measure.states import Goal, Phase, Standing, State

MOST_EVENTS_TOLD = 100
LARGEST_REQUEST_BYTES = 4096


class Request(Message):
    """Request of an operator."""

    command: Literal["status", "configure", "start", "stop", "reset", "exit"]
    unit: UnitNumber | None = Field(default=None, description="reset: the unit")


class UnitStatus(Counting):
    """Status of one unit."""

    unit: UnitNumber
    standing: Standing
    state: State
    member: bool
    host: Text = ""
    pid: Count = 0
    reason: Text = Field(default="", description="why it was last lost")


class Status(Message):
    """Status of a run."""

    run: Text
    scenario: Text
    time_s: float = Field(description="time since the start of the run control (s)")
    phase: Phase
    goal: Goal
    epoch: Count
    first_mep: Count
    failure: Text
    units: tuple[UnitStatus, ...]
    events: tuple[tuple[float, str], ...] = Field(
        description="the last entries of the log: time (s), text"
    )
    counts: Annotated[dict[str, int], Field(max_length=100)]


def read_request(body: bytes) -> Request:
    """Read a request. Raises MalformedError."""
    if len(body) > LARGEST_REQUEST_BYTES:
        raise MalformedError(f"{len(body)} bytes, expected at most {LARGEST_REQUEST_BYTES}")
    try:
        request = Request.model_validate_json(body)
    except ValueError as error:
        raise MalformedError(str(error)[:300]) from None
    if (request.command == "reset") != (request.unit is not None):
        raise MalformedError("reset has to name a unit, and no other request may")
    return request
