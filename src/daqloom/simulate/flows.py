"""A simulated run of flows: its metrics and its timeline."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom import _engine
from daqloom.simulate import latency
from daqloom.simulate.fabric_configure import flows_config
from daqloom.simulate.port_wait import probe_of
from daqloom.timeline import write_messages

if TYPE_CHECKING:
    from daqloom.scenario.models import Scenario
    from daqloom.topology.system import FabricSystem


class FlowsRun:
    """See `daqloom.simulate.fabric.ProtocolRun`."""

    def __init__(self, scenario: Scenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        self.end_s = scenario.run.duration
        config, self.sources = flows_config(scenario, system, seed)
        self.engine = _engine.FlowSystem(config)

    @cached_property
    def counted(self) -> _engine.FlowsReport:
        """The report at the end of the run."""
        return self.engine.report()

    def record(self) -> None:
        """Record what the timeline needs."""
        self.engine.record_messages()

    def write_timeline(self, path: Path) -> None:
        """Write which messages each host had in flight when."""
        hosts = [self.system.fabric.hosts[host].name for host in self.system.hosts]
        arrived = self.engine.arrivals()
        columns = (arrived.posted_s, arrived.arrived_s, arrived.source, arrived.flow)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        write_messages(path, list(rows), hosts, list(self.sources))

    def timeline(self) -> dict[str, Any]:
        """Return no series: there are too many messages to draw."""
        return {}

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of all flows together, and of each."""
        counted = self.counted
        window_s, nodes = counted.window_s, self.system.nodes
        flows = dict(zip(self.sources, counted.flows, strict=True))
        latencies = dict(zip(self.sources, self.engine.latencies(), strict=True))
        waits = self._waits(counted)
        return {
            "throughput_bps": 8 * sum(flow.bytes for flow in flows.values()) / window_s,
            "flow_throughput_bps": {
                name: 8 * flow.bytes / window_s for name, flow in flows.items()
            },
            "flow_messages": {name: flow.messages for name, flow in flows.items()},
            "flow_latency_s": {
                f"{name}.{which}": value
                for name, durations in latencies.items()
                for which, value in latency.summary(durations).items()
            },
            "flow_wait_s": waits,
            "inferred_buffer_bytes": self._buffer(waits, flows),
            "processor_share": counted.processor_s / (nodes * window_s),
        }

    def _buffer(
        self, waits: dict[str, float], flows: dict[str, _engine.FlowCount]
    ) -> dict[str, int]:
        """Return the size of the buffer behind a stream's port, if the flows are set up to find
        it."""
        if (found := probe_of(self.scenario)) is None:
            return {}
        stream, burst, probe = found
        if flows[burst].messages < self.scenario.flows[burst].messages:
            return {}
        if (held := probe.holds(waits[stream])) is None:
            return {}
        least, most = held
        return {"least": least} | ({} if most is None else {"most": most})

    def _waits(self, counted: _engine.RunReport) -> dict[str, float]:
        """Return the waiting time of the ports of each flow's sources."""
        hosts, ports = len(self.system.fabric.hosts), counted.ports
        waits_s = (ports.wait_credits_s + ports.wait_crossbar_s).tolist()
        waited = {
            node: wait_s
            for node, wait_s in zip(ports.node.tolist(), waits_s, strict=True)
            if node < hosts
        }
        return {
            name: sum(waited.get(self.system.hosts[node], 0.0) for node in nodes)
            for name, nodes in self.sources.items()
        }

    def warnings(self) -> list[str]:
        """Return warnings about the numbers."""
        silent = [
            name
            for name, flow in zip(self.sources, self.counted.flows, strict=True)
            if flow.messages == 0
        ]
        return [f"no message of flows.{name} arrived after the warm-up" for name in silent]
