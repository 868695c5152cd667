"""[building]: how events are built: the protocol, and the keys of each."""

from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from daqloom.scenario.quantities import Bytes, Duration, PositiveBytes, PositiveDuration, Seconds
from daqloom.scenario.schema.distribution import Distribution
from daqloom.scenario.schema.part import ASSUMED, DefaultWith, Guess, Part, When
from daqloom.scenario.schema.parts import Parts

ProtocolName = Literal["pull", "shift", "daqpipe", "none"]


@dataclass(frozen=True)
class Protocol:
    """Properties of a building protocol that decide about other tables and about methods."""

    title: str
    """Name in sentences."""
    part: Parts
    """Part of a system for which metrics are declared."""
    on_fixed_paths: Parts = Parts.NONE
    """Part with closed forms: the protocol by RDMA on paths that no hash decides."""
    builds: bool = True
    """Events are built; a measurement can build them, and their units can regroup."""
    packs: bool = False
    """Readout units send multi-fragment packets."""
    requests: bool = False
    """Builder units request the data of a readout unit for an event, which travel together."""
    has_arrivals: bool = False
    """Events arrive one by one at an event manager, each with a size of its own."""
    has_schedule: bool = True
    """Hosts have slots in the order of their ports, among which unfolded units alternate."""
    has_phases: bool = False
    """Nodes go through the slots of the schedule in phases, with dummies and barriers."""


PROTOCOLS: dict[ProtocolName, Protocol] = {
    "pull": Protocol(
        "pull building", Parts.PULL, requests=True, has_arrivals=True, has_schedule=False
    ),
    "shift": Protocol("linear shifting", Parts.SHIFT, Parts.PHASES, packs=True, has_phases=True),
    "daqpipe": Protocol("DAQPIPE", Parts.DAQPIPE, Parts.CREDITS, packs=True, requests=True),
    "none": Protocol("none", Parts.FLOWS_ALONE, builds=False),
}
"""The building protocols; none: only messages of `[flows.NAME]`."""


def _protocols(has: str) -> When:
    """Return the mark of keys of the protocols that have a property."""
    names = (name for name, protocol in PROTOCOLS.items() if getattr(protocol, has))
    return When("building.protocol", tuple(names))


PULL = _protocols("has_arrivals")
SHIFT = _protocols("has_phases")
PACKED = _protocols("packs")
BUILT = _protocols("builds")
_COUNT = When(".change", ("count",))
_WINDOW = When(".change", ("window",))
_BARRIER = When(
    ".barrier", ("centralised", "tournament", "dissemination", "neighbour", "network", "ideal")
)
_NETWORK = When(".barrier", ("network",))
_PACED = When(".pace", ("builder",))
_DAQPIPE = When("building.protocol", ("daqpipe",))

MOST_UNITS = 65_536


def _read_group(value: object) -> object:
    is_size = isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_UNITS
    if value not in ("all", "leaf") and not is_size:
        known = '"all", "leaf", or the number of readout units of a group'
        raise ValueError(f"is not known; expected {known}, 1 to {MOST_UNITS}")
    return value


Group = Annotated[Literal["all", "leaf"] | int, BeforeValidator(_read_group)]


class _Choice(Part):
    """The building protocol, which determines the keys that apply."""

    protocol: Annotated[
        ProtocolName,
        DefaultWith("network.technology", {"infiniband": "shift"}),
        ASSUMED,
    ] = "pull"
    """Builder units pull fragments (pull); readout units send in linear shift (shift); DAQPIPE
    (daqpipe); or no event building, only the messages of `[flows.NAME]` (none)."""


class Pull(Part):
    """Pull: an event manager assigns events to builder units, which request the fragments."""

    assignment: Annotated[Literal["round-robin", "least-busy", "random"], PULL] = "round-robin"
    """Builder unit to which the event manager assigns the next event: in turn, the one with the
    fewest events, or a random one."""
    event_manager: Annotated[Literal["ideal", "networked"], PULL] = "ideal"
    """Messages between the event manager and builder units: without delay (ideal), or through the
    network to and from the host of readout unit 0, each as large as a request (networked).
    Measurements always have networked messages."""
    concurrent_events: Annotated[int, PULL, ASSUMED] = Field(default=32, ge=1, le=10_000)
    """Number of events that a builder unit collects and processes at the same time."""
    outstanding_fragments: Annotated[int, PULL] = Field(default=0, ge=0, le=1_000_000_000)
    """Limit on the fragments that a builder unit has requested but not yet received (traffic
    shaping by the application); 0: no limit."""
    request_size: Annotated[PositiveBytes, PULL, ASSUMED] = 100
    """Payload of one fragment request (B)."""


