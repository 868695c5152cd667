"""Simulates an event builder on an InfiniBand fabric."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from daqloom.result import Result
from daqloom.scenario.errors import ScenarioError
from daqloom.simulate import latency
from daqloom.simulate.errors import SimulationError
from daqloom.simulate.memory import check_memory
from daqloom.simulate.run import Engine, Ran, check_books, cost, run_engine

if TYPE_CHECKING:
    from daqloom._engine import RunReport
    from daqloom.scenario.models import Scenario
    from daqloom.topology.system import FabricSystem


class FabricEngine(Engine, Protocol):
    """A system on a fabric in the engine."""

    def deadlock(self) -> list[tuple[int, int]]:
        """Return the outputs (node, port) that wait for one another in a circle."""


class ProtocolRun(Protocol):
    """An event builder in the engine, of any protocol. Its constructor raises ValueError."""

    end_s: float
    """Virtual time at which the run ended (s)."""

    @property
    def engine(self) -> FabricEngine:
        """The system that is simulated."""

    @property
    def counted(self) -> RunReport:
        """The report at the end of the run."""

    def record(self) -> None:
        """Record from now on what the timeline needs."""

    def write_timeline(self, path: Path) -> None:
        """Write the timeline for Perfetto. Raises OutputError where the file cannot be written."""

    def timeline(self) -> dict[str, Any]:
        """Return the timeline as series."""

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the protocol."""

    def warnings(self) -> list[str]:
        """Return warnings about the metrics."""


