"""A simulated run of DAQPIPE: its metrics and its timeline."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom import _engine
from daqloom.simulate import latency
from daqloom.simulate.fabric_configure import daqpipe_config
from daqloom.simulate.fabric_rates import rates, too_short
from daqloom.timeline import Collected, event_columns, write_events

if TYPE_CHECKING:
    from daqloom.scenario.models import Scenario
    from daqloom.topology.system import FabricSystem


class DaqpipeRun:
    """See `daqloom.simulate.fabric.ProtocolRun`."""

    def __init__(self, scenario: Scenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        self.end_s = scenario.run.duration
        config = daqpipe_config(scenario, system, seed)
        self.builders = config.builders
        self.engine = _engine.DaqpipeSystem(config)

    @cached_property
    def counted(self) -> _engine.DaqpipeReport:
        """The report at the end of the run."""
        return self.engine.report()

    def record(self) -> None:
        """Record what the timeline needs."""
        self.engine.record_events()

    def write_timeline(self, path: Path) -> None:
        """Write which event each builder unit collected when."""
        write_events(path, self._built(), self._names())

    def timeline(self) -> dict[str, Any]:
        """Return the series `events`."""
        events = self.engine.events_under_way()
        columns = (events.assigned_s.tolist(), events.builder.tolist(), events.event.tolist())
        under_way = list(zip(*columns, strict=True))
        return {"events": event_columns(self._built(), under_way, self.end_s, self._names())}

    def _built(self) -> list[Collected]:
        events = self.engine.events_built()
        columns = events.assigned_s.tolist(), events.built_s.tolist()
        return list(zip(*columns, events.builder.tolist(), events.event.tolist(), strict=True))

    def _names(self) -> list[str]:
        return [self.system.fabric.hosts[host].name for host in self.builders]

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the protocol."""
        counted = self.counted
        window_s, nodes = counted.window_s, self.system.nodes
        readouts = self.scenario.readouts(nodes)
        packing = self.scenario.event.packing
        metrics: dict[str, Any] = {
            **rates(
                window_s,
                events_built=packing * counted.events_built,
                bytes_built=counted.bytes_built,
                events_written=packing * counted.fragments_written / readouts,
                bytes_written=counted.bytes_written,
                readouts=readouts,
            ),
            "events_built": packing * counted.events_built,
            "events_in_flight": packing * counted.events_under_way,
            "processor_share": counted.processor_s / (nodes * window_s),
            "control_messages": counted.control_messages,
        }
        if latencies := latency.summary(self.engine.latency):
            metrics["collection_latency_s"] = latencies
        return metrics

    def warnings(self) -> list[str]:
        """Return warnings about the numbers."""
        counted = self.counted
        if counted.stalled:
            return []
        if counted.fragments_written == 0:
            return ["no fragment was written after the warm-up; lengthen run.duration"]
        packing = self.scenario.event.packing
        turn = self.scenario.building.credits * len(self.builders)
        metrics = self.metrics()
        rounds = metrics["written_event_rate_hz"] * counted.window_s / packing / turn
        return too_short(
            metrics,
            window_s=counted.window_s,
            rounds=rounds,
            round_s=counted.window_s / rounds,
            phases=rounds * turn,
            warmup_s=self.scenario.run.warmup,
        )
