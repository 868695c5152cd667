"""What a unit's process drives: the engine's node, behind the few calls that run control needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from daqloom.measure.messages import StageRow

# Counters of a node that run control itself looks at; all are cumulative but `WAITS`.
BEATS = "beats"
"""Passes of the data thread: they rise for as long as it runs."""
STEPS = "steps"
"""Of event building: writes made, MEPs built."""
WAITS = "waits"
"""Not 0: it waits for its own source or sink, and nobody expects progress of it."""
NEXT_MEP = "next_mep"
"""The first MEP that no builder has answered."""
BROKEN = "streams_broken"
"""Streams of which nothing can come any more."""
ELAPSED = "elapsed_s"
"""Seconds since the node was made, at the moment of a reading; the unit adds it."""
CPU = "cpu_s"
"""Processor time of the unit's process, all threads; the unit adds it."""


class Node(Protocol):
    """`daqloom._engine.LiveNode`.

    One thread calls it, but for `counters` and `suspects`: these another one may ask for at any
    time, while a call is under way and after `shut`. `prepare` may follow `prepare` or `connect`:
    the members have changed before anything was started.
    """

    def prepare(self, epoch: int, members: Sequence[int]) -> bytes:
        """A new transport for a new epoch; its address."""

    def connect(self, addresses: Sequence[tuple[int, bytes]], timeout_s: float) -> list[int]:
        """To all members; the units that did not answer."""

    def start(self, first_mep: int) -> None:
        """The data thread runs."""

    def halt(self, lost: Sequence[int], timeout_s: float) -> Mapping[str, Any]:
        """Drains; `next_mep`, and under `missing` the units that did not."""

    def counters(self) -> Mapping[str, int | float]:
        """Flat names."""

    def suspects(self) -> list[int]:
        """Units that the data thread could not reach in this epoch."""

    def take_stages(self) -> list[StageRow]:
        """The last ones, each told once. Only called where they are kept."""

    def shut(self) -> None:
        """Frees all; the node is not used again."""


@dataclass(frozen=True)
class RunInfo:
    """What a unit knows of its run besides the scenario."""

    name: str
    """Part of the names of what the run has on a machine."""
    token: bytes
    """16 bytes; who does not know them is refused."""
    units: int
    control: str = "127.0.0.1:0"
    """Where its run control listens, host:port."""
    trace_stages: int = 0
    """It keeps so many of its last stages, for a timeline."""


MakeNode = Callable[[Mapping[str, Any], int, RunInfo], Node]
"""From a scenario's document, the unit's number and the run. Raises ValueError."""


def live_node(document: Mapping[str, Any], unit: int, run: RunInfo) -> Node:
    """The engine's. Raises ValueError, with one sentence, for what cannot be built."""
    from daqloom import _engine
    from daqloom.measure.configure import live_config
    from daqloom.measure.pinning import pin
    from daqloom.scenario.fabric import FabricScenario

    scenario = FabricScenario.model_validate(document)
    pin(scenario.measure, unit, run.units)
    node: Node = _engine.LiveNode(live_config(scenario, unit, run))
    return node
