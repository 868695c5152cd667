"""A simulated run in which something breaks: its throughput against time, and what faults cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from daqloom.course import Bin, Bins, Break, fault_metrics, series
from daqloom.scenario.models import Scenario
from daqloom.topology.outages import outages
from daqloom.topology.system import FabricSystem

if TYPE_CHECKING:
    from daqloom import _engine

BINS = 100
"""Number of bins of a run."""
BEFORE_S = 1e-12
"""The engine counts from the warm-up on; what was counted before is read so much earlier."""


class Engine(Protocol):
    """A simulated system."""

    def run(self, progress: Callable[[float], None] | None, until_s: float) -> None:
        """Simulate until a time (s)."""

    def report(self) -> _engine.RunReport:
        """Return what was counted."""


class Course:
    """What is written against time, while the engine runs bin by bin."""

    def __init__(self, scenario: Scenario, system: FabricSystem) -> None:
        self._scenario, self._system = scenario, system
        self._bins = Bins(scenario.run.duration / BINS)
        self._end_s = 0.0

    def run(self, engine: Engine, progress: Callable[[float], None] | None) -> None:
        """Simulate to the end of the run."""
        run = self._scenario.run
        edges = [run.duration * number / BINS for number in range(1, BINS + 1)]
        warm_s = run.warmup - BEFORE_S
        if run.warmup > 0:
            edges = sorted({*edges, warm_s} - {run.warmup})
        before = 0
        for edge_s in edges:
            engine.run(progress, edge_s)
            written = _written(engine.report())
            self._bins.add(self._end_s, edge_s, written - before)
            before = 0 if edge_s == warm_s else written
            self._end_s = edge_s

    def series(self) -> dict[str, Any]:
        """Return the series of `daqloom.course`."""
        return series(self._breaks(), self._rates(), self._members())

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of faults that do not need the fates of events."""
        metrics = fault_metrics(self._breaks(), self._rates(), self._members(), self._end_s, 0)
        metrics.pop("fault_events_lost", None)
        return metrics

    def _rates(self) -> list[Bin]:
        return self._bins.rates(self._end_s, 8.0)

    def _members(self) -> list[tuple[float, int]]:
        return [(0.0, self._system.nodes)]

    def _breaks(self) -> list[Break]:
        faults, system = self._scenario.faults, self._system
        return [
            Break(
                outage.name,
                outage.fault.what,
                outage.which,
                outage.fault.how,
                outage.begin_s,
                0,
                outage.detected_s(faults.detection),
                outage.end_s if outage.end_s < self._end_s else None,
            )
            for outage in outages(faults, system.fabric, system.hosts)
            if outage.begin_s < self._end_s
        ]


def _written(counted: _engine.RunReport) -> int:
    """Return the bytes of data at their destinations: fragments written, where units push them or
    are written to, else events built, or messages of flows."""
    for name in ("bytes_written", "bytes_built"):
        if (found := getattr(counted, name, None)) is not None:
            return int(found)
    return sum(flow.bytes for flow in counted.flows)


def losses(scenario: Scenario, counted: _engine.RunReport) -> dict[str, int]:
    """Return the packets lost to faults, by cause."""
    if scenario.network.technology == "ethernet":
        return {"on_wire": counted.cut}
    return {
        "on_wire": sum(counted.ports.cut.tolist()),
        "link_down": sum(counted.ports.dropped.tolist()),
        "no_route": counted.unrouted,
    }


def packets_lost(counted: _engine.RunReport) -> int:
    """Return the packets that were lost in the network, by whatever cause."""
    ports = counted.ports
    on_infiniband = sum(map(sum, (c.tolist() for c in (ports.discards, ports.cut, ports.dropped))))
    return on_infiniband + counted.unrouted + counted.drops + counted.cut
