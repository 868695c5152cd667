"""[network] and [links]: frames and the cables between source, core, ToR and builder."""

from __future__ import annotations

from pydantic import Field

from daqloom.scenario.part import Part
from daqloom.scenario.quantities import BitRate, BitRateOrNone, PositiveBytes, Seconds

FRAME_OVERHEAD_BYTES = 18
"""Ethernet header and FCS: buffered with the frame."""
WIRE_OVERHEAD_BYTES = 20
"""Preamble and inter-frame gap: on the wire, never buffered."""
SMALLEST_MTU_BYTES = 576
LARGEST_MTU_BYTES = 65_000


class Network(Part):
    """[network]: what all links have in common."""

    mtu: PositiveBytes = Field(
        default=1500,
        ge=SMALLEST_MTU_BYTES,
        le=LARGEST_MTU_BYTES,
        description=(
            "largest IP packet; a frame is 18 B longer in a buffer (header, FCS) and another 20 B "
            "on the wire (preamble, gap) (B)"
        ),
    )


class SourceLink(Part):
    """[links.source]: each source's cable to the core switch."""

    rate: BitRate = Field(default=100_000_000_000, description="rate of each direction (b/s)")
    delay: Seconds = Field(default=1e-6, description="propagation delay (s)")


class Uplink(Part):
    """[links.uplink]: core switch to top-of-rack (ToR) switch."""

    rate: BitRate = Field(
        default=800_000_000_000, description="rate of each uplink, each direction (b/s)"
    )
    delay: Seconds = Field(default=1e-6, description="propagation delay (s)")
    count: int = Field(
        default=1,
        ge=1,
        le=1024,
        description="number of uplinks: 1 = one aggregate; more = ECMP by a hash of the flow",
    )


class AccessLink(Part):
    """[links.access]: ToR switch to each builder."""

    rate: BitRate = Field(default=25_000_000_000, description="rate of each direction (b/s)")
    delay: Seconds = Field(default=1e-6, description="propagation delay (s)")
    rate_limit: BitRateOrNone = Field(
        default=0,
        description=(
            "pace at which the ToR serves each builder, below the link's rate, as the software "
            'switch does; preamble and gap count; "0 b/s" = none (b/s)'
        ),
    )


class Links(Part):
    """[links]: source NIC – core – ToR – builder NIC."""

    source: SourceLink = Field(default_factory=SourceLink, description="source to core")
    uplink: Uplink = Field(default_factory=Uplink, description="core to ToR")
    access: AccessLink = Field(default_factory=AccessLink, description="ToR to builder")
