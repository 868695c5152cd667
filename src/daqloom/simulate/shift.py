"""Simulated run of linear shift: its configuration, metrics and timeline."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from daqloom import _engine
from daqloom.configuration.rules import processing_delays
from daqloom.configuration.settings import settings
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.results.timeline import (
    Span,
    barrier_waits,
    partner_in_schedule,
    phase_columns,
    spans,
    write_phases,
)
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate.fabric_rates import rates, too_short
from daqloom.simulate.fault_course import incomplete
from daqloom.simulate.system_config import interval_s, no_frames, system_config
from daqloom.topology.schedule.slots import hosts_of


def shift_config(scenario: Scenario, system: FabricSystem, seed: int) -> _engine.ShiftConfig:
    """Return the configuration of a simulated event builder with linear shift; names of attributes
    include units."""
    card = scenario.readout.card
    return system_config(
        _engine.ShiftConfig,
        scenario,
        system,
        seed,
        slots=system.readouts.tolist(),
        builder_slots=system.builders.tolist(),
        phase_jitter=scenario.building.jitter,
        mfp_bytes=system.mfp_bytes,
        streams=scenario.readout.streams,
        fragment_sizes=scenario.event.fragment_sizes,
        mfp_interval_s=interval_s(scenario.event),
        stream_buffer=scenario.readout.buffer,
        output_buffer=scenario.builders.buffer,
        processing=processing_delays(scenario),
        card_buffer=card.buffer,
        barrier_level_latency_s=scenario.building.barrier_level_latency,
        barrier_levels=system.barrier_levels if scenario.building.barrier == "network" else [],
        card_acknowledge=settings(_engine.SpikyDelay, card, usual=card.acknowledge),
    )


class ShiftRun:
    """Simulated run of linear shift with the interface of `daqloom.simulate.run.ProtocolRun`."""

    def __init__(self, scenario: Scenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        self.end_s = scenario.run.duration
        self._trace: Path | None = None
        self.engine = _engine.ShiftSystem(shift_config(scenario, system, seed))

    @cached_property
    def report(self) -> _engine.ShiftReport:
        """Report of the engine at the end of the run."""
        return self.engine.report()

    def record(self, captures: Mapping[str, Path], trace: Path | None) -> None:
        """Record stages for the timeline. Raises ValueError if frames are to be captured."""
        no_frames(captures)
        self._trace = trace
        self.engine.record_stages()

    def finish_recording(self) -> None:
        """Write the timeline with the stages of each node."""
        if self._trace is not None:
            write_phases(self._trace, self._spans(), self.system)

    def series(self, *, timeline: bool) -> dict[str, Any]:
        """Return the series `phases` if the timeline is requested; else no series."""
        return {} if not timeline else {"phases": phase_columns(self._spans(), self.system)}

    def _spans(self) -> list[Span]:
        nodes = range(len(hosts_of(self.system.readouts)))
        stages = self.engine.stages()
        what = [_engine.ShiftStage(stage).name for stage in stages.stage.tolist()]
        columns = stages.begin_s.tolist(), stages.step.tolist(), stages.unit.tolist()
        rows = list(zip(*columns, what, strict=True))
        waits = barrier_waits(self.scenario.building, self.system.barrier_groups, nodes)
        return spans(rows, self.end_s, nodes, partner_in_schedule(self.system), waits)

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the protocol."""
        report = self.report
        window_s, nodes = report.window_s, self.system.nodes
        readouts, packing = self.scenario.readouts(nodes), self.scenario.event.packing
        spent_s = readouts * window_s
        written = report.mfps_written / (readouts * self.scenario.readout.streams)
        metrics: dict[str, Any] = {}
        if not self._ends_before_a_round:
            metrics |= rates(
                window_s,
                events_delivered=packing * (report.meps_built + report.meps_incomplete),
                bytes_built=report.bytes_built,
                events_written=packing * written,
                bytes_written=report.bytes_written,
                readouts=readouts,
            )
        metrics |= {
            "events_built": packing * report.meps_built,
            **incomplete(self.scenario, packing * report.meps_incomplete),
            "events_discarded": packing * report.meps_discarded,
            "phases": report.steps,
            "dummy_share": 1 - self._builders / len(self.system.builders),
            "barrier_share": report.in_barrier_s / spent_s,
            "idle_share": report.idle_s / spent_s,
            **self._pace_metrics(report, spent_s),
            "processor_share": report.processor_s / (nodes * window_s),
            "control_messages": report.control_messages,
            "source_buffer_full": report.mfps_blocked,
        }
        if report.steps and not self._ends_before_a_round:
            metrics["phase_s"] = spent_s / report.steps
        if report.barriers:
            barriers = report.barriers / self._groups
            entries = barriers * readouts
            metrics["barrier_rate_hz"] = barriers / window_s
            metrics["barrier_s"] = {
                "waiting": report.waiting_for_slowest_s / entries,
                "releasing": report.releasing_s / entries,
            }
        building = self.scenario.building
        if building.synchronise == "adaptive" and report.steps:
            barriers = report.steps / building.phases_per_barrier
            metrics["out_of_step_share"] = report.barriers_passed / barriers
        if self.scenario.readout.card.buffer:
            metrics["trigger_stopped_share"] = {
                "acknowledge": report.stopped_for_acknowledge_s / window_s,
                "memory": report.stopped_for_memory_s / window_s,
            }
        if self.scenario.building.change == "window":
            metrics["writes_overran"] = report.writes_overran
        return metrics

    def _pace_metrics(self, report: _engine.ShiftReport, spent_s: float) -> dict[str, Any]:
        """Return the metrics of builder-paced linear shift; empty without builder pacing."""
        if self.scenario.building.pace != "builder":
            return {}
        return {
            "go_wait_share": report.asking_s / spent_s,
            "write_requests": report.requests,
            "ahead_share": report.answered_ahead / max(1, report.requests),
        }

    @property
    def _groups(self) -> int:
        """Number of barrier groups; 1 if all readout units share a barrier."""
        return len(set(self.system.barrier_groups)) or 1

    @property
    def _builders(self) -> int:
        """Number of builder units."""
        return len(hosts_of(self.system.builders))

    @property
    def _round_s(self) -> float:
        """Time in which sources fill the MFPs of a round (s); 0: as fast as they are consumed."""
        event, meps = self.scenario.event, self.scenario.building.meps_per_phase
        return self._builders * meps * event.packing / event.rate if event.rate else 0.0

    @property
    def _ends_before_a_round(self) -> bool:
        """Return whether the run is shorter than one round at `event.rate`."""
        return self.end_s < self._round_s

    def warnings(self) -> list[str]:
        """Return warnings about numbers that are not meaningful."""
        report = self.report
        if self._ends_before_a_round:
            return [
                "at event.rate, the MFPs of a whole round, one for each builder unit, are "
                f"ready only after {self._round_s:.3g} s, which is beyond run.duration: no phase "
                "runs at that rate; lengthen run.duration, or find the rate that the network "
                'sustains with event.rate = "0 Hz"'
            ]
        if report.steps == 0:
            return [
                "no phase ended after the warm-up; lengthen run.duration or reduce the size of MFPs"
            ]
        if report.skipped_steps:
            return [f"{report.skipped_steps} time windows were skipped: nodes woke up too late"]
        if report.stalled:
            return []
        metrics = self.metrics()
        phases = report.steps / len(hosts_of(self.system.readouts))
        slots = len(self.system.builders)
        return too_short(
            metrics,
            window_s=report.window_s,
            rounds=phases / slots,
            round_s=max(slots * metrics["phase_s"], self._round_s),
            phases=phases,
            warmup_s=self.scenario.run.warmup,
        )
