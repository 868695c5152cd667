"""[faults]: cables broken during the whole run, and faults injected during the run."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple, Self, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.quantities import TIME, BitRateOrNone, Duration, PositiveDuration
from daqloom.scenario.schema.flows import FlowName
from daqloom.scenario.schema.part import ASSUMED, CABLED, Part, When

MOST_INJECTED = 256
MOST_REPEATS = 10_000


class Kind(NamedTuple):
    """A kind of thing that can break."""

    ways: tuple[str, ...]
    """Values of `how` for this kind."""
    breaks: Literal["links", "host", "node"] = "links"
    """Broken components: links of the network, a host with its links, or a part of a node."""
    unmeasured: str = ""
    """Reason why a measurement cannot break such a part, with an alternative; empty if it can."""


KINDS: Mapping[str, Kind] = {
    "cable": Kind(("down", "one-way", "degraded")),
    "port": Kind(("down",)),
    "switch": Kind(("down",)),
    "host": Kind(("down",), "host"),
    "unit": Kind(("down", "stopped", "slow"), "node"),
    "card": Kind(
        ("down",),
        "node",
        'a measured card has random acknowledgements only; use what = "unit"',
    ),
}

_INJECTED = When(".injected")
T = TypeVar("T")


def _node_name(value: object) -> object:
    """Return the number of a node as its name."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Fault(Part):
    """[faults.injected.NAME]: something that breaks during the run."""

    what: Literal["cable", "port", "switch", "host", "unit", "card"] = "cable"
    """Part that breaks: a cable between switches (or another one, named by `which`), a port of a
    switch or host with its cable, a switch, a host, the units of a node, or the card of a readout
    unit."""
    which: Annotated[
        str, BeforeValidator(_node_name), WithJsonSchema({"type": ["string", "integer"]})
    ] = Field(default="", max_length=100)
    """Name of the part that breaks: of a cable or port, such as "leaf00 port 3"; of a switch or
    host; for units and cards the number or the host of the node. Empty: drawn with faults.seed."""
    count: int = Field(default=1, ge=1, le=100_000)
    """Number of different parts to draw if `which` is empty."""
    how: Literal["down", "one-way", "degraded", "stopped", "slow"] = "down"
    """Effect of the fault. down: the part fails (units are killed, a card sends no
    acknowledgements). Cables may also be degraded, or one-way: all packets are lost towards the end
    that `which` names or that is drawn. Units may also be stopped or slow."""
    at: Duration = 0.0
    """Begin of the fault, counted from the start of the run; in measurements from the time when all
    units first build events (s)."""
    lasts: Duration = 0.0
    """Duration of the fault; "0 s": until the end of the run. A killed unit returns when the run
    control has restarted it (s)."""
    repeats: int = Field(default=1, ge=1, le=MOST_REPEATS)
    """Number of times that the part breaks (flapping), once per `period`."""
    period: Duration = 0.0
    """Time from one break to the next; must be longer than `lasts` (s)."""
    rate: BitRateOrNone = 0
    """Rate of a degraded cable; "0 b/s": unchanged (b/s)."""
    bit_error_rate: float = Field(default=0.0, ge=0, le=0.01)
    """Share of erroneous bits on a degraded cable. Packets with an error are lost, or sent again by
    the link if `link_retry` is set."""
    link_retry: Duration = 0.0
    """Delay of a packet that a degraded cable's link sends again after an error; "0 s": the link
    does not retry (s)."""
    factor: float = Field(default=2.0, gt=1, le=1e6)
    """Factor by which the processor of a slow unit is slower."""

    def times(self) -> list[tuple[float, float]]:
        """Return the times of break and repair (s); infinity if it is never repaired."""
        length = self.lasts or float("inf")
        begins = (self.at + number * self.period for number in range(self.repeats))
        return [(begin, begin + length) for begin in begins]

    @property
    def kind(self) -> Kind:
        """Properties of the kind of thing that breaks."""
        return KINDS[self.what]

    @property
    def loses_units(self) -> bool:
        """Whether units are lost if the fault lasts long enough for the run control to detect
        it."""
        return self.what == "host" or (self.what == "unit" and self.how in ("down", "stopped"))

    @model_validator(mode="after")
    def _check(self) -> Self:
        ways = self.kind.ways
        if self.how not in ways:
            refusal = f'how = "{self.how}" means nothing for what = "{self.what}"'
            raise ValueError(f"{refusal}; expected {' or '.join(ways)}")
        degrades = bool(self.rate or self.bit_error_rate)
        if degrades != (self.how == "degraded"):
            raise ValueError(
                'how = "degraded" requires a rate or a bit_error_rate, and these require it'
            )
        if self.link_retry and not self.bit_error_rate:
            raise ValueError("link_retry requires a bit_error_rate above 0")
        if self.which and self.count > 1:
            refusal = f'which = "{self.which}" and count = {self.count}; give one of them'
            raise ValueError(f"{refusal}: one that you name, or a number to be drawn")
        if self.repeats > 1 and (not self.lasts or self.period <= self.lasts):
            raise ValueError(
                f"repeats = {self.repeats} requires lasts above 0 and a longer period; they are "
                f"{TIME.format(self.lasts)} and {TIME.format(self.period)}"
            )
        return self


class Faults(Part):
    """[faults]: cables broken during the whole run, and faults injected during the run."""

    cables: Annotated[int, CABLED] = Field(default=0, ge=0, le=100_000)
    """Number of cables between switches, drawn at random, that are broken during the whole run;
    forwarding tables are computed without them. If network.routing is not set, or is imported,
    these tables are those of minimal:balanced: OpenSM's minhop, which its ftree also uses when a
    cable is missing."""
    seed: Annotated[int, replace(CABLED, or_with=".injected")] = Field(default=1, ge=0, lt=1 << 63)
    """Seed for the drawn cables and parts, independent of run.seed."""
    injected: Annotated[dict[FlowName, Fault], Field(max_length=MOST_INJECTED)] = Field(
        default_factory=dict
    )
    """Faults during the run, by name."""
    routing: Annotated[Literal["none", "local", "sweep"], _INJECTED, ASSUMED] = "sweep"
    """Rerouting around injected faults: none; local: a switch that detects that a port is down uses
    its next port towards the host (on Ethernet, the port leaves its ECMP group); or sweep: the
    subnet manager recomputes all tables."""
    detection: Annotated[PositiveDuration, _INJECTED, ASSUMED] = 1e-3
    """Time from a break until both ends of the link have detected it, and drop the packets queued
    for the link (s)."""
    sweep: Annotated[Duration, _INJECTED, ASSUMED] = 0.1
    """Time from the detection until all switches have the subnet manager's new tables; OpenSM takes
    0.04 s for 72 hosts, 0.1 s for 360 and 0.25 s for 800 (s)."""

    def draw(self, name: str, among: Sequence[T]) -> list[T]:
        """Return the items that the fault `name` breaks, drawn with the seed and independent of
        other faults. Raises ScenarioError if there are too few items."""
        count = self.injected[name].count
        if count > len(among):
            raise ScenarioError(
                f"faults.injected.{name}: count = {count}, and there are {len(among)} to be drawn "
                f"from; give {len(among)} at most"
            )
        return random.Random(f"{self.seed} {name}").sample(among, count)
