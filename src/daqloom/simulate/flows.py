"""A run of flows: what it counted as metrics, its timeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom import _engine
from daqloom.simulate.fabric_configure import flows_config
from daqloom.simulate.port_wait import probe_of
from daqloom.timeline import write_messages

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario
    from daqloom.simulate.run import Counted
    from daqloom.topology.system import FabricSystem


class FlowsRun:
    """See `daqloom.simulate.fabric.ProtocolRun`."""

    def __init__(self, scenario: FabricScenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        config, self.sources = flows_config(scenario, system, seed)
        self.engine = _engine.FlowSystem(config)

    def record(self) -> None:
        """Keeps what the timeline needs."""
        self.engine.record_messages()

    def write_timeline(self, path: Path) -> None:
        """Which messages a host had under way when."""
        hosts = [self.system.fabric.hosts[host].name for host in self.system.hosts]
        write_messages(path, self.engine.arrivals(), hosts, list(self.sources))

    def timeline(self) -> dict[str, Any]:
        """None that a figure draws: messages are too many."""
        return {}

    def metrics(self, counted: Counted) -> dict[str, Any]:
        """Of all flows together, and of each."""
        window_s, nodes = counted["window_s"], self.system.nodes
        flows = dict(zip(self.sources, counted["flows"], strict=True))
        waits = self._waits(counted)
        return {
            "throughput_bps": 8 * sum(flow["bytes"] for flow in flows.values()) / window_s,
            "flow_throughput_bps": {
                name: 8 * flow["bytes"] / window_s for name, flow in flows.items()
            },
            "flow_messages": {name: flow["messages"] for name, flow in flows.items()},
            "flow_latency_s": {
                f"{name}.{which}": value
                for name, flow in flows.items()
                for which, value in flow["latency_s"].items()
            },
            "flow_wait_s": waits,
            "inferred_buffer_bytes": self._buffer(waits, flows),
            "processor_share": counted["processor_s"] / (nodes * window_s),
        }

    def _buffer(self, waits: dict[str, float], flows: dict[str, Any]) -> dict[str, int]:
        """What a stream's port tells of the buffer behind it, if the flows are made for that."""
        if (found := probe_of(self.scenario)) is None:
            return {}
        stream, burst, probe = found
        if flows[burst]["messages"] < self.scenario.flows[burst].messages:
            return {}
        if (held := probe.holds(waits[stream])) is None:
            return {}
        least, most = held
        return {"least": least} | ({} if most is None else {"most": most})

    def _waits(self, counted: Counted) -> dict[str, float]:
        """What the ports of each flow's sources waited."""
        hosts = len(self.system.fabric.hosts)
        waited = {
            port["node"]: port["wait_credits_s"] + port["wait_crossbar_s"]
            for port in counted["ports"]
            if port["node"] < hosts
        }
        return {
            name: sum(waited.get(self.system.hosts[node], 0.0) for node in nodes)
            for name, nodes in self.sources.items()
        }

    def warnings(self, counted: Counted) -> list[str]:
        """What a reader of the numbers should know."""
        silent = [
            name
            for name, flow in zip(self.sources, counted["flows"], strict=True)
            if flow["messages"] == 0
        ]
        return [f"no message of flows.{name} arrived after the warm-up" for name in silent]
