"""[building]: how events are built: the protocol, and the keys of each."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from daqloom.scenario.quantities import Bytes, PositiveBytes, PositiveSeconds, Seconds
from daqloom.scenario.schema.distribution import Distribution
from daqloom.scenario.schema.part import ASSUMED, Assumed, DefaultWith, Part, When

PULL = When("building.protocol", ("pull",))
SHIFT = When("building.protocol", ("shift",))
_COUNT = When(".change", ("count",))
_WINDOW = When(".change", ("window",))
_BARRIER = When(".barrier", ("centralised", "tournament", "dissemination", "neighbour", "ideal"))
_PACED = When(".pace", ("builder",))
_DAQPIPE = When("building.protocol", ("daqpipe",))
PACKED = When("building.protocol", ("shift", "daqpipe"))
"""Readout units send multi-fragment packets."""
REQUESTED = When("building.protocol", ("pull", "daqpipe"))
"""Builder units request the data of a readout unit for an event, which travel together."""
BUILT = When("building.protocol", ("pull", "shift", "daqpipe"))
"""Events are built."""


MOST_UNITS = 65_536


def _read_group(value: object) -> object:
    is_size = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_UNITS
    if value not in ("all", "leaf") and not is_size:
        known = '"all", "leaf", or the number of readout units of a group'
        raise ValueError(f"is not known; expected {known}, 1 to {MOST_UNITS}")
    return value


Group = Annotated[Literal["all", "leaf"] | int, BeforeValidator(_read_group)]


class Protocol(Part):
    """Which protocol, on which the other keys depend."""

    protocol: Annotated[
        Literal["pull", "shift", "daqpipe", "none"],
        DefaultWith("network.technology", {"infiniband": "shift"}),
        ASSUMED,
    ] = "pull"
    """Builder units pull fragments, readout units shift linearly, DAQPIPE, or no event building but
    the writes of `[flows.NAME]`."""


class Pull(Part):
    """Pull: an event manager assigns events to builder units, which request the fragments."""

    assignment: Annotated[Literal["round-robin", "least-busy", "random"], PULL] = "round-robin"
    """Which builder the event manager gives an event to."""
    event_manager: Annotated[Literal["ideal", "networked"], PULL] = "ideal"
    """Its messages to and from builder units take no time, or go through the network from the host
    of readout unit 0, as large as a request; measured, they always do."""
    concurrent_events: Annotated[int, PULL, ASSUMED] = Field(default=32, ge=1, le=10_000)
    """Events that one builder collects and processes at a time."""
    outstanding_fragments: Annotated[int, PULL] = Field(default=0, ge=0, le=1_000_000_000)
    """Fragments that one builder may have requested and not yet received: the application's traffic
    shaping; 0 = no limit."""
    request_size: Annotated[PositiveBytes, PULL, ASSUMED] = 100
    """Payload of one fragment request (B)."""


class Shift(Part):
    """Linear shifting: in phase n slot i sends to slot i + n."""

    change: Annotated[Literal["count", "window"], SHIFT, Assumed(unless_given=".barrier")] = "count"
    """The phase changes when a node has sent its MFPs, or by the clock."""
    barrier: Annotated[
        Literal["none", "centralised", "tournament", "dissemination", "neighbour", "ideal"],
        _COUNT,
        ASSUMED,
    ] = "tournament"
    """Barrier that keeps nodes in step; neighbour: a node waits only for the next one of its group,
    the last for the first (builder-paced with one writer: only the last waits)."""
    barrier_group: Annotated[Group, _BARRIER] = "all"
    """Readout units that a barrier keeps in step: all, those on one leaf switch, or so many that
    follow each other in the schedule."""
    barrier_slack: Annotated[int, _BARRIER] = Field(default=0, ge=0, le=64)
    """Barriers that a node has come to and that may still be open while it goes on (split-phase
    barriers); 0: it waits at each one."""
    synchronise: Annotated[Literal["always", "adaptive"], _BARRIER] = "always"
    """A node waits at each barrier, or only at every fourth, sixteenth, … or last one of a round,
    as far as its rounds are shorter then: it tries that at the start and when their length
    changes."""
    pace: Annotated[Literal["schedule", "builder"], SHIFT] = "schedule"
    """A readout unit writes when its phase begins, or then asks its builder unit, which lets a few
    write at a time."""
    writers: Annotated[int, _PACED] = Field(default=1, ge=1, le=MOST_UNITS)
    """Readout units that a builder unit lets write at a time."""
    write_order: Annotated[Literal["arrival", "schedule"], _PACED] = "arrival"
    """Which of the readout units that are ready a builder unit lets write first: the one that has
    asked first, or the one of the earliest phase."""
    meps_per_phase: Annotated[int, _COUNT] = Field(default=1, ge=1, le=1000)
    """Multi-event packets whose MFPs a node writes to its builder in a phase."""
    phases_per_barrier: Annotated[int, _BARRIER] = Field(default=1, ge=1, le=1_000_000)
    """Number of phases from one barrier to the next."""
    phases_under_way: Annotated[int, _COUNT] = Field(default=1, ge=1, le=1_000_000)
    """Phases of a node whose writes may be in flight at once; at a barrier, all are complete."""
    dummies: Annotated[Literal["none", "used-ports", "all-ports"], SHIFT, ASSUMED] = "used-ports"
    """Dummy slots of the schedule for absent nodes: none, for ports that are used on other leaves,
    or for all hosts of the network; a table of units has none; live: a lost unit leaves a dummy
    slot, but for none."""
    dummy_phases: Annotated[Literal["kept", "skipped"], _COUNT] = "kept"
    """A dummy's phase without a barrier, or before one with slack or of neighbours, lasts as long
    as the node's last one (builder-paced: as its last write to another node), which keeps the node
    in step, or ends at once."""
    window: Annotated[PositiveSeconds, _WINDOW, ASSUMED] = 1e-3
    """Length of a phase (s)."""
    grace: Annotated[Seconds, _WINDOW] = 0.0
    """Grace period at the end of a window, in which no write is in flight (s)."""
    jitter: Annotated[Distribution, SHIFT] = Field(default_factory=Distribution)
    """Delay before a node begins a phase; live: added to what the machine's own is."""

    @property
    def keeps_order(self) -> bool:
        """Whether builder units keep nodes in the order of the schedule, as one writes after the
        other: behind a phase only the last of a group then waits for its neighbour."""
        return self.pace == "builder" and self.writers == 1

    @model_validator(mode="after")
    def _check_shift(self) -> Self:
        if self.change == "window" and self.grace >= self.window:
            raise ValueError("grace is as long as window; no data would be sent")
        return self


