"""[transport]: TCP."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from daqloom.scenario.part import Part
from daqloom.scenario.quantities import Bytes, PositiveBytes, PositiveSeconds, Seconds

IP_TCP_HEADER_BYTES = 40
TIMESTAMP_OPTION_BYTES = 12


class Transport(Part):
    """[transport]: one persistent connection between every source and every builder."""

    congestion: Literal["newreno", "cubic", "dctcp", "static"] = Field(
        default="cubic",
        description="congestion control; static = none, the window is always static_window",
    )
    static_window: PositiveBytes = Field(
        default=65_536, description="window per connection for congestion = static (B)"
    )
    initial_window: int = Field(
        default=10,
        ge=1,
        le=65_535,
        description="window of a new or restarted connection (segments)",
    )
    receive_window: PositiveBytes = Field(
        default=6 << 20,
        le=1 << 30,
        description="largest window that a receiver offers; it is not tuned (B)",
    )
    timestamps: bool = Field(
        default=True,
        description="12 B of TCP option in every segment: MSS = MTU - 52 B instead of MTU - 40 B",
    )
    overhead: bool = Field(
        default=True,
        description=(
            "count headers in the closed forms; false = payload only, as the paper's example does. "
            "Simulated frames have headers in any case"
        ),
    )
    rto_min: PositiveSeconds = Field(
        default=0.2, description="least retransmission time-out beyond the round trip (s)"
    )
    rto_max: PositiveSeconds = Field(
        default=120.0, description="bound of the doubling on repeated time-outs (s)"
    )
    timer_tick: Seconds = Field(
        default=0.0,
        description=(
            "tick of the hosts' clocks, on which timers strike, one late on average; "
            '"0 s" = exactly, "4 ms" = Linux at 250 Hz (s)'
        ),
    )
    delayed_ack: Seconds = Field(
        default=0.04, description='longest delay of an acknowledgement; "0 s" = at once (s)'
    )
    ack_every: int = Field(
        default=2,
        ge=1,
        le=1000,
        description="full-sized segments after which an acknowledgement is due",
    )
    quick_acks: bool = Field(
        default=True,
        description=(
            "acknowledge without delay where no answer is expected to carry it: the end of a "
            "message, and 16 segments after a pause or a duplicate, as Linux"
        ),
    )
    rack: bool = Field(
        default=True,
        description=(
            "detect losses by time (RACK, RFC 8985); without it three selectively acknowledged "
            "segments beyond a hole tell a loss (RFC 6675)"
        ),
    )
    tail_loss_probe: bool = Field(
        default=True, description="probe for a lost tail before the time-out (RFC 8985)"
    )
    hystart: bool = Field(
        default=True,
        description="CUBIC leaves slow start when delays rise, before it loses (HyStart)",
    )
    tso_burst: Bytes = Field(
        default=0,
        le=1 << 20,
        description=(
            "least to send at once while acknowledgements are due, or a third of the window if "
            "that is less, as with segmentation offload; no cap: all that the windows allow "
            'leaves together; "0 B" = no waiting (B)'
        ),
    )
    restart_after_idle: bool = Field(
        default=True,
        description=(
            "the window halves for every retransmission time-out that the connection is idle, down "
            "to the initial window (RFC 2861), not for static"
        ),
    )
    dctcp_g: Annotated[float, Field(strict=False, gt=0, le=1)] = Field(
        default=0.0625, description="weight of a new sample in DCTCP's estimate of marks"
    )

    @property
    def header_bytes(self) -> int:
        """IP and TCP headers of a data segment (B)."""
        return IP_TCP_HEADER_BYTES + (TIMESTAMP_OPTION_BYTES if self.timestamps else 0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.rto_min <= self.rto_max:
            raise ValueError("rto_min is larger than rto_max")
        return self
