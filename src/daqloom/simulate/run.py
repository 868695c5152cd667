"""Packet-level simulation of a scenario, from its start to the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from daqloom import _engine
from daqloom.deployment.fabric_system import FabricSystem, check_paths, fabric_system
from daqloom.results.metrics import with_unit
from daqloom.results.result import Result, StoppedError
from daqloom.scenario.errors import ScenarioError
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate import SimulationError, latency
from daqloom.simulate.daqpipe import DaqpipeRun
from daqloom.simulate.ethernet import class_warnings, ethernet_metrics, ethernet_ports
from daqloom.simulate.fault_course import Course, losses, packets_lost
from daqloom.simulate.flow_traffic import flow_metrics, flow_warnings
from daqloom.simulate.flows import FlowsRun
from daqloom.simulate.infiniband import infiniband_metrics, infiniband_ports
from daqloom.simulate.memory import check_memory, peak_bytes
from daqloom.simulate.pull import PullRun
from daqloom.simulate.shift import ShiftRun
from daqloom.simulate.transports import transport_metrics
from daqloom.topology.formats.load import with_lines
from daqloom.topology.routing import credit_loops
from daqloom.topology.routing.by_name import IMPORTED
from daqloom.topology.routing.routes import trace as trace_paths

ProtocolRun: TypeAlias = PullRun | ShiftRun | DaqpipeRun | FlowsRun
Engine: TypeAlias = (
    _engine.PullSystem | _engine.ShiftSystem | _engine.DaqpipeSystem | _engine.FlowSystem
)

RUNS: dict[str, type[ProtocolRun]] = {
    "pull": PullRun,
    "shift": ShiftRun,
    "daqpipe": DaqpipeRun,
    "none": FlowsRun,
}
"""Class of the simulated run, by building protocol."""


def simulate(
    scenario: Scenario,
    *,
    seed: int | None = None,
    pcap: Mapping[str, Path] | None = None,
    trace: Path | None = None,
    timeline: bool = False,
    course: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Simulate `scenario` packet by packet for `run.duration` virtual seconds.

    `seed` overrides `run.seed`. `trace` is a file for a Perfetto timeline. For pull building over
    TCP, `pcap` maps links (`access.3.down`, `uplink.0.up`, `source.7.up`; outside racks, `leaf0
    port 3`) to pcapng files that record their frames. `progress` is called with the fraction done,
    0 to 1, about ten times a second.

    Series of the result: for pull building, `collection_latency` (`lowest_s`, `width_s`, `count`);
    in racks also `tor_occupancy` (`time_s`, `max_bytes`, one entry per bin after the warm-up) and
    the `course` of some metrics (see `daqloom.simulate.slices`). For other protocols,
    `write_latency`. Outside racks, `ports`: name and bytes sent of every output; on Ethernet, also
    packets dropped, all after the warm-up; on InfiniBand, over the whole run, also seconds of
    waiting for credits or the crossbar, packets discarded, and bytes and waiting of each virtual
    lane. With `timeline`, `phases` of linear shift and `events` of DAQPIPE; see
    `daqloom.results.timeline`. With `course`, and in runs with injected faults, `throughput` and
    `members` against time; see `daqloom.results.course`.

    The same scenario, seed and version give bit-identical metrics.

    Raises ScenarioError if network, units, routes and buffers do not fit together, or not into
    memory; SimulationError for a deadlock, or files that cannot be written; after Ctrl-C
    StoppedError, with complete files and the result until then. Losses that block the event builder
    only cause a warning."""
    seed = scenario.run.seed if seed is None else seed
    started_s = time.perf_counter()
    system = fabric_system(scenario)
    check_memory(scenario, system.nodes)
    loops = _check_paths(scenario, system)
    is_followed = course or bool(scenario.faults.injected)
    followed = Course(scenario, system) if is_followed else None
    run, ran = _simulate(scenario, system, seed, pcap or {}, trace, timeline, progress, followed)
    check_books(run.engine)
    ran.check_warm(scenario.run.warmup)
    result = _result(run, ran, followed, seed, timeline)
    result = replace(
        result,
        engine=cost(started_s, ran, run.report),
        warnings=[*ran.warnings(), *system.warnings, *loops, *result.warnings],
    )
    return ran.whole(result)


