"""Course of a simulated run with faults: throughput against time, and the cost of faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from daqloom import _engine
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.deployment.flow_ends import flow_sources
from daqloom.results.course import LOST, Bins, Break, fault_metrics, series
from daqloom.results.recovery import Bin, Ending
from daqloom.scenario.quantities import TIME
from daqloom.scenario.schema.models import Scenario

BINS = 100
"""Number of time bins in a run."""
GIVES_UP = f"{_engine.RunPhase.ERROR.name.lower()}: "
"""Beginning of the log entry of a run control that gave up."""
BEFORE_S = 1e-12
"""Time before the end of the warm-up at which counters are read, because the engine resets them
then (s)."""


class Engine(Protocol):
    """Interface of a simulated system that the course needs."""

    def run(self, progress: Callable[[float], None] | None, until_s: float) -> None:
        """Simulate until a time (s)."""

    def report(self) -> _engine.RunReport:
        """Return the counters of the engine."""


@runtime_checkable
class RegroupingEngine(Protocol):
    """Interface of a simulated system whose units regroup."""

    def accounts(self) -> _engine.RunAccounts:
        """Return the fates of all MEPs since the start of the run."""

    def members(self) -> _engine.MembersFrom:
        """Return the number of building units, and the times from which it holds."""

    def losses(self) -> list[_engine.UnitLoss]:
        """Return the declared losses of units."""

    def host_of(self, unit: int) -> int:
        """Return the host of a unit."""

    def run_log(self) -> list[_engine.RunEvent]:
        """Return the run control's log."""


class _Counter:
    """A counter of the engine against time; the engine resets it after the warm-up."""

    def __init__(self, duration_s: float) -> None:
        self.bins = Bins(duration_s / BINS)
        self.total = 0
        self._before = 0

    def add(self, begin_s: float, end_s: float, count: int, *, begins_anew: bool) -> None:
        """Add the engine's count at `end_s`; `begins_anew`: the engine then resets the counter."""
        self.bins.add(begin_s, end_s, count - self._before)
        self.total += count - self._before
        self._before = 0 if begins_anew else count


class _Flow:
    """Bytes of a flow against time, and the time at which all its messages are delivered."""

    def __init__(self, duration_s: float, messages: int) -> None:
        self.messages = messages
        """Number of messages from all sources of the flow; 0: unlimited."""
        self.bytes, self._done = _Counter(duration_s), _Counter(duration_s)
        self.ended_s: float | None = None

    def add(
        self, begin_s: float, end_s: float, count: _engine.FlowCount, *, begins_anew: bool
    ) -> None:
        """Add the count of the flow at `end_s`: see `_Counter.add`."""
        self.bytes.add(begin_s, end_s, count.bytes, begins_anew=begins_anew)
        self._done.add(begin_s, end_s, count.messages + count.lost, begins_anew=begins_anew)
        if self.ended_s is None and 0 < self.messages <= self._done.total:
            self.ended_s = end_s


