"""The scenario: a system, described once for every method."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, ModelWrapValidatorHandler, model_validator

from daqloom.scenario import inputs
from daqloom.scenario.assumed import assumptions
from daqloom.scenario.building import Building
from daqloom.scenario.check import check
from daqloom.scenario.choices import Choices
from daqloom.scenario.document import forget, given, put, without_empty_tables
from daqloom.scenario.event import Event
from daqloom.scenario.flows import Flows
from daqloom.scenario.hosts import Hosts
from daqloom.scenario.measure import Measure
from daqloom.scenario.network import Network
from daqloom.scenario.part import Part
from daqloom.scenario.possible import check_possible, impossible
from daqloom.scenario.quantities import TIME
from daqloom.scenario.run import Run
from daqloom.scenario.transport import Transport
from daqloom.scenario.units import Builders, Readout

if TYPE_CHECKING:
    from daqloom.result import Result

EVENTS_TO_SETTLE = 400
"""Events of each builder in the default warm-up."""
EVENTS_COUNTED = 1600
"""Events of each builder counted after the default warm-up."""
NOT_POSSIBLE_YET = (2e-3, 8e-3)
"""Of a system that no method takes so far."""
MOST_PACKETS = 2e8
"""Most bytes that cross the rack in a run of default length: 600 million packet hops, about a
minute of CPU time."""
MOST_TIME_S = 1000.0
"""Share of the warm-up in such a run."""


FILES: dict[str, Callable[[Scenario], str]] = {
    "event.size_histogram": lambda s: inputs.digest(*(s.event.histogram or ())),
    "event.trace": lambda s: inputs.digest(s.event.arrival_times or b""),
    "event.lhc.filling": lambda s: inputs.digest(s.event.lhc.pattern),
    "network.dumps": lambda s: s.network.digest(),
    "hosts.latency.file": lambda s: s.hosts.latency.digest(),
    "readout.response.file": lambda s: s.readout.response.digest(),
    "readout.card.acknowledge.file": lambda s: s.readout.card.acknowledge.digest(),
    "readout.card.spike.file": lambda s: s.readout.card.spike.digest(),
    "building.jitter.file": lambda s: s.building.jitter.digest(),
}
"""Keys that name a file that affects a result, and the digest of its content."""


class Scenario(Part):
    """An event-building system, as a scenario file describes it to all methods: five choices, each
    of which goes with each as far as the methods can.

    Values are SI numbers: whole bytes, bits per second, seconds, hertz.
    """

    name: str = Field(
        default="",
        max_length=64,
        pattern=r"^[A-Za-z0-9._-]*$",
        description="short name in results; by default the file's name",
    )
    title: str = Field(default="", max_length=200, description="one line for lists")
    description: str = Field(default="", max_length=10_000, description="description of the system")
    event: Event = Field(default_factory=Event, description="what there is to build")
    building: Building = Field(default_factory=Building, description="how it is built")
    readout: Readout = Field(default_factory=Readout, description="readout units")
    builders: Builders = Field(default_factory=Builders, description="builder units")
    hosts: Hosts = Field(default_factory=Hosts, description="hosts of the units")
    transport: Transport = Field(default_factory=Transport, description="how bytes travel")
    network: Network = Field(default_factory=Network, description="over what")
    flows: Flows = Field(default_factory=dict, description="writes of load generators, by name")
    run: Run = Field(default_factory=Run, description="length and seed of a simulation")
    measure: Measure = Field(default_factory=Measure, description="how a measurement runs")

    @property
    def mss(self) -> int:
        """Payload of a full TCP segment (B)."""
        return self.network.mtu - self.transport.header_bytes

    @property
    def is_rack(self) -> bool:
        """Return whether the network is that of one rack on Ethernet."""
        return self.network.technology == "ethernet" and self.network.shape == "rack"

    @property
    def nodes(self) -> int:
        """Number of hosts with a unit; 0: all of the network."""
        if self.hosts.placement == "table":
            return len(self.hosts.units)
        if self.building.protocol == "none":
            return self.hosts.count
        if self.folded:
            return self.readout.units
        return self.readout.units + (self.builders.units or self.readout.units)

    @property
    def folded(self) -> bool:
        """Return whether each host has a readout unit and a builder unit, or nothing is built."""
        if self.hosts.placement == "table":
            return all(unit.role == "both" for unit in self.hosts.units)
        return self.builders.folded or self.building.protocol == "none"

    def readouts(self, nodes: int) -> int:
        """Return how many of `nodes` hosts have a readout unit."""
        if self.hosts.placement == "table":
            return sum(unit.reads for unit in self.hosts.units)
        return nodes if self.folded else -(-nodes // 2)

    def builder_units(self, nodes: int) -> int:
        """Return how many of `nodes` hosts have a builder unit."""
        if self.hosts.placement == "table":
            return sum(unit.builds for unit in self.hosts.units)
        return nodes if self.folded else nodes // 2

    def document(self) -> dict[str, Any]:
        """Return the keys that apply, as JSON and as a file would have them."""
        document = self.model_dump(mode="json")
        for name in ("core", "tor"):
            table = document["network"]["switch"][name]
            used = getattr(self.network.switch, name).applicable_keys
            document["network"]["switch"][name] = {k: v for k, v in table.items() if k in used}
        for path, _ in list(Choices(document, type(self)).without_meaning()):
            forget(document, path)
        return without_empty_tables(document)

    def content(self) -> dict[str, Any]:
        """Return all that affects a result, as JSON: all keys except name, title, description and
        seed; files by the digest of their content."""
        content = self.document()
        for key in ("name", "title", "description"):
            content.pop(key, None)
        del content["run"]["seed"]
        for path in set(given(content)) & FILES.keys():
            put(content, path, FILES[path](self))
        if not (measure := self.measure.bearing()):
            del content["measure"]  # the same scenario whether measured or not
        else:
            content["measure"] = measure
        return content

    def hash(self) -> str:
        """SHA-256 of `content`; results give the seed separately."""
        canonical = json.dumps(self.content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()

    def assumed(self) -> dict[str, str]:
        """Return keys that affect a result, were not given and have no neutral default: key → value
        as text, such as `{"network.links.uplink.rate": "800 Gb/s"}`."""
        return dict(assumptions(self))

    def with_overrides(self, overrides: Iterable[str] | Mapping[str, Any]) -> Scenario:
        """Return the same system with some keys changed.

        `overrides` are `["event.size=2 MB"]` or `{"event.size": "2 MB"}`. Raises ScenarioError.
        """
        from daqloom.scenario.load import override

        return override(self, overrides)

    def _repr_html_(self) -> str:
        from daqloom.notebook import system_html

        return system_html(self)

    def analyse(self) -> Result:
        """Evaluate the closed forms. Raises ScenarioError where none applies."""
        check_possible(self)
        if self.is_rack:
            from daqloom.analyse import analyse

            return analyse(self)
        from daqloom.analyse.fabric import analyse_fabric

        return analyse_fabric(self)

    def simulate(
        self,
        *,
        seed: int | None = None,
        pcap: Mapping[str, Path] | None = None,
        trace: Path | None = None,
        timeline: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> Result:
        """Simulate packet by packet; see `daqloom.simulate.simulate` for the arguments of racks,
        `daqloom.simulate.fabric.simulate_fabric` for those of fabrics."""
        from daqloom.analyse.beyond import with_bound

        check_possible(self)
        if not self.is_rack:
            from daqloom.simulate.fabric import simulate_fabric

            result = simulate_fabric(
                self, seed=seed, trace=trace, timeline=timeline, progress=progress
            )
            return with_bound(self, result)
        from daqloom.analyse.resonance import resonating
        from daqloom.simulate import simulate

        result = simulate(self, seed=seed, pcap=pcap, trace=trace, progress=progress)
        examined = with_bound(self, result)
        return replace(examined, warnings=[*examined.warnings, *resonating(self, result)])

    def usual_run(self) -> tuple[float, float]:
        """Return the default warm-up and the default time counted after it (s).

        On a rack, from a number of events of each builder, or as many as are affordable: windows
        and queues have settled after some hundred events of each, and retransmission timeouts have
        occurred. On a fabric, see `daqloom.topology.run_length`.
        """
        if impossible(self):
            return NOT_POSSIBLE_YET
        if not self.is_rack:
            from daqloom.topology.run_length import run_length

            return run_length(self)
        rate, builders = self.event.rate, self.builders.units
        warmup_s = max(EVENTS_TO_SETTLE * builders / rate, 2 * self.transport.rto_min)
        counted_s = EVENTS_COUNTED * builders / rate
        packets_hz = rate * max(self.readout.units, self.event.size / self.mss)
        longest_s = min(MOST_PACKETS / packets_hz, MOST_TIME_S)
        if self.event.arrival_times is not None:
            longest_s = min(longest_s, self.event.arrival_times[-1])
        share = min(1.0, longest_s / (warmup_s + counted_s))
        return share * warmup_s, share * counted_s

    @model_validator(mode="wrap")
    @classmethod
    def _with_choices(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(data, dict):
            return handler(data)
        choices = Choices(data, cls)
        for path, condition in choices.without_meaning():
            raise ValueError(choices.refusal(path, condition))
        document, filled = choices.with_defaults()
        scenario = handler(document)
        # What the choices filled in was not set by the user: others may replace it.
        for path in filled:
            _unset(scenario, path, data)
        return scenario

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._fill_in_run()
        check(self)
        return self

    def _fill_in_run(self) -> None:
        """Fill in the lengths that the file leaves out; they do not count as set by the user, as
        they change with other keys."""
        given = self.run.model_fields_set
        if {"duration", "warmup"} <= given:
            return
        warmup_s, counted_s = self.usual_run()
        warmup_s = self.run.warmup if "warmup" in given else _told(warmup_s)
        duration_s = _told(warmup_s + counted_s, digits=6)
        if "duration" in given:
            warmup_s = _told(warmup_s * min(1.0, self.run.duration / duration_s))
            duration_s = self.run.duration
        run = self.run.model_copy()
        run.__dict__.update(duration=duration_s, warmup=warmup_s)
        self.__dict__["run"] = run


def _told(time_s: float, digits: int = 3) -> float:
    """Return a time as a scenario file writes it, with this number of digits."""
    return float(TIME.parse(TIME.format(float(f"{min(time_s, TIME.maximum):.{digits}g}"))))


def _unset(scenario: Scenario, path: str, document: Mapping[str, Any]) -> None:
    """Let a key, and tables around it that `document` does not have, count as not given."""
    part: Any = scenario
    table: Any = document
    for name in path.split("."):
        table = table.get(name) if isinstance(table, Mapping) else None
        if table is None:
            part.model_fields_set.discard(name)
        part = getattr(part, name)
