"""The scenario of an event builder on an InfiniBand fabric."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from daqloom.scenario.daqpipe import Daqpipe
from daqloom.scenario.flows import Flows
from daqloom.scenario.infiniband import InfinibandFabric
from daqloom.scenario.measure import Measure
from daqloom.scenario.push import Fragments, Nodes, Shift
from daqloom.scenario.quantities import TIME, PositiveSeconds, Seconds
from daqloom.scenario.system import Run, System

if TYPE_CHECKING:
    from daqloom.result import Result


class FabricRun(Run):
    """[run]: how long, and with which random numbers."""

    duration: PositiveSeconds = Field(
        default=10e-3, description="virtual time simulated, warm-up included (s)"
    )
    warmup: Seconds = Field(default=2e-3, description="time at the start that no metric counts (s)")


class FabricScenario(System):
    """Nodes on a fat tree or an imported fabric that build events by linear shifting or DAQPIPE, or
    just write to each other."""

    fragments: Fragments = Field(default_factory=Fragments, description="what sources hold")
    nodes: Nodes = Field(default_factory=Nodes, description="readout and builder units")
    shift: Shift = Field(default_factory=Shift, description="who sends to whom, when")
    daqpipe: Daqpipe = Field(default_factory=Daqpipe, description="credits and parallel sends")
    flows: Flows = Field(
        default_factory=dict, description="writes that follow no event building, by name"
    )
    fabric: InfinibandFabric = Field(default_factory=InfinibandFabric, description="the network")
    run: FabricRun = Field(default_factory=FabricRun, description="length and seed")
    measure: Measure = Field(default_factory=Measure, description="how it is built for real")

    def content(self) -> dict[str, Any]:
        """See `System.content`."""
        content = super().content()
        content["fabric"]["dumps"] = self.fabric.digest()
        content["nodes"]["latency_file"] = self.nodes.digest()
        if not (measure := self.measure.bearing()):
            del content["measure"]  # the same scenario as before there was such a table
        else:
            content["measure"] = measure
        return content

    def analyse(self) -> Result:
        """Closed forms; milliseconds. Raises ScenarioError where nodes and fabric do not fit."""
        from daqloom.analyse.fabric import analyse_fabric

        return analyse_fabric(self)

    def simulate(
        self,
        *,
        seed: int | None = None,
        trace: Path | None = None,
        timeline: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> Result:
        """Credit-accurate simulation; see `daqloom.simulate.fabric.simulate_fabric`."""
        from daqloom.simulate.fabric import simulate_fabric

        return simulate_fabric(self, seed=seed, trace=trace, timeline=timeline, progress=progress)

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_run()
        if "protocol" not in self.nodes.model_fields_set and self.daqpipe != Daqpipe():
            raise ValueError(
                '[daqpipe] is filled in, but nodes.protocol is not given; set it to "daqpipe", or '
                'to "shift" if these keys are to wait'
            )
        self._check_lanes()
        self._check_flows()
        if self.nodes.card.buffer and not self.fragments.rate:
            raise ValueError(
                "nodes.card.buffer needs fragments.rate; a card fills at the rate of events"
            )
        self.check_groups(self.nodes.count)
        if self.fragments.groups and not any(group.share for group in self.fragments.groups):
            raise ValueError("fragments.groups hold nothing; give a share above 0")
        return self

    def _check_lanes(self) -> None:
        levels = {
            f"nodes.{key}": getattr(self.nodes, key)
            for key in ("data_service_level", "control_service_level")
        }
        levels |= {
            f"flows.{name}.service_level": flow.service_level for name, flow in self.flows.items()
        }
        for key, level in levels.items():
            lane = self.fabric.lanes.of(level)
            if not self.fabric.lanes.serves(lane):
                raise ValueError(
                    f"{key} = {level} is on lane {lane}, which has no weight in "
                    "fabric.lanes.high or low; nothing would ever be sent on it"
                )

    def _check_flows(self) -> None:
        if self.nodes.protocol == "flows" and not self.flows:
            raise ValueError(
                'nodes.protocol = "flows" needs a flow, such as [flows.a] with source = 0 and '
                "destination = 1"
            )
        if self.flows and "protocol" not in self.nodes.model_fields_set:
            raise ValueError(
                '[flows] is filled in, but nodes.protocol is not given; set it to "flows", or to '
                "another if these keys are to wait"
            )
        for name, flow in self.flows.items():
            if flow.start >= self.run.duration:
                raise ValueError(
                    f"flows.{name}.start = {TIME.format(flow.start)} is not before the end of the "
                    f"run, run.duration = {TIME.format(self.run.duration)}"
                )

    def readouts(self, nodes: int) -> int:
        """How many of `nodes` nodes have a readout unit."""
        return nodes if self.nodes.folded or self.nodes.protocol == "flows" else -(-nodes // 2)

    def check_groups(self, nodes: int) -> None:
        """Raises ValueError where `nodes` nodes have other sources than `fragments.groups`."""
        told = sum(group.sources for group in self.fragments.groups)
        sources = self.readouts(nodes) * self.nodes.streams
        if told and nodes and told != sources:
            raise ValueError(
                f"fragments.groups have {told} sources; expected one for each of the "
                f"{self.nodes.streams} streams of {self.readouts(nodes)} nodes, {sources}"
            )
