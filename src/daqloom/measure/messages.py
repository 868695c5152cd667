"""What units and the run control say to each other.

JSON of these models is the body of a gRPC message. There is no .proto file: the models already
bound and check every field, and generated code would be a second description of the same.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from daqloom.measure.states import State

MOST_UNITS = 8192
LARGEST_REPORT_BYTES = 256 * 1024
"""Of a unit."""
LARGEST_ORDER_BYTES = 16 * 1024 * 1024
"""Of the run control: the addresses of all members are the most that it sends."""

_LARGEST = 2**63 - 1


def printable(text: str) -> str:
    """The text with what is not printable written out, as in ScenarioError."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


MOST_STAGES = 1_000_000
"""That a unit keeps."""
StageName = Literal["entering", "sending", "idle", "in_barrier", "finished"]

UnitNumber = Annotated[int, Field(ge=0, lt=MOST_UNITS)]
Epoch = Annotated[int, Field(ge=0, lt=1 << 32)]
Count = Annotated[int, Field(ge=0, le=_LARGEST)]
OrderNumber = Annotated[int, Field(ge=1, le=_LARGEST)]
Text = Annotated[str, Field(max_length=1000), AfterValidator(printable)]
"""Printed on terminals: it holds nothing that moves a cursor."""
Address = Annotated[bytes, Field(max_length=1024)]
"""Of a unit's transport; base64 in JSON."""
Timeout = Annotated[float, Field(gt=0, le=1e4, strict=False)]
UnitNumbers = Annotated[tuple[UnitNumber, ...], Field(max_length=MOST_UNITS)]
Counters = Annotated[
    dict[Annotated[str, Field(max_length=80)], int | float], Field(max_length=2000)
]


class Message(BaseModel):
    """Strict, bounded, and no field that it does not know."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )

    def encode(self) -> bytes:
        """As JSON."""
        return self.model_dump_json().encode()


# ---- of a unit --------------------------------------------------------------------------------


class Hello(Message):
    """The first report."""

    kind: Literal["hello"] = "hello"
    unit: UnitNumber | None = Field(description="None: any that has no process yet")
    host: Text
    pid: Count
    version: Text


class Pulse(Message):
    """What a unit is doing; told at every heartbeat."""

    epoch: Epoch
    state: State
    beats: Count | None = Field(
        default=None, description="of the data thread: it rises for as long as that runs"
    )
    steps: Count | None = Field(
        default=None, description="of event building: it rises as writes are made and MEPs built"
    )
    waits: bool = Field(
        default=False, description="for its own source or sink: nobody expects progress of it"
    )
    next_mep: Count = Field(default=0, description="the first that no builder has answered, so far")
    suspects: UnitNumbers = Field(default=(), description="units that it cannot reach")
    failure: Text = Field(default="", description="why it is in error; else empty")


class Heartbeat(Message):
    """The report that comes unasked."""

    kind: Literal["heartbeat"] = "heartbeat"
    pulse: Pulse
    counters: Counters = Field(default_factory=dict)


class Answer(Message):
    """To an order, when it is done or has failed."""

    kind: Literal["answer"] = "answer"
    order: OrderNumber
    state: State
    failure: Text = Field(default="", description="why the order could not be done; else empty")
    address: Address = Field(default=b"", description="prepare: where the others find this unit")
    missing: UnitNumbers = Field(default=(), description="connect, halt: units that did not answer")
    next_mep: Count = Field(default=0, description="halt: the first that no builder has answered")
    counters: Counters = Field(default_factory=dict)


StageRow = tuple[Count, Epoch, Count, Annotated[int, Field(ge=-1, lt=MOST_UNITS)], StageName]
"""Begin (ns since 1970), epoch, its step, unit of the partner (-1: a dummy), what it does."""
ROWS_AT_ONCE = 2000


class Trace(Message):
    """What a unit did when; several of them, before the answer to `halt`."""

    kind: Literal["trace"] = "trace"
    stages: Annotated[tuple[StageRow, ...], Field(max_length=ROWS_AT_ONCE)]


Report = Annotated[Hello | Heartbeat | Answer | Trace, Field(discriminator="kind")]

# ---- of the run control -----------------------------------------------------------------------


class Configure(Message):
    """The part of the scenario that a unit needs."""

    kind: Literal["configure"] = "configure"
    order: OrderNumber
    unit: UnitNumber
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,40}$")]
    units: Annotated[int, Field(ge=1, le=MOST_UNITS)]
    heartbeat_s: Timeout
    trace_stages: Annotated[int, Field(ge=0, le=MOST_STAGES)] = 0
    scenario: dict[str, Any]


class Prepare(Message):
    """A new transport for a new epoch."""

    kind: Literal["prepare"] = "prepare"
    order: OrderNumber
    epoch: Epoch
    members: UnitNumbers


class Connect(Message):
    """To all members."""

    kind: Literal["connect"] = "connect"
    order: OrderNumber
    addresses: Annotated[tuple[tuple[UnitNumber, Address], ...], Field(max_length=MOST_UNITS)]
    timeout_s: Timeout


class Start(Message):
    """Event building, from a MEP on."""

    kind: Literal["start"] = "start"
    order: OrderNumber
    first_mep: Count


class Halt(Message):
    """Finish what can be finished without the lost units, and let go of the connections."""

    kind: Literal["halt"] = "halt"
    order: OrderNumber
    lost: UnitNumbers
    timeout_s: Timeout


class Reset(Message):
    """Begin anew, as after `configure`."""

    kind: Literal["reset"] = "reset"
    order: OrderNumber


class Exit(Message):
    """The run is over."""

    kind: Literal["exit"] = "exit"
    order: OrderNumber


Order = Annotated[
    Configure | Prepare | Connect | Start | Halt | Reset | Exit, Field(discriminator="kind")
]

AnyReport = Hello | Heartbeat | Answer | Trace
AnyOrder = Configure | Prepare | Connect | Start | Halt | Reset | Exit

_REPORT: TypeAdapter[AnyReport] = TypeAdapter(Report)
_ORDER: TypeAdapter[AnyOrder] = TypeAdapter(Order)
_T = TypeVar("_T")


class MalformedError(ValueError):
    """Bytes that are no such message."""


class OversizedError(MalformedError):
    """More bytes than such a message has."""


def read_report(body: bytes) -> AnyReport:
    """Raises MalformedError."""
    return _read(_REPORT, body, LARGEST_REPORT_BYTES)


def read_order(body: bytes) -> AnyOrder:
    """Raises MalformedError."""
    return _read(_ORDER, body, LARGEST_ORDER_BYTES)


def _read(adapter: TypeAdapter[_T], body: bytes, most: int) -> _T:
    if len(body) > most:
        raise OversizedError(f"{len(body)} bytes, expected at most {most}")
    try:
        return adapter.validate_json(body)
    except (ValidationError, RecursionError, ValueError) as error:
        raise MalformedError(str(error)[:500]) from None
