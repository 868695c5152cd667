"""Simulation of pull building: configuration of the engine, metrics and timeline of a run."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from daqloom import _engine
from daqloom.deployment.fabric_system import FabricSystem
from daqloom.scenario.quantities import TIME
from daqloom.scenario.schema.models import Scenario
from daqloom.simulate import latency
from daqloom.simulate.fault_course import incomplete
from daqloom.simulate.slices import slices
from daqloom.simulate.system_config import system_config

FEW_EVENTS = 20
ENOUGH_EVENTS = 100


def pull_config(scenario: Scenario, system: FabricSystem, seed: int) -> _engine.PullConfig:
    """Return the configuration of simulated pull building; names of attributes include units."""
    usual_s = scenario.hosts.message_cost
    return system_config(
        _engine.PullConfig,
        scenario,
        system,
        seed,
        readouts=system.readouts.tolist(),
        builders=system.builders.tolist(),
        storages=system.storages,
        readout_cost_per_message_s=scenario.readout.message_cost or usual_s,
        builder_cost_per_message_s=scenario.builders.message_cost or usual_s,
        request_size=scenario.building.request_size,
        manager_is_networked=scenario.building.event_manager == "networked",
    )


class PullRun:
    """Simulated run of pull building with the interface of `daqloom.simulate.run.ProtocolRun`."""

    def __init__(self, scenario: Scenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        self.end_s = scenario.run.duration
        self.engine = _engine.PullSystem(pull_config(scenario, system, seed))

    @cached_property
    def report(self) -> _engine.PullReport:
        """Report of the engine at the end of the run."""
        return self.engine.report()

    def record(self, captures: Mapping[str, Path], trace: Path | None) -> None:
        """Record the timeline, and frames by the name of their link. Raises ValueError for an
        unknown link, and OSError for a file that cannot be written."""
        for file in [*captures.values(), *([trace] if trace else [])]:
            with suppress(OSError):  # the engine reports a file that cannot be written
                file.parent.mkdir(parents=True, exist_ok=True)
        frames = {link: str(path) for link, path in captures.items()}
        self.engine.record(frames, "" if trace is None else str(trace))

    def finish_recording(self) -> None:
        """Complete the recorded files. Raises OSError."""
        self.engine.finish_recording()

    def series(self, *, timeline: bool) -> dict[str, Any]:
        """Return the latencies; in racks, also the occupancy of the fullest top-of-rack switch; in
        racks and on a single switch, the course of metrics."""
        series: dict[str, Any] = {"collection_latency": latency.columns(self.engine.latency)}
        if (tor := self._tor) is not None:
            occupancy = self.engine.occupancy(tor)
            columns = {"time_s": occupancy.time_s, "max_bytes": occupancy.max_bytes}
            series["tor_occupancy"] = {name: each.tolist() for name, each in columns.items()}
        shown = tor if tor is not None or len(self.system.levels) > 1 else 0
        if shown is not None and self.end_s == self.scenario.run.duration:
            level = self.system.levels[shown]
            series["course"] = slices(self.engine, self.report, shown, level)
        return series

    @property
    def _tor(self) -> int | None:
        """Number of the top-of-rack switch with the highest peak; None without such switches."""
        peaks = self.report.switches.peak_bytes.tolist()
        tors = [number for number, level in enumerate(self.system.levels) if level == "tor"]
        return max(tors, key=lambda tor: peaks[tor], default=None)

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the protocol."""
        report = self.report
        metrics: dict[str, Any] = {
            "event_rate_hz": self._deliveries / report.window_s,
            "throughput_bps": 8 * report.bytes_built / report.window_s,
            "events_built": report.events_built,
            **incomplete(self.scenario, report.events_incomplete),
            "events_in_flight": report.events_in_flight,
            "events_waiting": report.events_waiting,
        }
        if latencies := latency.summary(self.engine.latency):
            metrics["collection_latency_s"] = latencies
        return metrics | (self._storage() if self.scenario.storage.units else {})

    def _storage(self) -> dict[str, Any]:
        report = self.report
        metrics: dict[str, Any] = {
            "events_accepted": report.events_accepted,
            "events_stored": report.events_stored,
            "events_unstored": report.events_unstored,
            "events_storing": report.events_storing,
            "stored_throughput_bps": 8 * report.bytes_stored / report.window_s,
        }
        if latencies := latency.summary(report.storage_latency):
            metrics["storage_latency_s"] = latencies
        return metrics

    @property
    def _deliveries(self) -> int:
        return self.report.events_built + self.report.events_incomplete

    def warnings(self) -> list[str]:
        """Return warnings about numbers that are not meaningful."""
        report, warmup_s = self.report, self.scenario.run.warmup
        warnings = []
        arrived, built = report.events_arrived, self._deliveries
        if built == 0:
            warnings.append(
                "no event was built after the warm-up; lengthen run.duration or look at the rates"
            )
        elif built < FEW_EVENTS:
            window_s = report.window_s
            enough_s = warmup_s + ENOUGH_EVENTS / built * window_s
            warnings.append(
                f"only {built} events were built in the {TIME.format(window_s)} counted, too few "
                f"for a rate or for percentiles of latency; "
                f'run.duration = "{TIME.format(float(f"{enough_s:.2g}"))}" counts '
                f"about {ENOUGH_EVENTS}"
            )
        if report.events_waiting and built < 0.98 * arrived:
            warnings.append(
                f"the system is overloaded: {arrived} events arrived after the warm-up and {built} "
                f"were built; {report.events_waiting} wait for a builder at the end"
            )
        return warnings
