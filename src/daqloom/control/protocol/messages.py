"""The messages between units and the run control.

Each gRPC message carries one of these models as JSON. There is no .proto file: the models already
bound and check every field, and generated code would be a second description of the same. Reports
and orders of `wire.RECORDS` have the fields of the engine's records, documented there.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from daqloom import _engine
from daqloom.base.words import printable
from daqloom.control.protocol.states import State

MOST_UNITS = 8192
LARGEST_REPORT_BYTES = 256 * 1024
"""Largest report of a unit (bytes)."""
LARGEST_ORDER_BYTES = 16 * 1024 * 1024
"""Largest order of the run control (bytes): the addresses of all members."""

_LARGEST = 2**63 - 1


MOST_STAGES = 1_000_000
"""Stages that a unit keeps for a timeline."""
MOST_ARRIVALS = 1_000_000
"""Arrivals of events that a run keeps for a trace."""
StageName = Literal["entering", "asking", "sending", "idle", "in_barrier", "finished"]

UnitNumber = Annotated[int, Field(ge=0, lt=MOST_UNITS)]
Epoch = Annotated[int, Field(ge=0, lt=1 << 32)]
Count = Annotated[int, Field(ge=0, le=_LARGEST)]
OrderNumber = Annotated[int, Field(ge=1, le=_LARGEST)]
Text = Annotated[str, Field(max_length=1000), AfterValidator(printable)]
"""Text that may be printed on a terminal: it has no control characters."""
Address = Annotated[bytes, Field(max_length=1024)]
"""Address of a unit's transport; base64 in JSON."""
Timeout = Annotated[float, Field(gt=0, le=1e4, strict=False)]
Grace = Annotated[float, Field(ge=0, le=1e6, strict=False)]
OptionalUnit = Annotated[int, Field(ge=-1, lt=MOST_UNITS)]
Slots = Annotated[tuple[OptionalUnit, ...], Field(max_length=MOST_UNITS)]
"""Unit in each slot of a schedule; -1: none."""
UnitNumbers = Annotated[tuple[UnitNumber, ...], Field(max_length=MOST_UNITS)]
Counters = Annotated[
    dict[Annotated[str, Field(max_length=80)], Count | Annotated[float, Field(ge=0)]],
    Field(max_length=2000),
]


class Message(BaseModel):
    """Base of all messages: strict types, bounded fields, no unknown fields."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        from_attributes=True,
        ser_json_bytes="base64",
        val_json_bytes="base64",
    )

    def encode(self) -> bytes:
        """Return the message as JSON."""
        return self.model_dump_json().encode()


# ---- of a unit --------------------------------------------------------------------------------


class Hello(Message):
    """The first report of a unit's process."""

    kind: Literal["hello"] = "hello"
    unit: UnitNumber | None
    """Unit to run; none for any unit without a process."""
    host: Text
    pid: Count
    version: Text
    rejoin: "Rejoin | None" = None
    """State of a process that has kept its node."""


class Rejoin(Message):
    """State of a process that has kept its node and joins again."""

    epoch: Epoch
    started: Epoch
    state: State


class Pulse(Message):
    """Work of a unit, reported at each heartbeat."""

    epoch: Epoch
    state: State
    beats: Count | None = None
    steps: Count | None = None
    waits: bool = False
    next_mep: Count = 0
    suspects: UnitNumbers = ()
    failure: Text = ""


class Counting(Message):
    """Counters of a unit."""

    counters: Counters = Field(default_factory=dict)
    """Values of the engine's counters, by name."""

    @property
    def engine_counters(self) -> _engine.Counters:
        """The counters as the engine knows them."""
        return _engine.Counters(self.counters)


class Heartbeat(Counting):
    """The periodic report of a unit."""

    kind: Literal["heartbeat"] = "heartbeat"
    number: Count = 0
    pulse: Pulse
    ended: Epoch | None = None


class Answer(Counting):
    """The answer to an order that has been carried out or has failed."""

    kind: Literal["answer"] = "answer"
    number: Count = 0
    order: OrderNumber
    state: State
    failure: Text = ""
    address: Address = b""
    missing: UnitNumbers = ()
    next_mep: Count = 0


StageRow = tuple[Count, Epoch, Count, Annotated[int, Field(ge=-1, lt=MOST_UNITS)], StageName]
"""Start (ns since 1970), epoch, step in it, unit of the partner (-1: a dummy), kind of stage."""
ROWS_AT_ONCE = 2000


class ConnectionRow(Message):
    """Kernel counters of a unit's connection to another unit, since it was made."""

    to: UnitNumber
    sent_bytes: Count
    segments_retransmitted: Count
    retransmission_timeouts: Count
    round_trip_us: Count
    least_round_trip_us: Count
    delivery_rate_bytes_per_s: Count


Instant = Annotated[int, Field(ge=0, lt=1 << 62)]
"""Time in ns; the sum of two times is a Count."""


class ArrivalRows(Message):
    """Arrival times of events at a unit's event manager, in order of arrival."""

    begin_ns: Instant
    """Begin of the epoch (ns since 1970)."""
    times_ns: Annotated[tuple[Instant, ...], Field(max_length=ROWS_AT_ONCE)]
    """Arrival times since `begin_ns` (ns)."""
    beyond: Count = 0
    """Later events for which the unit had no room."""


