"""[network.links]: the cables."""

from typing import Annotated

from pydantic import Field

from daqloom.scenario.link_rates import PortRate
from daqloom.scenario.names import NodeName
from daqloom.scenario.quantities import BitRate, Bytes, PositiveSeconds, Seconds
from daqloom.scenario.schema.part import (
    ASSUMED,
    CABLED,
    ETHERNET,
    RACKS,
    REGULAR,
    DefaultWith,
    Guess,
    Part,
    When,
    items,
)

FRAME_OVERHEAD_BYTES = 18
"""Ethernet header (14) and frame check sequence (4), which a switch buffers with the frame."""
WIRE_OVERHEAD_BYTES = 20
"""Preamble (8) and inter-frame gap (12), which take time on the wire but are not buffered."""


MOST_BUCKET = 1 << 30
MOST_NAMED = 20_000
MOST_CABLES = 20_000
MOST_PORTS = 1023
"""Ports of a switch."""


class RackLink(Part):
    """Links of one kind in a rack or farm."""

    rate: Annotated[BitRate, ASSUMED]
    """Rate of each link, in each direction (b/s)."""
    delay: Annotated[Seconds, ASSUMED] = 1e-6
    """Propagation delay (s)."""
    bucket: Bytes = Field(default=0, le=MOST_BUCKET)
    """Token-bucket depth of a shaper in bytes on the wire, preambles and gaps included; "0 B": no
    shaping (B)."""


class SourceLink(RackLink):
    """[network.links.source]: the link of each source to the core switch."""

    rate: Annotated[BitRate, ASSUMED] = 100_000_000_000


class Uplink(RackLink):
    """[network.links.uplink]: core switch to top-of-rack (ToR) switch."""

    rate: Annotated[BitRate, ASSUMED] = 800_000_000_000
    count: int = Field(default=1, ge=1, le=1024)
    """Number of uplinks: 1 = one aggregated link; more = ECMP by a hash of the flow."""


class AccessLink(RackLink):
    """[network.links.access]: ToR switch to each builder."""

    rate: Annotated[BitRate, ASSUMED] = 25_000_000_000


class StorageLink(RackLink):
    """[network.links.storage]: core switch to each storage unit."""

    rate: Annotated[BitRate, ASSUMED] = 100_000_000_000


class LevelLink(Part):
    """Rate and delay of the cables of one level (host, spine, core) that differ from the others."""

    rate: PortRate = 0
    """Data rate of these cables; "0 b/s": not overridden (b/s)."""
    delay: Seconds = 0.0
    """Delay of these cables; "0 s": not overridden (s)."""


class NamedLink(LevelLink):
    """An entry of `network.links.named`: one cable."""

    end: NodeName
    """One end of the cable: a port of a switch, such as "leaf00 port 3", or the name of a host."""


class Cable(Part):
    """An entry of `network.cables`: one cable, or several equal parallel cables."""

    ends: tuple[NodeName, NodeName] = Field(strict=False)
    """Nodes at both ends: a switch as "leaf0" (its next free port) or "leaf0 port 3", a host by its
    name."""
    count: int = Field(default=1, ge=1, le=1024)
    """Number of parallel cables, each at a free port."""
    rate: PortRate = 0
    """Data rate; "0 b/s": network.links.rate (b/s)."""


class Links(Part):
    """[network.links]: in racks, source NIC – core – ToR – builder NIC; elsewhere all cables."""

    source: Annotated[SourceLink, RACKS] = Field(default_factory=SourceLink)
    """Source to core."""
    uplink: Annotated[Uplink, RACKS] = Field(default_factory=Uplink)
    """Core to ToR."""
    access: Annotated[AccessLink, RACKS] = Field(default_factory=AccessLink)
    """ToR to builder."""
    storage: Annotated[StorageLink, RACKS, When("storage.units")] = Field(
        default_factory=StorageLink
    )
    """Storage unit to core."""
    rate: Annotated[
        PortRate,
        CABLED,
        DefaultWith("network.switch.model", {"sb7700": "EDR", "hdr-40": "HDR"}, when=REGULAR),
        Guess(unless_given="network.switch.model", when=(REGULAR,)),
    ] = 0
    """Data rate of each cable, after encoding and error correction, or EDR, HDR, NDR for four
    lanes; the default is that of the switch. Shape imported: "0 b/s" uses the rates of the dumps.
    Shape cables: rate of cables that give no rate (b/s)."""
    delay: Annotated[PositiveSeconds, CABLED, ASSUMED] = 170e-9
    """Delay of a cable, with its transceivers and error correction (s)."""
    bucket: Annotated[Bytes, CABLED, ETHERNET] = Field(default=0, le=MOST_BUCKET)
    """Token-bucket depth of a shaper in bytes on the wire, preambles and gaps included; "0 B": no
    shaping (B)."""
    host: Annotated[LevelLink, CABLED] = Field(default_factory=LevelLink)
    """Links between hosts and switches."""
    spine: Annotated[LevelLink, CABLED] = Field(default_factory=LevelLink)
    """Links between leaves and spines."""
    core: Annotated[LevelLink, CABLED] = Field(default_factory=LevelLink)
    """Links between spines and cores."""
    named: Annotated[tuple[NamedLink, ...], CABLED] = items(MOST_NAMED)
    """Cables that differ from the others of their level, such as [{end = "leaf00 port 3", rate =
    "100 Gb/s"}]."""

    @property
    def are_alike(self) -> bool:
        """Whether no key overrides rate or delay for some of the cables."""
        plain = LevelLink()
        return not self.named and self.host == self.spine == self.core == plain
