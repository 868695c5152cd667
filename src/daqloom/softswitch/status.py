"""Status of a switch, and requests of operators."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from daqloom.control.messages import Count, Message, Text, read
from daqloom.control.registry import Kind
from daqloom.softswitch.document import MOST_BYTES

SWITCH = Kind("switch", "switch", ".switch", "daqloom switch run FILE")
LARGEST_REQUEST_BYTES = 16 << 20

Counts = dict[str, Count]

DROPS = ("malformed", "link_local", "by_rule", "metered", "unknown", "storm", "back", "full")
"""Causes of drops of frames that came in by a port."""


class PortStatus(Message):
    """A port: frames that came in by it, and its device's counters."""

    name: Text
    device: Text
    is_up: bool
    frames: Counts
    """Frames by fate; see the operations page."""
    device_counts: Counts
    addresses: Count = 0
    """Addresses learned behind it, with old ones until their place is needed."""

    @property
    def dropped(self) -> int:
        """Frames that came in and were dropped."""
        return sum(self.frames[cause] for cause in DROPS)

    @property
    def missed(self) -> int:
        """Frames missed by the device."""
        return self.device_counts["missed"] + self.device_counts["no_buffers"]


class RingStatus(Message):
    """A ring: limits, pace, content and counters."""

    name: Text
    port: Text
    is_of_port: bool
    """Whether it is the port's, for frames without a ring of their own."""
    rate_bps: Count
    rate_owner: Text = ""
    """Owner of the pace, such as a queue in control.ovsdb; empty: the file and `switch set`."""
    most_packets: Count
    packets: Count
    """Packets in the ring."""
    bytes: Count
    most_bytes: Count = MOST_BYTES
    mark_bytes: Count = 0
    """Bytes in the ring above which packets are marked; 0: never."""
    counts: Counts
    waits: tuple[Count, ...]
    """Waiting times of packets, one in eight: below 2^16 ps, and in each bucket twice as long."""

    @property
    def dropped(self) -> int:
        """Packets dropped at a full ring or for lack of memory."""
        return self.counts["drops"] + self.counts["memory_drops"]


class OvsdbStatus(Message):
    """Client of Open vSwitch's database."""

    state: Text
    failure: Text = ""
    """Reason for not following the database; it tries again."""
    restarts: Count = 0
    refusals: tuple[Text, ...] = ()
    """Reasons of refused rates in the database; the rings keep theirs."""


class SwitchStatus(Message):
    """Status between two turns."""

    title: Text
    pid: Count
    identity: Text = ""
    """Random text of this start of the switch."""
    time_s: float
    """Time since its start (s)."""
    stopping: bool
    ports: tuple[PortStatus, ...]
    rings: tuple[RingStatus, ...]
    addresses: Counts
    loop: Counts
    memory: Counts
    openflow: Counts = Field(default_factory=dict)
    """Controllers, entries and meters; empty: the switch has no OpenFlow."""
    openflow_failure: Text = ""
    """Reason for not serving controllers; the switch tries again."""
    ovsdb: OvsdbStatus | None = None
    failure: Text = ""
    """Reason of a refused request; empty: none."""


class Ask(Message):
    """Request for the status."""

    command: Literal["status"] = "status"


class Change(Message):
    """Request to change keys: dotted path → value, None: remove the table or key."""

    command: Literal["change"] = "change"
    keys: Annotated[dict[str, Any], Field(max_length=100_000)]


class ForgetPeaks(Message):
    """Request to reset the peaks of rings."""

    command: Literal["forget-peaks"] = "forget-peaks"


class Stop(Message):
    """Request to stop when the rings are empty, after `drain_s` at the latest."""

    command: Literal["stop"] = "stop"
    drain_s: Annotated[float, Field(ge=0, le=3600, strict=False)] = 10.0


Request = Ask | Change | ForgetPeaks | Stop
_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="command")])


def read_request(body: bytes) -> Request:
    """Read a request. Raises MalformedError."""
    return read(_REQUEST, body, LARGEST_REQUEST_BYTES)