class Trace(Message):
    """Stages of a unit with their times, kernel counters of its connections, and arrivals of
    events; some of these precede the answer to `halt`, and warnings that to `configure`."""

    kind: Literal["trace"] = "trace"
    stages: Annotated[tuple[StageRow, ...], Field(max_length=ROWS_AT_ONCE)] = ()
    connections: Annotated[tuple[ConnectionRow, ...], Field(max_length=ROWS_AT_ONCE)] = ()
    arrivals: ArrivalRows | None = None
    warnings: Annotated[tuple[Text, ...], Field(max_length=8)] = ()
    """Sentences on the unit's place on its machine."""


AnyReport = Hello | Heartbeat | Answer | Trace

# ---- of the run control -----------------------------------------------------------------------


class Order(Message):
    """An order that a unit answers."""

    order: OrderNumber


class Setup(Message):
    """Part of the configuration of all units that does not pass through the engine's run
    control."""

    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,40}$")]
    """Name of the run, part of the names of its files and shared memory."""
    scenario: dict[str, Any]
    """The scenario as JSON."""
    trace_stages: Annotated[int, Field(ge=0, le=MOST_STAGES)] = 0
    """Last stages that each unit keeps for a timeline."""
    counters: Annotated[str, Field(max_length=400)] = ""
    """Folder for the counters of units on the machine of the run control; empty: none, so that they
    are unnamed memory."""
    trace_arrivals: Annotated[int, Field(ge=0, le=MOST_ARRIVALS)] = 0
    """First arrivals of events that the unit with the event manager keeps for a trace."""


class Configure(Order, Setup):
    """Order to configure a unit."""

    kind: Literal["configure"] = "configure"
    unit: UnitNumber
    units: Annotated[int, Field(ge=1, le=MOST_UNITS)]
    heartbeat_s: Timeout
    lease_s: Timeout = 1.0
    grace_s: Grace = 0.0


class Prepare(Order):
    """Order to make a new transport for a new epoch."""

    kind: Literal["prepare"] = "prepare"
    epoch: Epoch
    members: UnitNumbers
    moved: Annotated[
        tuple[tuple[UnitNumber, OptionalUnit, OptionalUnit], ...], Field(max_length=MOST_UNITS)
    ] = ()
    """Unit, and the holders of its readout unit and of its builder unit; -1: none."""
    readouts: Slots = ()
    builders: Slots = ()


class Connect(Order):
    """Order to connect to all members."""

    kind: Literal["connect"] = "connect"
    addresses: Annotated[tuple[tuple[UnitNumber, Address], ...], Field(max_length=MOST_UNITS)]
    timeout_s: Timeout


class Start(Order):
    """Order to start event building at a MEP."""

    kind: Literal["start"] = "start"
    first_mep: Count
    mep_end: Count = _LARGEST
    last_report: Count = 0
    run_number: Count = 0
    """Number of the run, for the unit's metrics; it does not pass through the engine."""


class Renew(Message):
    """Renewal of a unit's lease after a report; it has no answer."""

    kind: Literal["renew"] = "renew"
    epoch: Epoch
    mep_end: Count
    last_report: Count
    beat: Annotated[int, Field(ge=0, lt=1 << 64)] = 0


class Halt(Order):
    """Order to finish what needs no lost unit, and to close the connections."""

    kind: Literal["halt"] = "halt"
    lost: UnitNumbers
    timeout_s: Timeout


class Reset(Order):
    """Order to return to the state after `configure`."""

    kind: Literal["reset"] = "reset"


class Exit(Order):
    """Order to exit: the run is over."""

    kind: Literal["exit"] = "exit"


AnyOrder = Configure | Prepare | Connect | Start | Halt | Reset | Exit
"""Orders that a unit answers."""

_BY_KIND = Field(discriminator="kind")
_REPORT: TypeAdapter[AnyReport] = TypeAdapter(Annotated[AnyReport, _BY_KIND])
_ORDER: TypeAdapter[AnyOrder | Renew] = TypeAdapter(Annotated[AnyOrder | Renew, _BY_KIND])
_T = TypeVar("_T")


class MalformedError(ValueError):
    """The bytes are not a message of this kind."""


class OversizedError(MalformedError):
    """The message is longer than this kind may be."""


def read_report(body: bytes) -> AnyReport:
    """Return the message that the bytes hold. Raises MalformedError."""
    return read(_REPORT, body, LARGEST_REPORT_BYTES)


def read_order(body: bytes) -> AnyOrder | Renew:
    """Return the message that the bytes hold. Raises MalformedError."""
    return read(_ORDER, body, LARGEST_ORDER_BYTES)


def read(adapter: TypeAdapter[_T], body: bytes, most: int) -> _T:
    """Return the message of at most `most` bytes. Raises MalformedError."""
    if len(body) > most:
        raise OversizedError(f"{len(body)} bytes, expected at most {most}")
    try:
        return adapter.validate_json(body)
    except (RecursionError, ValueError) as error:
        why = str(error)[:500]
    # Not as the context of another: the collector does not look into pydantic's errors, which hold
    # the traceback of their cause, and so all that the caller has, for ever.
    raise MalformedError(why)
