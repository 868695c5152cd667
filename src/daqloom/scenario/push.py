"""[fragments], [nodes] and [shift]: what event building is about, and linear shifting."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from daqloom.scenario.hosts import DelayKind
from daqloom.scenario.part import Number, Part
from daqloom.scenario.quantities import (
    BitRateOrNone,
    Bytes,
    FrequencyOrNone,
    PositiveBytes,
    PositiveSeconds,
    Seconds,
)


class Group(Part):
    """Sources whose fragments are alike."""

    sources: int = Field(ge=1, le=1_000_000, description="sources of the group")
    share: Number = Field(description="of the event's size that the group holds; relative")


class Fragments(Part):
    """[fragments]: what the sources hold."""

    size: PositiveBytes = Field(
        default=133, description="mean size of a source's fragment of one event (B)"
    )
    packing: int = Field(
        default=30_000,
        ge=1,
        le=10_000_000,
        description="fragments of a source that travel as one multi-fragment packet (MFP)",
    )
    sizes: Literal["poisson", "fixed"] = Field(
        default="poisson", description="distribution of a fragment's size"
    )
    groups: tuple[Group, ...] = Field(
        default=(),
        strict=False,
        max_length=64,
        description=(
            "groups of sources with larger and smaller fragments, in the order of the sources; "
            "`size` stays the mean over all"
        ),
    )
    rate: FrequencyOrNone = Field(
        default=0.0,
        description='events per second; "0 Hz": as many as the event builder takes (Hz)',
    )


class Card(Part):
    """[nodes.card]: the card that each stream comes from; its acknowledges have latency spikes."""

    buffer: Bytes = Field(
        default=0,
        description=(
            "shift: what it holds of a stream; full, it stops the trigger for all; needs "
            'fragments.rate; "0 B": no limit (B)'
        ),
    )
    kind: DelayKind = Field(
        default="fixed",
        description=(
            "distribution of the time from the end of an MFP until the card knows that it is in "
            "the host's memory"
        ),
    )
    mean: Seconds = Field(default=0.0, description="its mean (s)")
    spread: Seconds = Field(
        default=0.0, description="its standard deviation (gaussian) or half width (uniform) (s)"
    )
    spike_probability: Annotated[float, Field(strict=False, ge=0, le=1)] = Field(
        default=0.0, description="that this time is a spike instead, 0 to 1"
    )
    spike_kind: DelayKind = Field(default="fixed", description="distribution of a spike")
    spike_mean: Seconds = Field(default=0.0, description="its mean (s)")
    spike_spread: Seconds = Field(
        default=0.0, description="its standard deviation (gaussian) or half width (uniform) (s)"
    )


class Nodes(Part):
    """[nodes]: hosts with a readout unit and a builder unit each."""

    protocol: Literal["shift", "daqpipe"] = Field(
        default="shift",
        description="linear shifting, as `[shift]` says, or DAQPIPE, as `[daqpipe]` says",
    )
    count: int = Field(default=0, ge=0, le=8192, description="nodes; 0: all hosts of the fabric")
    placement: Literal["fill", "spread"] = Field(
        default="fill",
        description="leaf after leaf, or as many nodes on each leaf as on any other",
    )
    dummies: Literal["none", "used-ports", "all-ports"] = Field(
        default="used-ports",
        description=(
            "shift: slots of the schedule for nodes that are not there: none, for ports that are "
            "taken on other leaves, or for every host of the fabric"
        ),
    )
    order: Literal["by-port", "shuffled"] = Field(
        default="by-port", description="slots leaf after leaf by port, or drawn by chance"
    )
    streams: int = Field(
        default=3,
        ge=1,
        le=8,
        description="sources (data streams) of a node; daqpipe: they travel as one fragment",
    )
    message_cost: Seconds = Field(
        default=0.0,
        description="time of the processor for a message, sent or received, one at a time (s)",
    )
    polling_delay: Seconds = Field(
        default=0.0, description="until a completed transfer is noticed (s)"
    )
    latency: DelayKind = Field(
        default="fixed", description="distribution of the time from a post to its first packet"
    )
    latency_mean: Seconds = Field(default=0.0, description="its mean (s)")
    latency_spread: Seconds = Field(
        default=0.0, description="its standard deviation (gaussian) or half width (uniform) (s)"
    )
    pcie_rate: BitRateOrNone = Field(
        default=0,
        description=(
            'of the network card, from memory and to memory, each; "0 b/s": no limit (b/s)'
        ),
    )
    memory_rate: BitRateOrNone = Field(
        default=0,
        description='of the memory, all traffic of a node together; "0 b/s": no limit (b/s)',
    )
    memory_passes: int = Field(
        default=2,
        ge=1,
        le=64,
        description=(
            "how often what is sent crosses memory (written by its source, fetched), and what is "
            "received (delivered, read by what comes next)"
        ),
    )
    local_rate: BitRateOrNone = Field(
        default=0, description='of copies within a node; "0 b/s": they take no time (b/s)'
    )
    source_buffer: PositiveBytes = Field(
        default=10**12, description="shift: the host's buffer of a stream's MFPs (B)"
    )
    output_buffer: PositiveBytes = Field(
        default=10**12, description="shift: buffer of a builder's multi-event packets (B)"
    )
    processing_mean: Seconds = Field(
        default=0.0, description="until a built multi-event packet has left the buffer (s)"
    )
    control_size: Bytes = Field(
        default=32, le=4096, description="of a message that is no MFP, without its sizes (B)"
    )
    clock_offset: Seconds = Field(
        default=0.0,
        description="by windows or time slots: standard deviation of the nodes' clocks (s)",
    )
    clock_drift: Number = Field(
        default=0.0,
        le=0.01,
        description="by windows or time slots: standard deviation of their rates (s/s)",
    )
    card: Card = Field(default_factory=Card, description="the card that a stream comes from")


class Shift(Part):
    """[shift]: linear shifting; in phase n slot i sends to slot i + n."""

    change: Literal["count", "window"] = Field(
        default="count",
        description="the phase changes when a node has sent its MFPs, or by the clock",
    )
    barrier: Literal["none", "centralised", "tournament", "dissemination", "ideal"] = Field(
        default="tournament", description="count: how nodes keep in step"
    )
    phases_per_barrier: int = Field(
        default=1, ge=1, le=1_000_000, description="count: phases from one barrier to the next"
    )
    window: PositiveSeconds = Field(default=1e-3, description="window: length of a phase (s)")
    grace: Seconds = Field(
        default=0.0, description="window: its last part, in which no write is under way (s)"
    )
    jitter: DelayKind = Field(
        default="fixed", description="distribution of the delay before a node begins a phase"
    )
    jitter_mean: Seconds = Field(default=0.0, description="its mean (s)")
    jitter_spread: Seconds = Field(
        default=0.0, description="its standard deviation (gaussian) or half width (uniform) (s)"
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.change == "window" and self.grace >= self.window:
            raise ValueError("grace is as long as window; nothing would ever be sent")
        return self
