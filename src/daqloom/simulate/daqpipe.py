"""Simulation of DAQPIPE: configuration of the engine, metrics and timeline of a run."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from daqloom import _engine
from daqloom.configuration.rules import processing_delays
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.results.timeline import Collected, event_columns, write_events
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate import latency
from daqloom.simulate.fabric_rates import rates, too_short
from daqloom.simulate.fault_course import incomplete
from daqloom.simulate.system_config import interval_s, no_frames, system_config
from daqloom.topology.schedule.slots import hosts_of


def daqpipe_config(scenario: Scenario, system: FabricSystem, seed: int) -> _engine.DaqpipeConfig:
    """Return the configuration of a simulated DAQPIPE; the streams of a readout unit form one
    fragment."""
    streams, sizes = scenario.readout.streams, system.mfp_bytes
    return system_config(
        _engine.DaqpipeConfig,
        scenario,
        system,
        seed,
        readouts=hosts_of(system.readouts),
        builders=hosts_of(system.builders),
        fragment_bytes=[sum(sizes[i : i + streams]) for i in range(0, len(sizes), streams)],
        fragment_sizes=scenario.event.fragment_sizes,
        event_interval_s=interval_s(scenario.event),
        processing=processing_delays(scenario),
    )


class DaqpipeRun:
    """Simulated run of DAQPIPE with the interface of `daqloom.simulate.run.ProtocolRun`."""

    def __init__(self, scenario: Scenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        self.end_s = scenario.run.duration
        self._trace: Path | None = None
        config = daqpipe_config(scenario, system, seed)
        self.builders = config.builders
        self._built_on = config.builders + hosts_of(system.spares)
        self.engine = _engine.DaqpipeSystem(config)

    @cached_property
    def report(self) -> _engine.DaqpipeReport:
        """Report of the engine at the end of the run."""
        return self.engine.report()

    def record(self, captures: Mapping[str, Path], trace: Path | None) -> None:
        """Record events for the timeline. Raises ValueError if frames are to be captured."""
        no_frames(captures)
        self._trace = trace
        self.engine.record_events()

    def finish_recording(self) -> None:
        """Write the timeline of the events that builder units collected."""
        if self._trace is not None:
            write_events(self._trace, self._built(), self._names())

    def series(self, *, timeline: bool) -> dict[str, Any]:
        """Return the series `events` if the timeline is requested; else no series."""
        if not timeline:
            return {}
        events = self.engine.events_under_way()
        columns = (events.assigned_s, events.builder, events.event)
        under_way = list(zip(*(column.tolist() for column in columns), strict=True))
        return {"events": event_columns(self._built(), under_way, self.end_s, self._names())}

    def _built(self) -> list[Collected]:
        events = self.engine.events_built()
        columns = (events.assigned_s, events.built_s, events.builder, events.event)
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def _names(self) -> list[str]:
        return [self.system.fabric.hosts[host].name for host in self._built_on]

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of event building by DAQPIPE."""
        report = self.report
        window_s, nodes = report.window_s, self.system.nodes
        readouts = self.scenario.readouts(nodes)
        packing = self.scenario.event.packing
        metrics: dict[str, Any] = {
            **rates(
                window_s,
                events_delivered=packing * (report.events_built + report.events_incomplete),
                bytes_built=report.bytes_built,
                events_written=packing * report.fragments_written / readouts,
                bytes_written=report.bytes_written,
                readouts=readouts,
            ),
            "events_built": packing * report.events_built,
            **incomplete(self.scenario, packing * report.events_incomplete),
            "events_in_flight": packing * report.events_under_way,
            "processor_share": report.processor_s / (nodes * window_s),
            "control_messages": report.control_messages,
        }
        if latencies := latency.summary(self.engine.latency):
            metrics["collection_latency_s"] = latencies
        return metrics

    def warnings(self) -> list[str]:
        """Return warnings about numbers that are not meaningful."""
        report = self.report
        if report.stalled:
            return []
        if report.fragments_written == 0:
            return ["no fragment was written after the warm-up; lengthen run.duration"]
        packing = self.scenario.event.packing
        turn = self.scenario.building.credits * len(self.builders)
        metrics = self.metrics()
        rounds = metrics["written_event_rate_hz"] * report.window_s / packing / turn
        return too_short(
            metrics,
            window_s=report.window_s,
            rounds=rounds,
            round_s=report.window_s / rounds,
            phases=rounds * turn,
            warmup_s=self.scenario.run.warmup,
        )
