"""Simulated run of flows without event building: metrics and timeline."""

import math
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from daqloom import _engine
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.deployment.flow_ends import flow_sources
from daqloom.results.timeline import write_messages
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate.port_wait import probe_of
from daqloom.simulate.system_config import no_frames, system_config


class FlowsRun:
    """Simulated run of flows with the interface of `daqloom.simulate.run.ProtocolRun`."""

    def __init__(self, scenario: Scenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        self.end_s = scenario.run.duration
        self._trace: Path | None = None
        self.sources = flow_sources(scenario, system)
        self.engine = _engine.FlowSystem(
            system_config(_engine.SystemConfig, scenario, system, seed)
        )

    @cached_property
    def report(self) -> _engine.FlowsReport:
        """Report of the engine at the end of the run."""
        return self.engine.report()

    def record(self, captures: Mapping[str, Path], trace: Path | None) -> None:
        """Record messages for the timeline. Raises ValueError if frames are to be captured."""
        no_frames(captures)
        self._trace = trace
        self.engine.record_messages()

    def finish_recording(self) -> None:
        """Write the timeline of messages that each host had in flight."""
        if self._trace is None:
            return
        hosts = [self.system.fabric.hosts[host].name for host in self.system.hosts]
        arrived = self.engine.arrivals()
        columns = (arrived.posted_s, arrived.arrived_s, arrived.source, arrived.flow)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        write_messages(self._trace, list(rows), hosts, list(self.sources))

    def series(self, *, timeline: bool) -> dict[str, Any]:
        """Return no series, because the messages are too many to draw."""
        return {}

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of all flows together; `flow_metrics` has those of each flow."""
        report = self.report
        window_s, nodes = report.window_s, self.system.nodes
        flows = dict(zip(self.sources, report.flows, strict=True))
        metrics: dict[str, Any] = {
            "throughput_bps": 8 * sum(flow.bytes for flow in flows.values()) / window_s
        }
        if self.scenario.network.technology == "infiniband":
            waits = metrics["flow_wait_s"] = self._waits(report)
            metrics["inferred_buffer_bytes"] = self._buffer(waits, flows)
        return metrics | {"processor_share": report.processor_s / (nodes * window_s)}

    def _buffer(
        self, waits: dict[str, float], flows: dict[str, _engine.FlowCount]
    ) -> dict[str, int]:
        """Return bounds of the buffer behind a stream's port, if the flows form a probe."""
        if (found := probe_of(self.scenario)) is None:
            return {}
        stream, burst, probe = found
        if flows[burst].messages < self.scenario.flows[burst].messages:
            return {}
        bounds = zip(("least", "most"), probe.bounds(waits[stream]), strict=True)
        return {name: bound for name, bound in bounds if bound is not None}

    def _waits(self, report: _engine.RunReport) -> dict[str, float]:
        """Return, for each flow, the total waiting time of its sources' ports (s)."""
        hosts, ports = len(self.system.fabric.hosts), report.ports
        waits_s = (ports.wait_credits_s + ports.wait_crossbar_s).tolist()
        at_nodes = zip(ports.node.tolist(), waits_s, strict=True)
        waited = {node: wait_s for node, wait_s in at_nodes if node < hosts}
        return {
            name: math.fsum(waited.get(self.system.hosts[node], 0.0) for node in nodes)
            for name, nodes in self.sources.items()
        }

    def warnings(self) -> list[str]:
        """Return no warnings, because `flow_warnings` covers flows."""
        return []
