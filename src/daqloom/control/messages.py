"""The messages between units and the run control.

Each gRPC message carries one of these models as JSON. There is no .proto file: the models already
bound and check every field, and generated code would be a second description of the same.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter

from daqloom import _engine
from daqloom.base.words import printable
from daqloom.control.states import State

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
OptionalUnit = Annotated[int, Field(ge=-1, lt=MOST_UNITS)]
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


class Pulse(Message):
    """Work of a unit, reported at each heartbeat."""

    epoch: Epoch
    state: State
    beats: Count | None = None
    """Iterations of the data loop: they rise while the data thread runs."""
    steps: Count | None = None
    """Progress of event building: it rises with writes made and MEPs built."""
    waits: bool = False
    """Whether it waits for its own source or sink: no progress is expected."""
    next_mep: Count = 0
    """First MEP not yet answered by a builder."""
    suspects: UnitNumbers = ()
    """Units that it cannot reach."""
    failure: Text = ""
    """Why it is in error; else empty."""


class Counting(Message):
    """Counters of a unit."""

    counters: Counters = Field(default_factory=dict)
    """By name."""

    @property
    def counted(self) -> _engine.Counters:
        """The counters as the engine knows them."""
        return _engine.Counters(self.counters)


class Numbered(Counting):
    """A report with what the unit has counted until then."""

    number: Count = 0
    """Number of this report; numbers rise."""


class Heartbeat(Numbered):
    """The periodic report of a unit."""

    kind: Literal["heartbeat"] = "heartbeat"
    pulse: Pulse
    ended: Epoch | None = None
    """Last epoch of a node that has been shut, whose final counters these are; 0: it was in
    none."""


class Answer(Numbered):
    """The answer to an order that has been carried out or has failed."""

    kind: Literal["answer"] = "answer"
    order: OrderNumber
    state: State
    failure: Text = ""
    """Why the order could not be done; else empty."""
    address: Address = b""
    """Prepare: address for the other units."""
    missing: UnitNumbers = ()
    """Connect, halt: units that did not answer."""
    next_mep: Count = 0
    """Halt: first MEP not answered by a builder."""


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
"""ns; the sum of two is a Count."""


class ArrivalRows(Message):
    """When events came to a unit's event manager, in the order in which they came."""

    begin_ns: Instant
    """Begin of their epoch (since 1970)."""
    times_ns: Annotated[tuple[Instant, ...], Field(max_length=ROWS_AT_ONCE)]
    """Since then."""
    beyond: Count = 0
    """Later ones for which the unit had no room."""


class Trace(Message):
    """Stages of a unit with their times, what its kernel tells of its connections, and arrivals of
    events; some of these precede the answer to `halt`."""

    kind: Literal["trace"] = "trace"
    stages: Annotated[tuple[StageRow, ...], Field(max_length=ROWS_AT_ONCE)] = ()
    connections: Annotated[tuple[ConnectionRow, ...], Field(max_length=ROWS_AT_ONCE)] = ()
    arrivals: ArrivalRows | None = None


AnyReport = Hello | Heartbeat | Answer | Trace

# ---- of the run control -----------------------------------------------------------------------


class Order(Message):
    """An order that a unit answers."""

    order: OrderNumber


class Configure(Order):
    """Order to configure a unit with the part of the scenario that it needs."""

    kind: Literal["configure"] = "configure"
    unit: UnitNumber
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,40}$")]
    units: Annotated[int, Field(ge=1, le=MOST_UNITS)]
    heartbeat_s: Timeout
    lease_s: Timeout = 1.0
    """How long the unit may begin MEPs after a report that was received."""
    trace_stages: Annotated[int, Field(ge=0, le=MOST_STAGES)] = 0
    trace_arrivals: Annotated[int, Field(ge=0, le=MOST_ARRIVALS)] = 0
    scenario: dict[str, Any]


class Prepare(Order):
    """Order to make a new transport for a new epoch."""

    kind: Literal["prepare"] = "prepare"
    epoch: Epoch
    members: UnitNumbers
    moved: Annotated[
        tuple[tuple[UnitNumber, OptionalUnit, OptionalUnit], ...], Field(max_length=MOST_UNITS)
    ] = ()
    """Units whose readout unit and builder unit others hold: the unit, and the holders; -1:
    nobody."""


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
    """See `Renew`."""
    last_report: Count = 0
    """See `Renew`."""


class Renew(Message):
    """Renewal of a unit's lease after a report; it has no answer."""

    kind: Literal["renew"] = "renew"
    epoch: Epoch
    mep_end: Count
    """MEPs before this number may be answered."""
    last_report: Count
    """Number of its last report; the lease counts from then."""


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
