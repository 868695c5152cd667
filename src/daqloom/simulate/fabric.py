"""An event builder on an InfiniBand fabric: from a scenario through the engine to the result."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from daqloom.result import Result
from daqloom.simulate.run import Counted, SimulationError, check_books, cost

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario
    from daqloom.topology.system import FabricSystem


class ProtocolRun(Protocol):
    """An event builder in the engine, by whatever protocol; raises ValueError as it is made."""

    engine: Any

    def record(self) -> None:
        """Keeps what the timeline needs, from now on."""

    def write_timeline(self, path: Path) -> None:
        """For Perfetto; raises OutputError where the file cannot be written."""

    def timeline(self) -> dict[str, Any]:
        """The same as series."""

    def metrics(self, counted: Counted) -> dict[str, Any]:
        """Those of the protocol."""

    def warnings(self, counted: Counted) -> list[str]:
        """Sentences that a reader of the metrics should know."""


def simulate_fabric(
    scenario: FabricScenario,
    *,
    seed: int | None = None,
    trace: Path | None = None,
    timeline: bool = False,
    progress: Callable[[float], None] | None = None,
) -> Result:
    """Simulates `scenario` credit by credit for `run.duration` virtual seconds.

    `seed` replaces `run.seed`. `trace` is a timeline for Perfetto: what every node does in which
    phase, which events it collects, or which messages it has under way. `progress` is called with
    the fraction done, 0 to 1, some ten times a second.

    The result carries `series.ports`: of every output the name, bytes sent and seconds it waited
    for credits or the crossbar, over the whole run, packets discarded, and bytes and waiting (for
    either) of each virtual lane; and `series.write_latency` (`lowest_s`, `width_s`, `count`),
    after the warm-up. With `timeline` it carries what figures draw of it, `series.phases` of linear
    shifting and `series.events` of DAQPIPE; see `daqloom.timeline`.

    Raises ScenarioError where fabric, nodes and routes do not fit together, SimulationError for
    what the engine refuses, a deadlock among it. Losses that leave the event builder waiting for
    ever are a warning.
    """
    from daqloom.topology.system import fabric_system

    seed = scenario.run.seed if seed is None else seed
    started_s = time.perf_counter()
    duration_s = scenario.run.duration
    system = fabric_system(scenario)
    _check_paths(scenario, system)
    try:
        run = _protocol_run(scenario, system, seed)
    except ValueError as error:
        raise SimulationError(str(error)) from None
    if trace is not None or timeline:
        run.record()
    cpu_s = run.engine.run(None if progress is None else lambda now_s: progress(now_s / duration_s))
    counted = run.engine.report()
    if counted["stalled"] and ((circle := run.engine.deadlock()) or not _lost(counted)):
        raise SimulationError(_stall(system, circle))
    check_books(run.engine)
    if trace is not None:
        run.write_timeline(trace)
    return Result(
        scenario=scenario.name,
        scenario_hash=scenario.hash(),
        method="simulate",
        seed=seed,
        metrics=run.metrics(counted) | _metrics(scenario, system, counted),
        engine=cost(started_s, cpu_s, duration_s, counted),
        warnings=system.warnings + run.warnings(counted) + _warnings(scenario, counted),
        series={
            "ports": _ports(system, counted),
            "write_latency": counted["write_latency_histogram"],
        }
        | (run.timeline() if timeline else {}),
    )


def _check_paths(scenario: FabricScenario, system: FabricSystem) -> None:
    """Raises ScenarioError where a node cannot reach another; flows look for themselves."""
    from daqloom.topology.load import with_lines
    from daqloom.topology.routes import trace
    from daqloom.topology.routing import IMPORTED
    from daqloom.topology.system import check_paths

    if scenario.nodes.protocol != "flows":
        paths = trace(system.fabric, system.routes)
        if scenario.fabric.shape == "imported" and scenario.fabric.routing in ("", IMPORTED):
            paths = with_lines(scenario.fabric.folder, system.fabric, paths)
        check_paths(scenario.name, paths, system.hosts, system.hosts)


def _protocol_run(scenario: FabricScenario, system: FabricSystem, seed: int) -> ProtocolRun:
    from daqloom.simulate.daqpipe import DaqpipeRun
    from daqloom.simulate.flows import FlowsRun
    from daqloom.simulate.shift import ShiftRun

    kinds: dict[str, type[ShiftRun | DaqpipeRun | FlowsRun]] = {
        "shift": ShiftRun,
        "daqpipe": DaqpipeRun,
        "flows": FlowsRun,
    }
    return kinds[scenario.nodes.protocol](scenario, system, seed)


def _metrics(scenario: FabricScenario, system: FabricSystem, counted: Counted) -> dict[str, Any]:
    """Those of the fabric."""
    metrics: dict[str, Any] = {
        "xmit_wait_s": {
            "credits": sum(port["wait_credits_s"] for port in counted["ports"]),
            "crossbar": sum(port["wait_crossbar_s"] for port in counted["ports"]),
        },
        "link_utilisation": _utilisation(scenario, system, counted),
        "packet_hops": counted["packet_hops"],
    }
    if counted["write_latency_s"]:
        metrics["write_latency_s"] = counted["write_latency_s"]
    if scenario.fabric.head_of_queue_lifetime or scenario.nodes.retry_timeout:
        metrics |= {
            "packets_discarded": _discarded(counted),
            "retransmissions": {
                "nak": counted["resent_for_nak"],
                "timeout": counted["resent_for_timeout"],
            },
            "retransmission_timeouts": counted["retry_timeouts"],
            "writes_failed": counted["writes_failed"],
        }
    return metrics


def _discarded(counted: Counted) -> int:
    """Packets that were first of their queue for too long."""
    return sum(port["discards"] for port in counted["ports"])


def _lost(counted: Counted) -> bool:
    """Whether somebody may wait for what will never come."""
    return bool(_discarded(counted) or counted["writes_failed"])


def _warnings(scenario: FabricScenario, counted: Counted) -> list[str]:
    """What was lost, and what came of it."""
    warnings = []
    if (discarded := _discarded(counted)) and not scenario.nodes.retry_timeout:
        warnings.append(
            f"{discarded} packets were discarded and nothing is sent again: a connection that has "
            "lost a packet delivers nothing more; set nodes.retry_timeout"
        )
    if counted["writes_failed"]:
        warnings.append(
            f"{counted['writes_failed']} writes failed: their connections gave up after "
            f"{scenario.nodes.retry_count + 1} timeouts in a row"
        )
    if counted["stalled"]:
        warnings.append("the event builder stands still in the end: what it waits for is lost")
    return warnings


def _utilisation(
    scenario: FabricScenario, system: FabricSystem, counted: Counted
) -> dict[str, float]:
    """Of all links of one kind together, over the whole run; hosts that are no nodes count."""
    hosts = len(system.fabric.hosts)
    busy: dict[str, list[float]] = {}
    for index, port in enumerate(counted["ports"]):
        cable = system.fabric.cables[index // 2]
        share = 8 * port["bytes"] / (cable.rate_bps * scenario.run.duration)
        kind = "host.up" if port["node"] < hosts else "fabric"
        if port["node"] >= hosts and min(cable.a.node, cable.b.node) < hosts:
            kind = "host.down"
        busy.setdefault(kind, []).append(share)
    return {kind: sum(shares) / len(shares) for kind, shares in busy.items()}


def _ports(system: FabricSystem, counted: Counted) -> dict[str, list[Any]]:
    from daqloom.topology.fabric import End

    ports = counted["ports"]
    names = [system.fabric.end_name(End(port["node"], port["port"])) for port in ports]
    keys = (
        "bytes",
        "wait_credits_s",
        "wait_crossbar_s",
        "discards",
        "lane_bytes",
        "lane_wait_s",
    )
    return {"name": names} | {key: [port[key] for port in ports] for key in keys}


def _stall(system: FabricSystem, circle: list[tuple[int, int]]) -> str:
    from daqloom.topology.fabric import End

    if not circle:
        return "the event builder stands still: nothing can happen any more; please report this"
    names = " → ".join(system.fabric.end_name(End(*end)) for end in [*circle, circle[0]])
    return (
        "deadlock: each of these outputs waits for a buffer that only the next one can empty: "
        f"{names}; route without circles, or give each direction a virtual lane of its own"
    )
