"""Requests of an operator to a run control, and its answers."""

import time
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from daqloom.control.calls.operator import ask
from daqloom.control.calls.registry import NoListenerError
from daqloom.control.persistence.store import has_units
from daqloom.control.protocol.messages import (
    Count,
    Counting,
    Message,
    Slots,
    Text,
    UnitNumber,
    UnitNumbers,
    read,
)
from daqloom.control.protocol.states import Goal, Phase, Standing, State
from daqloom.control.record.folders import run_folders
from daqloom.results.errors import MeasureError

MOST_EVENTS = 100
"""Log entries in a status."""
LARGEST_REQUEST_BYTES = 128 * 1024
MOST_SETTINGS = 100
MOST_CONNECTIONS = 1024
"""Connections in a status."""
MOST_FOLDERS = 10
"""Newest runs among which one without a run control is looked for."""
POLL_S = 0.1
REACHED = {"configure": Phase.READY, "start": Phase.RUNNING, "stop": Phase.READY}
"""Phase that a request leads to."""


class Request(Message):
    """Request of an operator."""

    command: Literal[
        "status", "configure", "start", "stop", "reset", "exit", "include", "exclude", "reschedule"
    ]
    unit: UnitNumber | None = None
    """Unit to reset."""
    units: UnitNumbers = ()
    """Units to include or exclude."""
    sources: bool = False
    """Whether only the readout units of these units are included or excluded."""
    settings: Annotated[tuple[Text, ...], Field(max_length=MOST_SETTINGS)] = ()
    """New values with which to configure, `KEY=VALUE` of the scenario."""
    readouts: Slots = ()
    builders: Slots = ()
    """Units in the slots of another schedule, for `reschedule`."""

    @model_validator(mode="after")
    def _has_its_fields(self) -> Self:
        if (self.command == "reset") != (self.unit is not None):
            raise ValueError("reset has to name a unit, and no other request may")
        if (self.command in ("include", "exclude")) != bool(self.units):
            raise ValueError("include and exclude have to name units, and no other request may")
        if (self.sources and not self.units) or (self.settings and self.command != "configure"):
            raise ValueError("sources are of include and exclude, and settings of configure")
        return self


Rates = Annotated[
    dict[Annotated[str, Field(max_length=40)], Annotated[float, Field(ge=0)]],
    Field(max_length=40),
]
"""Present rates by name; see `daqloom.control.record.meter.present`."""


class UnitStatus(Counting):
    """Status of one unit."""

    unit: UnitNumber
    standing: Standing
    state: State
    member: bool
    host: Text = ""
    pid: Count = 0
    is_excluded: bool = False
    is_source_excluded: bool = False
    """Whether the operator has excluded the unit, or only its readout unit."""
    reason: Text = ""
    """Reason of the last loss."""
    rates: Rates = Field(default_factory=dict)


def trouble(unit: UnitStatus) -> tuple[float, ...]:
    """Return the key that sorts units with the worst one first: not a member, loses events, waits
    for its own consumer or source, has a full output, keeps others waiting in barriers."""
    rate = unit.rates.get
    return (
        float(unit.member),
        -min(1.0, rate("lost_hz", 0.0)),
        -round(max(rate("wait_consumer", 0.0), rate("wait_source", 0.0)), 1),
        -round(rate("output_fill", 0.0), 1),
        round(rate("wait_barrier", 0.0), 2),
        unit.unit,
    )


class ConnectionStatus(Message):
    """Connection from a unit to another one, since it was made."""

    unit: UnitNumber
    to: UnitNumber
    segments_retransmitted: Count
    round_trip_us: Count


class Status(Message):
    """Status of a run."""

    run: Text
    scenario: Text
    time_s: float
    """Time since the start of the run control (s)."""
    began_s: float = 0.0
    """Start of the run (s since 1970)."""
    record: Text = ""
    """Folder of the record."""
    number: Count | None = None
    """Number of the last run that was started; None before the first."""
    rates: Rates = Field(default_factory=dict)
    built_events: Count = 0
    """Events built since the start, complete or not."""
    built_bytes: Count = 0
    """Bytes of fragments in these; never falls."""
    lost: Annotated[dict[Text, Count], Field(max_length=20)] = Field(default_factory=dict)
    """Lost events since the start, by cause."""
    phase: Phase
    goal: Goal
    epoch: Count
    first_mep: Count
    failure: Text
    units: tuple[UnitStatus, ...]
    events: tuple[tuple[float, str], ...]
    """Last entries of the log: time (s), text."""
    counts: Annotated[dict[str, int], Field(max_length=100)]
    requests: Count = 0
    """Number of requests that change the run."""
    refusal: Text = ""
    """Reason why the last of these was refused; empty if it was not."""
    pending: Text = ""
    """Transition that waits for its hooks or its new setup; empty: none."""
    connections: Annotated[tuple[ConnectionStatus, ...], Field(max_length=MOST_CONNECTIONS)] = ()
    """Slowest TCP connections, as last reported; empty with other transports."""


_REQUEST = TypeAdapter(Request)


def read_request(body: bytes) -> Request:
    """Read a request. Raises MalformedError."""
    return read(_REQUEST, body, LARGEST_REQUEST_BYTES)


def steer(request: Request, address: str | None, certificates: Path | None = None) -> Status:
    """Return the answer of the run control at `address`, the user's only one on this machine if
    None. Raises MeasureError."""
    try:
        return Status.model_validate_json(ask(request.encode(), address, certificates))
    except NoListenerError:
        if unattended := next(filter(has_units, run_folders()[:MOST_FOLDERS]), None):
            raise MeasureError(
                f"the run {unattended.name} has no run control now; `daqloom control --folder "
                f"{unattended}` continues it"
            ) from None
        raise


def steer_until(
    request: Request, address: str | None, certificates: Path | None, timeout_s: float
) -> Status:
    """Request a goal of the run control, and return its status when the run has reached it; after
    any other command, when it is accepted. Raises MeasureError if the run control refuses, or does
    not reach the goal within `timeout_s`."""
    ends_s, target = time.monotonic() + timeout_s, REACHED.get(request.command)
    now = steer(request, address, certificates)
    goal, number = None, now.requests
    while True:
        if now.refusal and now.requests == number:
            raise MeasureError(now.refusal)
        if not now.pending:
            goal = goal or now.goal
            if target in (None, now.phase):
                return now
        is_over = now.phase in (Phase.ERROR, Phase.ENDING, Phase.ENDED)
        if not now.pending and (is_over or now.goal is not goal):
            why = now.failure or f"its goal is {now.goal} by now"
            raise MeasureError(f"the run is {now.phase} and will not be {target}: {why}")
        if (left_s := ends_s - time.monotonic()) <= 0:
            raise MeasureError(
                f"the run is {now.phase} and not {target} after {timeout_s:g} s; raise --timeout, "
                "or look at `daqloom control status`"
            )
        time.sleep(min(POLL_S, left_s))
        now = steer(Request(command="status"), address, certificates)
