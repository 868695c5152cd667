"""[fragments], [nodes] and [shift]: what event building is about, and linear shifting."""

from __future__ import annotations

import hashlib
from array import array
from typing import Annotated, Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from daqloom.scenario import inputs
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
    """[nodes]: hosts with readout and builder units."""

    protocol: Literal["shift", "daqpipe", "flows"] = Field(
        default="shift",
        description="linear shifting, as `[shift]` says, DAQPIPE, as `[daqpipe]` says, or no event "
        "building, just the writes of `[flows.NAME]`",
    )
    connection: Literal["reliable", "unreliable"] = Field(
        default="reliable",
        description="unreliable: no acknowledges travel; a write is complete when it has arrived",
    )
    count: int = Field(default=0, ge=0, le=8192, description="nodes; 0: all hosts of the fabric")
    folded: bool = Field(
        default=True,
        description=(
            "shift, daqpipe: a readout and a builder unit on every node; else one or the other, by "
            "turns in the order of the nodes"
        ),
    )
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
    latency: Literal[DelayKind, "histogram"] = Field(
        default="fixed", description="distribution of the time from a post to its first packet"
    )
    latency_file: str = Field(
        default="",
        max_length=4096,
        description=(
            "file of the histogram: one latency in microseconds a line, or a latency and a count, "
            "or the output of `ib_write_lat` with -U or -H; relative to the scenario's folder"
        ),
    )
    latency_less: Seconds = Field(
        default=0.0,
        description=(
            "histogram: what each latency of the file has too much, such as that of the link; none "
            "falls below 0 (s)"
        ),
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
    retry_timeout: Seconds = Field(
        default=0.0,
        description=(
            "reliable connection: from the departure of a message's last packet until what is not "
            'acknowledged is sent again; "0 s": nothing is sent again (s)'
        ),
    )
    retry_count: int = Field(
        default=7, ge=0, le=7, description="timeouts in a row until a connection gives up"
    )
    data_service_level: int = Field(
        default=0, ge=0, le=15, description="of multi-fragment packets and fragments"
    )
    control_service_level: int = Field(
        default=0, ge=0, le=15, description="of all other messages, barriers among them"
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

    _latencies: tuple[array[float], array[float]] | None = PrivateAttr(default=None)

    @property
    def latencies(self) -> tuple[list[float], list[float]] | None:
        """Host latencies (s), less `latency_less`, and how often each was measured; None for
        another distribution than a histogram."""
        if self._latencies is None:
            return None
        values_s, counts = self._latencies
        return [max(0.0, each - self.latency_less) for each in values_s], counts.tolist()

    def digest(self) -> str:
        """Of the latencies measured; empty where there are none."""
        if self._latencies is None:
            return ""
        return hashlib.sha256(b"".join(map(bytes, self._latencies))).hexdigest()

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        if self.retry_timeout and self.connection == "unreliable":
            raise ValueError(
                "retry_timeout needs a reliable connection: without acknowledges nobody knows what "
                "to send again"
            )
        if self.latency == "histogram":
            if not self.latency_file:
                raise ValueError('latency = "histogram" needs a file in latency_file')
            folder = inputs.folder_of(info)
            self._latencies = inputs.latencies(self.latency_file, folder)
            self.__dict__["latency_file"] = str(inputs.resolve(self.latency_file, folder))
        return self


class Shift(Part):
    """[shift]: linear shifting; in phase n slot i sends to slot i + n."""

    change: Literal["count", "window"] = Field(
        default="count",
        description="the phase changes when a node has sent its MFPs, or by the clock",
    )
    barrier: Literal["none", "centralised", "tournament", "dissemination", "ideal"] = Field(
        default="tournament", description="count: how nodes keep in step"
    )
    meps_per_phase: int = Field(
        default=1,
        ge=1,
        le=1000,
        description=(
            "count: multi-event packets that a node writes to its builder before the phase changes"
        ),
    )
    phases_per_barrier: int = Field(
        default=1, ge=1, le=1_000_000, description="count: phases from one barrier to the next"
    )
    phases_under_way: int = Field(
        default=1,
        ge=1,
        le=1_000_000,
        description=(
            "count: phases whose writes of a node may be under way at once; at a barrier, all are "
            "complete"
        ),
    )
    dummy_phases: Literal["kept", "skipped"] = Field(
        default="kept",
        description=(
            "count: a dummy's phase that no barrier follows lasts as long as the one before, which "
            "keeps the node in step, or is over at once"
        ),
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
        if self.change == "window" and self.meps_per_phase > 1:
            raise ValueError(
                'meps_per_phase above 1 needs change = "count"; a window has as many as fit'
            )
        return self