class Daqpipe(Part):
    """DAQPIPE: an event manager assigns events to builder units, which collect their fragments
    with credits and parallel sends."""

    mode: Annotated[Literal["pull", "push"], _DAQPIPE, ASSUMED] = "pull"
    """Pull: a builder unit requests further fragments as earlier ones arrive; push: it sends all
    readout units the addresses for their fragments at once, and these pace themselves."""
    credits: Annotated[int, _DAQPIPE, ASSUMED] = Field(default=4, ge=1, le=4096)
    """Events that a builder unit collects at a time (DAQPIPE's credits)."""
    parallel_sends: Annotated[int, _DAQPIPE, ASSUMED] = Field(default=4, ge=1, le=65_536)
    """Fragments of one event in flight at a time (parallel sends); the streams of a readout unit
    are one fragment."""
    slot: Annotated[Seconds, _DAQPIPE] = 0.0
    """Length of a time slot, in which a builder unit is served by one readout unit alone (the timed
    variant); "0 s": fragments are sent as soon as possible (s)."""


class Building(Daqpipe, Shift, Pull, Protocol):
    """[building]: the protocol and its keys."""

    control_size: Annotated[Bytes, PACKED] = Field(default=16, le=4096)
    """Size of a message other than an MFP, without the sizes in it (B). The default is that of
    daqloom's own event builder."""

    @property
    def in_words(self) -> str:
        """Protocol and step in words, for the head of a figure."""
        step = "by time windows"
        if self.change == "count":
            step = "no barrier" if self.barrier == "none" else f"{self.barrier} barrier"
        if self.change == "count" and self.barrier != "none":
            group = self.barrier_group
            step += {"all": "", "leaf": " on each leaf"}.get(str(group), f" of {group}")
            step += f", slack {self.barrier_slack}" if self.barrier_slack else ""
            step += ", adaptive" if self.synchronise == "adaptive" else ""
        if self.pace == "builder":
            step = f"builder-paced, {step}"
        return {
            "pull": f"pull building, {self.concurrent_events} concurrent events",
            "shift": f"linear shifting, {step}",
            "daqpipe": f"DAQPIPE, {self.credits} credits, {self.parallel_sends} parallel sends",
        }.get(self.protocol, self.protocol)