def _simulate(
    scenario: Scenario,
    system: FabricSystem,
    seed: int,
    pcap: Mapping[str, Path],
    trace: Path | None,
    timeline: bool,
    progress: Callable[[float], None] | None,
    course: Course | None,
) -> tuple[ProtocolRun, Extent]:
    """Return the finished run of the protocol, and its extent."""
    try:
        run = RUNS[scenario.building.protocol](scenario, system, seed)
        if pcap or trace is not None or timeline:
            run.record(pcap, trace)
        ran = run_engine(run.engine, scenario.run.duration, progress, course)
        run.end_s = ran.end_s
        _check_stall(run.engine, system, run.report)
        if pcap or trace is not None:
            run.finish_recording()
    except ValueError as error:
        raise ScenarioError(f"this scenario cannot be simulated: {error}") from None
    except OSError as error:
        raise SimulationError(str(error)) from None
    return run, ran


def _result(
    run: ProtocolRun, ran: Extent, course: Course | None, seed: int, timeline: bool
) -> Result:
    """Return the result of a run, except for the cost of the simulation."""
    scenario, report = run.scenario, run.report
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        assumed=scenario.assumptions(),
        method="simulate",
        seed=seed,
        fingerprint=f"{report.fingerprint:016x}",
        metrics=run.metrics()
        | _metrics(run, ran.end_s)
        | (course.metrics() if course and scenario.faults.injected else {}),
        interrupted=ran.interrupted,
        warnings=[
            *run.warnings(),
            *_warnings(scenario, report),
            *(course.warnings() if course else ()),
        ],
        series=run.series(timeline=timeline) | _series(run) | (course.series() if course else {}),
    )


@dataclass(frozen=True)
class Extent:
    """Extent of a simulation in virtual time, and its CPU time."""

    cpu_s: float
    end_s: float
    """Virtual time simulated (s)."""
    duration_s: float
    """Virtual time requested (s)."""
    interrupted: bool

    def check_warm(self, warmup_s: float) -> None:
        """Raise StoppedError if Ctrl-C ended the run during the warm-up."""
        if self.interrupted and self.end_s <= warmup_s:
            raise StoppedError("interrupted before the end of the warm-up; there is no result")

    def warnings(self) -> list[str]:
        """Return a warning if the run ended early."""
        if not self.interrupted:
            return []
        end, duration = (with_unit(each, "s") for each in (self.end_s, self.duration_s))
        return [f"interrupted after {end} of {duration}: the numbers cover only that time"]

    def whole(self, result: Result) -> Result:
        """Return the result, or raise StoppedError with it if the run was interrupted."""
        if self.interrupted:
            raise StoppedError(self.warnings()[0], result)
        return result


def _check_paths(scenario: Scenario, system: FabricSystem) -> list[str]:
    """Return warnings about credit loops. Raises ScenarioError if a node cannot reach another one;
    flows are checked elsewhere."""
    network = scenario.network
    if not scenario.protocol.builds or network.is_racks:
        return []
    paths = trace_paths(system.fabric, system.routes)
    if network.shape == "imported" and network.routing in ("", IMPORTED):
        paths = with_lines(network.folder, system.fabric, paths)
    check_paths(scenario.name, paths, system.hosts, system.hosts)
    return credit_loops.warnings(network, system.fabric, paths, system.hosts)


def run_engine(
    engine: Engine,
    duration_s: float,
    progress: Callable[[float], None] | None,
    course: Course | None = None,
) -> Extent:
    """Simulate to the end of the run, or until Ctrl-C, with a `course` if given; `progress` is
    called with the share done."""
    began_s = time.thread_time()
    interrupted = False
    share = None if progress is None else lambda now_s: progress(now_s / duration_s)
    try:
        course.run(engine, share) if course else engine.run(share)
    except KeyboardInterrupt:
        interrupted = True
    end_s = engine.now_s if interrupted else duration_s
    return Extent(time.thread_time() - began_s, end_s, duration_s, interrupted)


def check_books(engine: Engine) -> None:
    """Raise SimulationError if a conservation law is violated at the end of a run."""
    if broken := engine.broken_conservation():
        raise SimulationError(
            f"a conservation check of the simulation failed: {broken}; please report this scenario"
        )


