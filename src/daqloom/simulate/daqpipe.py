"""A run of DAQPIPE: what it counted as metrics, its timeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom import _engine
from daqloom.simulate.fabric_configure import daqpipe_config
from daqloom.timeline import event_columns, write_events

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario
    from daqloom.simulate.run import Counted
    from daqloom.topology.system import FabricSystem


class DaqpipeRun:
    """See `daqloom.simulate.fabric.ProtocolRun`."""

    def __init__(self, scenario: FabricScenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        config = daqpipe_config(scenario, system, seed)
        self.builders = config.builders
        self.engine = _engine.DaqpipeSystem(config)

    def record(self) -> None:
        """Keeps what the timeline needs."""
        self.engine.record_events()

    def write_timeline(self, path: Path) -> None:
        """Which event a builder unit collected when."""
        write_events(path, self.engine.events_built(), self._names())

    def timeline(self) -> dict[str, Any]:
        """The series `events`."""
        built, under_way = self.engine.events_built(), self.engine.events_under_way()
        end_s = self.scenario.run.duration
        return {"events": event_columns(built, under_way, end_s, self._names())}

    def _names(self) -> list[str]:
        return [self.system.fabric.hosts[host].name for host in self.builders]

    def metrics(self, counted: Counted) -> dict[str, Any]:
        """Of the protocol."""
        window_s, nodes = counted["window_s"], self.system.nodes
        readouts = self.scenario.readouts(nodes)
        packing = self.scenario.fragments.packing
        metrics: dict[str, Any] = {
            "event_rate_hz": packing * counted["fragments_written"] / readouts / window_s,
            "throughput_bps": 8 * counted["bytes_written"] / window_s,
            "node_throughput_bps": 8 * counted["bytes_written"] / window_s / readouts,
            "events_built": packing * counted["events_built"],
            "events_incomplete": packing * counted["events_under_way"],
            "processor_share": counted["processor_s"] / (nodes * window_s),
            "control_messages": counted["control_messages"],
        }
        if counted["latency_s"]:
            metrics["collection_latency_s"] = counted["latency_s"]
        return metrics

    def warnings(self, counted: Counted) -> list[str]:
        """What a reader of the numbers should know."""
        if counted["events_built"] == 0:
            return ["no event was built after the warm-up; lengthen run.duration"]
        return []
