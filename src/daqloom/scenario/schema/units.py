"""[readout], [builders] and [storage]: the units that read out, build and store events."""

from typing import Annotated, Any

from pydantic import Field

from daqloom.scenario.quantities import Bytes, PositiveBytes, PositiveDuration, Seconds
from daqloom.scenario.schema.building import BUILT, PACKED, PULL, SHIFT
from daqloom.scenario.schema.distribution import Distribution
from daqloom.scenario.schema.hosts import BY_RULE
from daqloom.scenario.schema.part import (
    ASSUMED,
    PER_CENT,
    DefaultWith,
    Guess,
    Number,
    Part,
    When,
    items,
)

STORED = When("storage.units")
"""Condition of keys that require storage units."""


def _units(pull: int) -> Any:
    """Return the marks of a key for a number of units, with the default `pull` in pull building."""
    return (BUILT, BY_RULE, DefaultWith("building.protocol", {"pull": pull}), Guess(when=(PULL,)))


class Card(Part):
    """[readout.card]: the readout card of each stream, whose acknowledgements may be late."""

    buffer: Annotated[Bytes, SHIFT] = 0
    """Buffer of the card for each stream; when it is full, the trigger stops for all cards.
    Requires event.rate. "0 B": no limit (B)."""
    acknowledge: Annotated[Distribution, When(".buffer")] = Field(default_factory=Distribution)
    """Acknowledge latency: time from the end of an MFP until the card receives the acknowledgement
    that the MFP is in the host's memory."""
    spike_probability: Annotated[float, Field(ge=0, le=1), PER_CENT, When(".buffer")] = 0.0
    """Probability, 0 to 1, of a latency spike instead of the usual acknowledge latency."""
    spike: Annotated[Distribution, When(".spike_probability")] = Field(default_factory=Distribution)
    """Length of a spike."""


class Readout(Part):
    """[readout]: the readout units (RO servers, ROSes), which hold the fragments."""

    units: Annotated[int, *_units(48)] = Field(default=0, ge=0, le=50_000)
    """Number of readout units; 0 (not allowed for pull): one on every host of the network."""
    streams: Annotated[int, PACKED, ASSUMED] = Field(default=3, ge=1, le=8)
    """Number of sources (data streams) of a readout unit."""
    response: Annotated[Distribution, PULL] = Field(default_factory=Distribution)
    """Time from a request until the answer is sent."""
    message_cost: Annotated[Seconds, PULL] = 0.0
    """CPU time of a readout unit for each message; "0 s": `hosts.message_cost` (s)."""
    buffer: Annotated[PositiveBytes, SHIFT] = 10**12
    """Buffer of the host for the MFPs of a stream (B)."""
    card: Annotated[Card, SHIFT] = Field(default_factory=Card)
    """The readout card of a stream."""


class Storage(Part):
    """[storage]: the storage units (SFOs, data loggers), to which builder units send the events
    that they accept after the processing."""

    units: int = Field(default=0, ge=0, le=10_000)
    """Number of storage units, each on a host of its own: in a rack or farm at the core routers;
    else the next hosts by port, after those of other units and spares; 0: no event is stored."""
    accepted: Annotated[Number, STORED, ASSUMED] = Field(default=0.01, le=1)
    """Share of the events that are accepted, such as "1 %". Event number and seed decide about an
    event. An accepted event counts as one of concurrent_events until its storage unit, which is the
    event number modulo the number of storage units, has acknowledged it."""
    timeout: Annotated[PositiveDuration, STORED] = 1.0
    """Time without acknowledgement after which an event is sent to the next storage unit; after the
    last one, the builder unit gives the event up (s)."""


class Builders(Part):
    """[builders]: the builder units (EF nodes, DCMs), which collect whole events."""

    units: Annotated[int, *_units(32)] = Field(default=0, ge=0, le=10_000)
    """Number of builder units (farm: in each rack); 0 (not allowed for pull): as many as readout
    units."""
    folded: Annotated[
        bool,
        BUILT,
        BY_RULE,
        DefaultWith("building.protocol", dict.fromkeys(PACKED.among, True)),
        Guess(when=(PACKED,)),
    ] = False
    """Whether each builder unit shares a host with a readout unit (folded event builder). If false,
    a host has one of them; except for pull, readout and builder units alternate by port."""
    buffer: Annotated[PositiveBytes, SHIFT] = 10**12
    """Buffer of a builder unit for multi-event packets (MEPs) (B)."""
    processing: Annotated[tuple[Distribution, ...], BUILT] = items(64)
    """Successive delays after an event is built, such as [{kind = "exponential", mean = "1 ms"}].
    Until the end of the last delay the event counts as one of concurrent_events (pull), or occupies
    the output buffer (other protocols)."""
    message_cost: Annotated[Seconds, PULL] = 0.0
    """CPU time of a builder unit for each message; "0 s": `hosts.message_cost` (s)."""

    @property
    def processing_mean(self) -> float:
        """Sum of the mean times of all processing delays, also of histograms (s)."""
        return sum(stage.mean_s for stage in self.processing)