def cost(started_s: float, ran: Extent, report: _engine.RunReport) -> dict[str, Any]:
    """Return the cost of a run for `Result.engine`; `started_s` is from `time.perf_counter`."""
    return {
        "wall_s": time.perf_counter() - started_s,
        "cpu_s": ran.cpu_s,
        "virtual_s": ran.end_s,
        "sim_events": report.sim_events,
        "packet_hops": report.packet_hops,
        "packet_hops_per_cpu_s": report.packet_hops / ran.cpu_s,
        "pending_events_peak": report.pending_peak,
        "peak_rss_bytes": peak_bytes(),
        "connection_memory_bytes": report.memory.connections,
        "packet_memory_bytes": report.memory.packets,
        "message_memory_bytes": report.memory.messages,
        "event_memory_bytes": report.memory.events,
    }


def _metrics(run: ProtocolRun, end_s: float) -> dict[str, Any]:
    """Return the metrics of a run's network, transport and flows."""
    scenario, system, report = run.scenario, run.system, run.report
    if scenario.network.technology == "ethernet":
        metrics = ethernet_metrics(system, report, report.window_s)
    else:
        metrics = infiniband_metrics(scenario, system, report, end_s)
    if scenario.faults.injected:
        metrics["packets_lost"] = losses(scenario, report)
    if latencies := latency.summary(report.write_latency):
        metrics["write_latency_s"] = latencies
    if scenario.has_levels:
        metrics["message_latency_s"] = latency.summaries(
            {f"level_{level}": each for level, each in enumerate(report.level_latencies)}
        )
    metrics |= flow_metrics(scenario, report, report.window_s)
    return metrics | transport_metrics(scenario, report)


def _series(run: ProtocolRun) -> dict[str, Any]:
    scenario, report = run.scenario, run.report
    series: dict[str, Any] = {}
    if not scenario.protocol.has_arrivals:
        series["write_latency"] = latency.columns(report.write_latency)
    if not scenario.network.is_racks:
        on_ethernet = scenario.network.technology == "ethernet"
        ports = ethernet_ports if on_ethernet else infiniband_ports
        series["ports"] = ports(run.system, report)
    return series


def _check_stall(engine: Engine, system: FabricSystem, report: _engine.RunReport) -> None:
    """Raise SimulationError if units wait forever although no packet was lost."""
    if not report.stalled:
        return
    retries = report.retries
    lost = packets_lost(report) or (retries and (retries.writes_failed or retries.out_of_sequence))
    if (circle := engine.deadlock()) or not lost:
        raise SimulationError(_stall(system, circle))


def _warnings(scenario: Scenario, report: _engine.RunReport) -> list[str]:
    """Return warnings about flows, and about losses with their consequences."""
    warnings = flow_warnings(scenario, report) + class_warnings(scenario)
    retries, is_rdma = report.retries, scenario.transport.kind == "rdma"
    until = " until units regroup" if scenario.regroups else ""
    if is_rdma and (lost := packets_lost(report)) and not scenario.transport.retry_timeout:
        dropped = "dropped" if scenario.network.technology == "ethernet" else "discarded"
        what = "lost" if scenario.faults.injected else dropped
        warnings.append(
            f"{lost} packets were {what} and none is retransmitted: a connection that has lost a "
            f"packet delivers nothing more{until}; set transport.retry_timeout"
        )
    elif retries and retries.out_of_sequence and not scenario.transport.retry_timeout:
        warnings.append(
            f"{retries.out_of_sequence} packets came out of sequence, as routes changed, and none "
            f"is retransmitted: their connections deliver nothing more{until}; "
            "set transport.retry_timeout"
        )
    if retries and (failed := retries.writes_failed):
        warnings.append(
            f"{failed} writes failed: their connections gave up after "
            f"{scenario.transport.retry_count + 1} timeouts in a row"
        )
    if report.stalled:
        warnings.append(
            "the event builder has stalled at the end: it waits for packets that are lost"
        )
    return warnings


def _stall(system: FabricSystem, circle: list[tuple[int, int]]) -> str:
    if not circle:
        return "the event builder has stalled: no event is left to simulate; please report this"
    return (
        "deadlock: each of these outputs waits for a buffer that only the next one can drain: "
        f"{credit_loops.loop_names(system.fabric, circle)}; use routes without cycles, or a "
        "virtual lane for each direction"
    )