def simulate_fabric(
    scenario: Scenario,
    *,
    seed: int | None = None,
    trace: Path | None = None,
    timeline: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Simulate `scenario` with credits and packets for `run.duration` virtual seconds.

    `seed` replaces `run.seed`. `trace` is a timeline for Perfetto: what each node does in which
    phase, which events it collects, or which messages it has in flight. `progress` is called with
    the fraction done, 0 to 1, some ten times a second.

    The result carries `series.ports`: of every output the name, bytes sent and seconds it waited
    for credits or the crossbar, over the whole run, packets discarded, and bytes and waiting (for
    either) of each virtual lane; and `series.write_latency` (`lowest_s`, `width_s`, `count`),
    after the warm-up. With `timeline` it carries what figures draw of it, `series.phases` of linear
    shifting and `series.events` of DAQPIPE; see `daqloom.timeline`.

    Raises ScenarioError where fabric, nodes, routes and buffers do not fit together, or not into
    the machine's memory,
    SimulationError for a deadlock; after Ctrl-C `StoppedError`, with the result of
    the time simulated until then. Losses that block the event builder for good are
    a warning.
    """
    from daqloom.topology.system import fabric_system

    seed = scenario.run.seed if seed is None else seed
    started_s = time.perf_counter()
    system = fabric_system(scenario)
    check_memory(scenario, system.nodes)
    _check_paths(scenario, system)
    try:
        run = _protocol_run(scenario, system, seed)
    except ValueError as error:
        raise ScenarioError(f"this scenario cannot be simulated: {error}") from None
    if trace is not None or timeline:
        run.record()
    ran = run_engine(run.engine, scenario.run.duration, progress)
    run.end_s = ran.end_s
    counted = run.counted
    if counted.stalled and ((circle := run.engine.deadlock()) or not _lost(counted)):
        raise SimulationError(_stall(system, circle))
    check_books(run.engine)
    if trace is not None:
        run.write_timeline(trace)
    ran.check_warm(scenario.run.warmup)
    result = Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        assumed=scenario.assumed(),
        method="simulate",
        seed=seed,
        fingerprint=f"{counted.fingerprint:016x}",
        metrics=run.metrics() | _metrics(scenario, system, ran, counted),
        interrupted=ran.interrupted,
        engine=cost(started_s, ran, counted),
        warnings=ran.warnings() + system.warnings + run.warnings() + _warnings(scenario, counted),
        series={
            "ports": _ports(system, counted),
            "write_latency": latency.columns(counted.write_latency),
        }
        | (run.timeline() if timeline else {}),
    )
    return ran.whole(result)


def _check_paths(scenario: Scenario, system: FabricSystem) -> None:
    """Raise ScenarioError where a node cannot reach another; flows check this themselves."""
    from daqloom.topology.load import with_lines
    from daqloom.topology.routes import trace
    from daqloom.topology.routing import IMPORTED
    from daqloom.topology.system import check_paths

    if scenario.building.protocol != "none":
        paths = trace(system.fabric, system.routes)
        if scenario.network.shape == "imported" and scenario.network.routing in ("", IMPORTED):
            paths = with_lines(scenario.network.folder, system.fabric, paths)
        check_paths(scenario.name, paths, system.hosts, system.hosts)


def _protocol_run(scenario: Scenario, system: FabricSystem, seed: int) -> ProtocolRun:
    from daqloom.simulate.daqpipe import DaqpipeRun
    from daqloom.simulate.flows import FlowsRun
    from daqloom.simulate.shift import ShiftRun

    kinds: dict[str, type[ShiftRun | DaqpipeRun | FlowsRun]] = {
        "shift": ShiftRun,
        "daqpipe": DaqpipeRun,
        "none": FlowsRun,
    }
    return kinds[scenario.building.protocol](scenario, system, seed)


def _metrics(
    scenario: Scenario, system: FabricSystem, ran: Ran, counted: RunReport
) -> dict[str, Any]:
    """Return the metrics of the fabric."""
    metrics: dict[str, Any] = {
        "xmit_wait_s": {
            "credits": sum(counted.ports.wait_credits_s.tolist()),
            "crossbar": sum(counted.ports.wait_crossbar_s.tolist()),
        },
        "link_utilisation": _utilisation(system, ran, counted),
        "packet_hops": counted.packet_hops,
    }
    if latencies := latency.summary(counted.write_latency):
        metrics["write_latency_s"] = latencies
    retries = counted.retries
    if retries and (
        scenario.network.switch.head_of_queue_lifetime or scenario.transport.retry_timeout
    ):
        metrics |= {
            "packets_discarded": _discarded(counted),
            "retransmissions": {
                "nak": retries.resent_for_nak,
                "timeout": retries.resent_for_timeout,
            },
            "retransmission_timeouts": retries.timeouts,
            "writes_failed": retries.writes_failed,
        }
    return metrics


def _discarded(counted: RunReport) -> int:
    """Return the number of packets discarded after the head-of-queue lifetime."""
    return sum(counted.ports.discards.tolist())


def _lost(counted: RunReport) -> bool:
    """Return whether a node may wait for a packet that is lost for good."""
    return bool(_discarded(counted) or (counted.retries and counted.retries.writes_failed))


def _warnings(scenario: Scenario, counted: RunReport) -> list[str]:
    """Return warnings about losses and their consequences."""
    warnings = []
    if (discarded := _discarded(counted)) and not scenario.transport.retry_timeout:
        warnings.append(
            f"{discarded} packets were discarded and none is retransmitted: a connection that has "
            "lost a packet delivers nothing more; set transport.retry_timeout"
        )
    if counted.retries and (failed := counted.retries.writes_failed):
        warnings.append(
            f"{failed} writes failed: their connections gave up after "
            f"{scenario.transport.retry_count + 1} timeouts in a row"
        )
    if counted.stalled:
        warnings.append(
            "the event builder has stalled at the end: it waits for packets that are lost"
        )
    return warnings


def _utilisation(system: FabricSystem, ran: Ran, counted: RunReport) -> dict[str, float]:
    """Return the utilisation of links by kind over the whole run, hosts that are no nodes
    included."""
    hosts = len(system.fabric.hosts)
    busy: dict[str, list[float]] = {}
    ports = zip(counted.ports.node.tolist(), counted.ports.bytes.tolist(), strict=True)
    for index, (node, nbytes) in enumerate(ports):
        cable = system.fabric.cables[index // 2]
        share = 8 * nbytes / (cable.rate_bps * ran.end_s)
        kind = "host.up" if node < hosts else "fabric"
        if node >= hosts and min(cable.a.node, cable.b.node) < hosts:
            kind = "host.down"
        busy.setdefault(kind, []).append(share)
    return {kind: sum(shares) / len(shares) for kind, shares in busy.items()}


def _ports(system: FabricSystem, counted: RunReport) -> dict[str, list[Any]]:
    from daqloom.topology.fabric import End

    ports, lanes = counted.ports, counted.lanes
    ends = zip(ports.node.tolist(), ports.port.tolist(), strict=True)
    return {
        "name": [system.fabric.end_name(End(*end)) for end in ends],
        "bytes": ports.bytes.tolist(),
        "wait_credits_s": ports.wait_credits_s.tolist(),
        "wait_crossbar_s": ports.wait_crossbar_s.tolist(),
        "discards": ports.discards.tolist(),
        "lane_bytes": lanes.bytes.tolist(),
        "lane_wait_s": lanes.wait_s.tolist(),
    }


def _stall(system: FabricSystem, circle: list[tuple[int, int]]) -> str:
    from daqloom.topology.fabric import End

    if not circle:
        return "the event builder has stalled: no event is left to simulate; please report this"
    names = " → ".join(system.fabric.end_name(End(*end)) for end in [*circle, circle[0]])
    return (
        "deadlock: each of these outputs waits for a buffer that only the next one can drain: "
        f"{names}; use routes without cycles, or a virtual lane for each direction"
    )
