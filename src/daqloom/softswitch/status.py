"""Messages of operators and switch: requests, and the switch's status."""

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from daqloom.control.calls.registry import Kind
from daqloom.control.protocol.messages import Count, Message, Text, read
from daqloom.softswitch.document import MOST_BYTES

SWITCH = Kind("switch", "switch", ".switch", "daqloom switch run FILE")
LARGEST_REQUEST_BYTES = 16 << 20

Counts = dict[str, Count]

DROPS = ("malformed", "link_local", "by_rule", "metered", "unknown", "storm", "back", "full")
"""Causes for which a frame that arrived at a port is dropped."""


class PortStatus(Message):
    """Status of a port: counts of frames that arrived at it, and its device's counters."""

    name: Text
    device: Text
    is_up: bool
    frames: Counts
    """Frames by outcome; see the operations page."""
    device_counts: Counts
    addresses: Count = 0
    """Addresses learned at the port; expired ones count until their place is reused."""

    @property
    def dropped(self) -> int:
        """Number of frames that arrived at the port and were dropped."""
        return sum(self.frames[cause] for cause in DROPS)

    @property
    def missed(self) -> int:
        """Number of frames that the device could not receive."""
        return self.device_counts["missed"] + self.device_counts["no_buffers"]


class RingStatus(Message):
    """Status of a ring: limits, pace, content and counters."""

    name: Text
    port: Text
    is_of_port: bool
    """Whether it is the ring of a port, for frames without a ring of their own."""
    rate_bps: Count
    rate_owner: Text = ""
    """Owner of the pace, such as a queue in control.ovsdb; empty: the file and `switch set`."""
    most_packets: Count
    packets: Count
    """Packets in the ring."""
    bytes: Count
    most_bytes: Count = MOST_BYTES
    mark_bytes: Count = 0
    """Occupancy (B) above which the ring marks packets; 0: never."""
    counts: Counts
    waits: tuple[Count, ...]
    """Histogram of waits of one packet in eight: below 2^16 ps, then buckets that double."""

    @property
    def dropped(self) -> int:
        """Number of packets dropped because the ring was full or memory was lacking."""
        return self.counts["drops"] + self.counts["memory_drops"]


class OvsdbStatus(Message):
    """Status of the client of Open vSwitch's database."""

    state: Text
    failure: Text = ""
    """Reason why the client does not follow the database; it tries again."""
    restarts: Count = 0
    refusals: tuple[Text, ...] = ()
    """Reasons why rates in the database were refused; those rings keep their rates."""


class SwitchStatus(Message):
    """Status of the switch at a moment between two of its turns."""

    title: Text
    pid: Count
    identity: Text = ""
    """Random text that identifies this start of the switch."""
    time_s: float
    """Time since the start of the switch (s)."""
    stopping: bool
    ports: tuple[PortStatus, ...]
    rings: tuple[RingStatus, ...]
    addresses: Counts
    loop: Counts
    memory: Counts
    openflow: Counts = Field(default_factory=dict)
    """Counts of controllers, entries and meters; empty: OpenFlow is not configured."""
    openflow_failure: Text = ""
    """Reason why controllers are not served; the switch tries again."""
    ovsdb: OvsdbStatus | None = None
    failure: Text = ""
    """Reason why the request was refused; empty: it was not."""


class Ask(Message):
    """Request for the status."""

    command: Literal["status"] = "status"


class Change(Message):
    """Request to change keys of the file: dotted path → value; None removes the table or key."""

    command: Literal["change"] = "change"
    keys: Annotated[dict[str, Any], Field(max_length=100_000)]


class ForgetPeaks(Message):
    """Request to reset the peaks of rings."""

    command: Literal["forget-peaks"] = "forget-peaks"


class Stop(Message):
    """Request to stop when the rings are empty, or after `drain_s` at the latest."""

    command: Literal["stop"] = "stop"
    drain_s: Annotated[float, Field(ge=0, le=3600, strict=False)] = 10.0


Request = Ask | Change | ForgetPeaks | Stop
_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="command")])


def read_request(body: bytes) -> Request:
    """Read a request. Raises MalformedError."""
    return read(_REQUEST, body, LARGEST_REQUEST_BYTES)
