"""[transport]: TCP or RDMA."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from daqloom.scenario.quantities import Bytes, Duration, PositiveBytes, PositiveDuration, Seconds
from daqloom.scenario.schema.part import (
    ASSUMED,
    PER_CENT,
    RDMA,
    DefaultWith,
    GuessedWhere,
    Number,
    Part,
    When,
)
from daqloom.scenario.schema.switches import MAY_DROP

IP_TCP_HEADER_BYTES = 40
TIMESTAMP_OPTION_BYTES = 12
BLOCK_BYTES = 64
"""Size (bytes) of the blocks in which flow control counts buffers."""
LARGEST_MTU_BYTES = 4096
HEADER_BYTES = 8 + 12 + 4 + 2
"""Header bytes of each packet: local route header, base transport header, two CRCs."""
ROCE_HEADER_BYTES = 20 + 8 + 12 + 4
"""Header bytes of a RoCEv2 packet: IPv4, UDP, base transport header, checksum of the payload."""
ADDRESS_BYTES = 16
"""Further header bytes of the first packet of an RDMA write."""
IMMEDIATE_BYTES = 4
"""Further header bytes of its last packet."""
WRITE_BYTES = ADDRESS_BYTES + IMMEDIATE_BYTES
"""Further header bytes of an RDMA write."""
ACKNOWLEDGE_BYTES = HEADER_BYTES + 4
"""Size of the packet that acknowledges a message."""
LARGEST_HEADER_BYTES = HEADER_BYTES + WRITE_BYTES
"""Header bytes of an RDMA write with immediate data that consists of a single packet."""

_TCP = When(".kind", ("tcp",))
_RETRIED = When(".connection", ("reliable",))


class Kind(Part):
    """The transport, which determines the other keys that apply."""

    kind: Annotated[
        Literal["tcp", "rdma"], DefaultWith("network.technology", {"infiniband": "rdma"})
    ] = "tcp"
    """TCP, or RDMA over reliable connections with go-back-N."""


class Tcp(Part):
    """TCP: one persistent connection for each pair of communicating hosts."""

    congestion: Annotated[Literal["newreno", "cubic", "dctcp", "static"], _TCP] = "cubic"
    """Congestion control; dctcp requires switches that mark (ecn_threshold); with static, the
    window is always static_window."""
    static_window: Annotated[PositiveBytes, When(".congestion", ("static",)), ASSUMED] = 65_536
    """Window per connection for congestion = static (B)."""
    initial_window: Annotated[int, _TCP] = Field(default=10, ge=1, le=65_535)
    """Window of a new or restarted connection (segments)."""
    receive_window: Annotated[PositiveBytes, _TCP] = Field(default=6 << 20, le=1 << 30)
    """Largest receive window, without automatic tuning (B)."""
    timestamps: Annotated[bool, _TCP] = True
    """TCP timestamps, 12 B in each segment: MSS = MTU - 52 B instead of MTU - 40 B."""
    overhead: Annotated[bool, _TCP] = True
    """Whether closed forms count headers; false = payload only, as in the ATLAS paper's example.
    The simulation always counts headers."""
    rto_min: Annotated[PositiveDuration, _TCP] = 0.2
    """Minimum of the retransmission timeout (RTO), in addition to the round-trip time (s)."""
    rto_max: Annotated[PositiveDuration, _TCP] = 120.0
    """Maximum of the retransmission timeout, which doubles with each repeated timeout (s)."""
    timer_tick: Annotated[Seconds, _TCP] = 0.0
    """Tick of the hosts' timers, which expire one tick late on average; "0 s" = exact timers, "4
    ms" = Linux at 250 Hz (s)."""
    delayed_ack: Annotated[Duration, _TCP] = 0.04
    """Longest delay of an acknowledgement (delayed ACK); "0 s" = no delay (s)."""
    ack_every: Annotated[int, _TCP] = Field(default=2, ge=1, le=1000)
    """Number of full-sized segments after which an acknowledgement is sent."""
    quick_acks: Annotated[bool, _TCP] = True
    """Whether ACKs that no answer can carry are sent without delay, as in Linux (quick ACK): at the
    end of a message, and for 16 segments after a pause or a duplicate."""
    rack: Annotated[bool, _TCP] = True
    """Whether losses are detected by time (RACK, RFC 8985); false: by three selectively
    acknowledged segments beyond a gap (RFC 6675)."""
    tail_loss_probe: Annotated[bool, _TCP] = True
    """Whether a tail-loss probe (TLP) precedes the retransmission timeout (RFC 8985)."""
    hystart: Annotated[bool, _TCP] = True
    """Whether CUBIC leaves slow start when delays rise, before losses (HyStart)."""
    tso_burst: Annotated[Bytes, _TCP] = Field(default=0, le=1 << 20)
    """Minimum burst while acknowledgements are due, as with segmentation offload (TSO); a third of
    the window, if less. Larger bursts are allowed. "0 B" = segments do not wait for each other
    (B)."""
    restart_after_idle: Annotated[bool, _TCP] = True
    """Whether an idle connection halves its window with each retransmission timeout that passes,
    down to the initial window (RFC 2861); not with static."""
    dctcp_g: Annotated[float, Field(gt=0, le=1), PER_CENT, When(".congestion", ("dctcp",))] = 0.0625
    """Weight of a new sample in DCTCP's estimate of marked packets."""

    @property
    def header_bytes(self) -> int:
        """IP and TCP headers of a data segment (B)."""
        return IP_TCP_HEADER_BYTES + (TIMESTAMP_OPTION_BYTES if self.timestamps else 0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.rto_min <= self.rto_max:
            raise ValueError("rto_min is larger than rto_max")
        return self


class Rdma(Part):
    """RDMA: writes over connections between hosts."""

    mtu: Annotated[
        PositiveBytes, RDMA, DefaultWith("network.technology", {"ethernet": "1024 B"})
    ] = Field(default=4096, ge=256, le=LARGEST_MTU_BYTES)
    """Payload of a full packet (B)."""
    connection: Annotated[Literal["reliable", "unreliable"], RDMA] = "reliable"
    """Connection with acknowledgements, and retransmission after `retry_timeout` (reliable). Or
    without acknowledgements; a write is complete when it has arrived (unreliable)."""
    retry_timeout: Annotated[Duration, _RETRIED] = 0.0
    """Retransmission timeout after the departure of a message's last packet; "0 s": no
    retransmission (s)."""
    retry_spread: Annotated[
        Number, _RETRIED, When(".retry_timeout"), GuessedWhere(*MAY_DROP, 2.0)
    ] = Field(default=1.0, ge=1, le=4)
    """Longest retransmission timeout as a multiple of retry_timeout. Each timeout is drawn between
    retry_timeout and this limit, as InfiniBand permits."""
    retry_count: Annotated[int, _RETRIED] = Field(default=7, ge=0, le=7)
    """Number of consecutive timeouts after which a connection fails."""

    def write_bytes(self, size: int, header_bytes: int = HEADER_BYTES) -> int:
        """Return the bytes on the wire for an RDMA write of `size` bytes, by default on InfiniBand.
        Payloads are padded to whole words. `header_bytes` of each packet include gaps."""
        full, rest = divmod(size, self.mtu)
        payload = full * (-(-self.mtu // 4) * 4) + -(-rest // 4) * 4
        return payload + (full + (rest > 0)) * header_bytes + WRITE_BYTES


class Levels(Part):
    """Service levels, which networks map to classes or virtual lanes."""

    data_service_level: int = Field(default=0, ge=0, le=15)
    """Service level of the data: fragments and multi-fragment packets."""
    control_service_level: int = Field(default=0, ge=0, le=15)
    """Service level of all other messages, such as requests and barriers. Over RDMA each service
    level has its own queue pairs, even on the same lane or class, so these messages do not wait for
    data."""


class Transport(Levels, Rdma, Tcp, Kind):
    """[transport]: the kind of transport, and the keys of each kind."""
