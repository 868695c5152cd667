"""The interface of the engine's node that a unit's process drives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from daqloom._engine import Counters, ShiftStage


class Halted(Protocol):
    """The interface of `daqloom._engine.Halted`."""

    @property
    def next_mep(self) -> int:
        """The first MEP that the next epoch may take."""

    @property
    def missing(self) -> Sequence[int]:
        """The units that did not drain."""


class Node(Protocol):
    """The interface of `daqloom._engine.LiveNode`. One thread calls it, except `lease`, `counters`
    and `suspects`, which another thread may call at any time, during a call and after `shut`.
    `prepare` may follow `prepare` or `connect`, when the members have changed before a start."""

    def prepare(self, epoch: int, members: Sequence[int]) -> bytes:
        """Make a new transport for a new epoch; return its address."""

    def connect(self, addresses: Sequence[tuple[int, bytes]], timeout_s: float) -> list[int]:
        """Connect to all members; return the units that did not answer."""

    def start(self, first_mep: int) -> None:
        """Start the data thread."""

    def halt(self, lost: Sequence[int], timeout_s: float) -> Halted:
        """Drain: end all MEPs under way, without the lost units."""

    def lease(self, mep_end: int, until_s: float) -> None:
        """Allow to answer MEPs before this number until then, by CLOCK_MONOTONIC."""

    def counters(self) -> Counters:
        """Return everything counted since the node was made."""

    def suspects(self) -> list[int]:
        """Return the units that the data thread could not reach in this epoch."""

    def take_stages(self) -> list[tuple[int, int, int, int, ShiftStage]]:
        """Return the last stages, each once: begin (ns since 1970), epoch, step, unit of the
        partner (-1: a dummy), stage. Only called where they are kept."""

    def shut(self) -> None:
        """Free all resources; the node is not used again."""


@dataclass(frozen=True)
class RunInfo:
    """The run of a unit: what it knows besides the scenario."""

    name: str
    """Name of the run, part of the names of its files and shared memory."""
    token: bytes
    """Secret of the run (16 bytes), without which a connection is refused."""
    units: int
    control: str = "127.0.0.1:0"
    """Address of the run control, host:port."""
    trace_stages: int = 0
    """How many of its last stages the unit keeps for a timeline."""


MakeNode = Callable[[Mapping[str, Any], int, RunInfo], Node]
"""Makes a node from a scenario's document, the unit's number and the run. Raises ValueError,
MeasureError."""