class Shift(Part):
    """Linear shifting: in phase n slot i sends to slot i + n."""

    change: Annotated[Literal["count", "window"], SHIFT, Guess(unless_given=".barrier")] = "count"
    """Condition for the next phase: the node has sent its MFPs (count), or the time window is over
    (window)."""
    barrier: Annotated[
        Literal[
            "none", "centralised", "tournament", "dissemination", "neighbour", "network", "ideal"
        ],
        _COUNT,
        ASSUMED,
    ] = "tournament"
    """Barrier that keeps the nodes of a group in step. neighbour: each node waits for the next node
    of its group, the last node for the first. If builder-paced with one writer, only the last node
    waits. network: the switches of an InfiniBand network combine the arrivals of the nodes and
    return the release. ideal: without messages."""
    barrier_level_latency: Annotated[Seconds, _NETWORK, ASSUMED] = 300e-9
    """Time from one level of the switches' reduction tree to the next, up or down: cable, switch
    and reduction. The tree has a level for each level of switches that the group needs (s)."""
    barrier_group: Annotated[Group, _BARRIER] = "all"
    """Groups of readout units with separate barriers: all units in one group, a group for each leaf
    switch, or groups of this number of consecutive units in the schedule."""
    barrier_slack: Annotated[int, _BARRIER] = Field(default=0, ge=0, le=64)
    """Number of incomplete barriers that a node may pass before it waits (split-phase barriers); 0:
    the node waits at each barrier."""
    synchronise: Annotated[Literal["always", "adaptive"], _BARRIER] = "always"
    """Barriers at which a node waits: all (always), or only some while this shortens its rounds
    (adaptive). The effect is measured at the start and when the length of rounds changes."""
    pace: Annotated[Literal["schedule", "builder"], SHIFT] = "schedule"
    """Start of a readout unit's writes: the beginning of the phase (schedule), or the grant of a
    request that the unit then sends to the builder unit (builder)."""
    writers: Annotated[int, _PACED] = Field(default=1, ge=1, le=MOST_UNITS)
    """Number of readout units that may write to a builder unit at the same time."""
    write_order: Annotated[Literal["arrival", "schedule"], _PACED] = "arrival"
    """Order in which a builder unit grants requests: in the order of arrival, or the earliest phase
    first (schedule)."""
    meps_per_phase: Annotated[int, _COUNT] = Field(default=1, ge=1, le=1000)
    """Number of multi-event packets whose MFPs a node writes in a phase."""
    phases_per_barrier: Annotated[int, _BARRIER] = Field(default=1, ge=1, le=1_000_000)
    """Number of phases between two barriers."""
    phases_under_way: Annotated[int, _COUNT] = Field(default=1, ge=1, le=1_000_000)
    """Number of phases whose writes a node may have in flight at the same time; a barrier waits
    until all are complete."""
    dummies: Annotated[Literal["none", "used-ports", "all-ports"], SHIFT, ASSUMED] = "used-ports"
    """Dummies, which are slots of the schedule without a node: none; one for each free port of a
    leaf if other leaves use the port with this number (used-ports); or one for each host of the
    network without units (all-ports). With hosts.placement = "table" there are none. Unless none,
    the slot of a lost unit becomes a dummy."""
    dummy_phases: Annotated[Literal["kept", "skipped"], _COUNT] = "kept"
    """Length of a phase in which a node's partner is a dummy: the length of the node's last phase
    (builder-paced: of its last write to another node), so that the node stays in step (kept), or
    zero (skipped). At a barrier without slack, except neighbour, the length is always zero."""
    window: Annotated[PositiveDuration, _WINDOW, ASSUMED] = 1e-3
    """Length of a phase (s)."""
    grace: Annotated[Duration, _WINDOW] = 0.0
    """Grace period at the end of a window, in which writes may end but not begin (s)."""
    jitter: Annotated[Distribution, SHIFT] = Field(default_factory=Distribution)
    """Delay before a node begins a phase; measurements add it to the machine's own delay."""

    @property
    def keeps_order(self) -> bool:
        """Whether builder units keep nodes in the order of the schedule, because nodes write one
        after the other. Then only the last node of a group waits for its neighbour."""
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
    """A builder unit requests further fragments when earlier ones arrive (pull). Or it sends the
    addresses for all fragments of an event at once to the readout units, which limit their own
    sends (push)."""
    credits: Annotated[int, _DAQPIPE, ASSUMED] = Field(default=4, ge=1, le=4096)
    """Number of events that a builder unit collects at the same time (DAQPIPE's credits)."""
    parallel_sends: Annotated[int, _DAQPIPE, ASSUMED] = Field(default=4, ge=1, le=65_536)
    """Number of fragments of one event in flight at the same time (parallel sends); the streams of
    a readout unit count as one fragment."""
    slot: Annotated[Seconds, _DAQPIPE] = 0.0
    """Length of a time slot, in which only one readout unit sends to a builder unit (DAQPIPE's
    timed variant). "0 s": no slots; fragments are sent as soon as possible (s)."""


class Building(Daqpipe, Shift, Pull, _Choice):
    """[building]: the protocol and its keys."""

    control_size: Annotated[Bytes, PACKED] = Field(default=16, le=4096)
    """Size of each message other than an MFP, in addition to the sizes and offsets that it lists
    (B). The default is the size in daqloom's live event builder."""

    @property
    def in_words(self) -> str:
        """Description of protocol and barrier, for the title of a figure."""
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
        details = {
            "pull": f", {self.concurrent_events} concurrent events",
            "shift": f", {step}",
            "daqpipe": f", {self.credits} credits, {self.parallel_sends} parallel sends",
        }
        return PROTOCOLS[self.protocol].title + details.get(self.protocol, "")
