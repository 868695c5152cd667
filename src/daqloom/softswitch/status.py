"""What a switch tells of itself, and what it can be asked for."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from daqloom.control.messages import Count, Message, Text, read
from daqloom.control.registry import Kind
from daqloom.softswitch.document import MOST_BYTES

SWITCH = Kind("switch", "switch", ".switch", "daqloom switch run FILE")
LARGEST_REQUEST_BYTES = 16 << 20

Counts = dict[str, Count]

DROPS = ("malformed", "link_local", "by_rule", "metered", "unknown", "storm", "back", "full")
"""Why a frame that came in by a port was dropped."""


class PortStatus(Message):
    """A port: frames that came in by it, and what its device counts."""

    name: Text
    device: Text
    is_up: bool
    frames: Counts
    """By what became of them; see the operations page."""
    device_counts: Counts
    addresses: Count = 0
    """Learned behind it, those too old included until their place is needed."""

    @property
    def dropped(self) -> int:
        """Frames that came in and were dropped."""
        return sum(self.frames[cause] for cause in DROPS)

    @property
    def missed(self) -> int:
        """Frames that the device could not take in."""
        return self.device_counts["missed"] + self.device_counts["no_buffers"]


class RingStatus(Message):
    """A ring: its limits and pace, what it holds, and what it has counted."""

    name: Text
    port: Text
    is_of_port: bool
    """Whether it is one of its port, for frames without a ring of their own."""
    rate_bps: Count
    rate_owner: Text = ""
    """Who sets the pace, such as a queue in control.ovsdb; empty: the file and `switch set`."""
    most_packets: Count
    packets: Count
    """Held now."""
    bytes: Count
    most_bytes: Count = MOST_BYTES
    mark_bytes: Count = 0
    """A packet that finds more bytes held is marked; 0: none is."""
    counts: Counts
    waits: tuple[Count, ...]
    """Packets, one in eight, by the time that they waited: below 2^16 ps, and in each bucket twice
    as long."""

    @property
    def dropped(self) -> int:
        """Packets that found it full, or no memory."""
        return self.counts["drops"] + self.counts["memory_drops"]


class OvsdbStatus(Message):
    """The client of Open vSwitch's database."""

    state: Text
    failure: Text = ""
    """Why it does not follow the database; it tries again."""
    restarts: Count = 0
    refusals: tuple[Text, ...] = ()
    """Why rates in the database were refused; the rings keep those they have."""


class SwitchStatus(Message):
    """A switch at a moment between two turns."""

    title: Text
    pid: Count
    identity: Text = ""
    """Random text of this start of the switch, the same at each of its addresses."""
    time_s: float
    """Since its start (s)."""
    stopping: bool
    ports: tuple[PortStatus, ...]
    rings: tuple[RingStatus, ...]
    addresses: Counts
    loop: Counts
    memory: Counts
    openflow: Counts = Field(default_factory=dict)
    """Controllers, entries and meters; empty: the switch has no OpenFlow."""
    openflow_failure: Text = ""
    """Why controllers are not served; it is tried again."""
    ovsdb: OvsdbStatus | None = None
    failure: Text = ""
    """Why a request was refused; empty: it was not."""


class Ask(Message):
    """Request for the status."""

    command: Literal["status"] = "status"


class Change(Message):
    """Request to change keys: dotted path → value, None: without this table or key."""

    command: Literal["change"] = "change"
    keys: Annotated[dict[str, Any], Field(max_length=100_000)]


class ForgetPeaks(Message):
    """Request to count the peaks of rings from here on."""

    command: Literal["forget-peaks"] = "forget-peaks"


class Stop(Message):
    """Request to stop: after what is held has left, but not later than after `drain_s`."""

    command: Literal["stop"] = "stop"
    drain_s: Annotated[float, Field(ge=0, le=3600, strict=False)] = 10.0


Request = Ask | Change | ForgetPeaks | Stop
_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="command")])


def read_request(body: bytes) -> Request:
    """Read a request. Raises MalformedError."""
    return read(_REQUEST, body, LARGEST_REQUEST_BYTES)