class Course:
    """Written bytes against time, recorded while the engine runs bin by bin. If units regroup, also
    the members over time and the fates of events."""

    def __init__(self, scenario: Scenario, system: FabricSystem) -> None:
        self._scenario, self._system = scenario, system
        duration_s = scenario.run.duration
        self._flows = [
            _Flow(duration_s, len(senders) * scenario.flows[name].messages)
            for name, senders in flow_sources(scenario, system).items()
            if not scenario.protocol.builds  # else events are what counts
        ]
        self._plan = system.fault_plan
        self._written = _Counter(duration_s)
        self._end_s = 0.0
        self._regrouped: RegroupingRecord | None = None

    def run(self, engine: Engine, progress: Callable[[float], None] | None) -> None:
        """Simulate to the end of the run."""
        run = self._scenario.run
        edges = [run.duration * number / BINS for number in range(1, BINS + 1)]
        warm_s = run.warmup - BEFORE_S
        if run.warmup > 0:
            edges = sorted({*edges, warm_s} - {run.warmup})
        if isinstance(engine, RegroupingEngine) and self._scenario.regroups:
            self._regrouped = RegroupingRecord(self._scenario, self._system, engine)
            begins_s = {each.begin_s - BEFORE_S for each in self._plan.outages}
            edges = sorted({*edges, *(at_s for at_s in begins_s if 0 < at_s < run.duration)})
        for edge_s in edges:
            engine.run(progress, edge_s)
            if self._regrouped:
                self._regrouped.record(edge_s)
            report, is_warm = engine.report(), edge_s == warm_s
            self._written.add(self._end_s, edge_s, _written(report), begins_anew=is_warm)
            for flow, count in zip(self._flows, report.flows, strict=False):
                flow.add(self._end_s, edge_s, count, begins_anew=is_warm)
            self._end_s = edge_s

    def series(self) -> dict[str, Any]:
        """Return the series that `daqloom.results.course` describes."""
        found: dict[str, Any] = series(self._breaks(), self._rates(), self._members())
        return found | (self._regrouped.series() if self._regrouped else {})

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of faults; if units regroup, also the fates of events."""
        lost = self._regrouped.events_lost() if self._regrouped else 0
        metrics: dict[str, Any] = fault_metrics(
            self._breaks(), self._rates(), self._members(), self._end_s, lost, self._endings()
        )
        if self._regrouped:
            return metrics | self._regrouped.metrics()
        metrics.pop("fault_events_lost", None)
        return metrics

    def warnings(self) -> list[str]:
        """Return a warning if the run control gave up."""
        return self._regrouped.warnings() if self._regrouped else []

    def _rates(self) -> list[Bin]:
        return self._written.bins.rates(self._end_s, 8.0)

    def _endings(self) -> list[Ending]:
        return [
            Ending(flow.ended_s, flow.bytes.bins.rates(self._end_s, 8.0))
            for flow in self._flows
            if flow.ended_s is not None
        ]

    def _members(self) -> list[tuple[float, int]]:
        return self._regrouped.members() if self._regrouped else [(0.0, self._system.nodes)]

    def _breaks(self) -> list[Break]:
        found = [
            Break(
                outage.name,
                outage.fault.what,
                outage.which,
                outage.fault.how,
                outage.begin_s,
                0,
                self._plan.detected_s(outage),
                outage.end_s if outage.end_s < self._end_s else None,
            )
            for outage in self._plan.outages
            if outage.begin_s < self._end_s
        ]
        return self._regrouped.detections(found) if self._regrouped else found


class RegroupingRecord:
    """Record of a simulated system's run control, whose units regroup."""

    def __init__(self, scenario: Scenario, system: FabricSystem, engine: RegroupingEngine) -> None:
        self._scenario, self._system, self._engine = scenario, system, engine
        self._lost_at: dict[float, int] = {}
        """Number of lost events, by time of the run (s)."""

    def record(self, now_s: float) -> None:
        """Record the number of events lost until `now_s`, a time of the run."""
        self._lost_at[now_s] = self.events_lost()

    def events_lost(self) -> int:
        """Return the number of events lost until now, excluding those in flight."""
        fates = self._engine.accounts()
        lost: int = sum(getattr(fates, fate) for fate in LOST)
        return self._scenario.packing * lost

    def members(self) -> list[tuple[float, int]]:
        """Return the number of building units from each time on."""
        found = self._engine.members()
        return list(zip(found.at_s.tolist(), found.members.tolist(), strict=True))

    def detections(self, breaks: list[Break]) -> list[Break]:
        """Return the breaks with the times at which units were declared lost. Kills of units that
        were already lost are left out."""
        # Rounded to the engine's picoseconds: 0.4 s from the engine is the float below 0.4.
        engine = self._engine
        losses = [(round(each.at_s, 12), engine.host_of(each.unit)) for each in engine.losses()]
        names = self._names()
        found = []
        for fault in breaks:
            if fault.what == "host" or (fault.what == "unit" and fault.how in ("down", "stopped")):
                host = names.get(fault.which)
                later_s = (o.begin_s for o in breaks if names.get(o.which) == host)
                until_s = min((s for s in later_s if s > fault.begin_s), default=float("inf"))
                times_s = (at_s for at_s, lost in losses if lost == host)
                detected_s = next((s for s in times_s if fault.begin_s <= s < until_s), None)
                is_killed = fault.what == "unit" and fault.how == "down"
                if is_killed and detected_s is None:
                    continue
                end_s = None if is_killed else fault.end_s
                fault = replace(fault, detected_s=detected_s, end_s=end_s)
            lost_before = self._lost_at.get(fault.begin_s - BEFORE_S, 0)
            found.append(replace(fault, lost_before=lost_before))
        return found

    def _names(self) -> dict[str, int]:
        """Return hosts by the names that faults use for hosts and for their units."""
        system = self._system
        by_unit = {str(node): host for node, host in enumerate(system.hosts)}
        return by_unit | {system.fabric.hosts[host].name: host for host in system.hosts}

    def metrics(self) -> dict[str, Any]:
        """Return the fates of all events, and the numbers of lost units and regroupings."""
        accounts, packing = self._engine.accounts(), self._scenario.packing
        fates = ("begun", "built", *LOST, "in_flight")
        return {
            "events_accounted": {fate: packing * getattr(accounts, fate) for fate in fates},
            "units_lost": accounts.units_lost,
            "regroupings": accounts.regroupings,
        }

    def warnings(self) -> list[str]:
        """Return a warning if the run control gave up."""
        return [
            f"nothing is built from {TIME.format(log.time_s)} on: {log.text.removeprefix(GIVES_UP)}"
            for log in self._engine.run_log()
            if log.text.startswith(GIVES_UP)
        ]

    def series(self) -> dict[str, Any]:
        """Return the log of the run control, in the format of a measured run."""
        log = self._engine.run_log()
        columns = {"time_s": [each.time_s for each in log], "text": [each.text for each in log]}
        return {"run_events": columns}


def incomplete(scenario: Scenario, events: int) -> dict[str, int]:
    """Return the metric of incomplete events; empty if units cannot be lost."""
    return {"events_incomplete": events} if scenario.regroups else {}


def _written(report: _engine.RunReport) -> int:
    """Return the bytes that arrived: in written fragments, else in built events or in flows."""
    for name in ("bytes_written", "bytes_built"):
        if (found := getattr(report, name, None)) is not None:
            return int(found)
    return sum(flow.bytes for flow in report.flows)


def losses(scenario: Scenario, report: _engine.RunReport) -> dict[str, int]:
    """Return the number of packets lost to faults, by cause."""
    if scenario.network.technology == "ethernet":
        return {"on_wire": report.cut}
    return {
        "on_wire": sum(report.ports.cut.tolist()),
        "link_down": sum(report.ports.dropped.tolist()),
        "no_route": report.unrouted,
    }


def packets_lost(report: _engine.RunReport) -> int:
    """Return the number of packets lost in the network for any cause."""
    ports = report.ports
    on_infiniband = sum(map(sum, (c.tolist() for c in (ports.discards, ports.cut, ports.dropped))))
    return on_infiniband + report.unrouted + report.drops + report.cut
