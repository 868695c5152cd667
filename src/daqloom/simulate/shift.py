"""A run of linear shifting: what it counted as metrics, its timeline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom import _engine
from daqloom.simulate.fabric_configure import shift_config
from daqloom.timeline import Span, phase_columns, scheduled, spans, write_phases
from daqloom.topology.schedule import hosts_of

if TYPE_CHECKING:
    from daqloom.scenario.fabric import FabricScenario
    from daqloom.simulate.run import Counted
    from daqloom.topology.system import FabricSystem


class ShiftRun:
    """See `daqloom.simulate.fabric.ProtocolRun`."""

    def __init__(self, scenario: FabricScenario, system: FabricSystem, seed: int) -> None:
        self.scenario, self.system = scenario, system
        self.engine = _engine.ShiftSystem(shift_config(scenario, system, seed))

    def record(self) -> None:
        """Keeps what the timeline needs."""
        self.engine.record_stages()

    def write_timeline(self, path: Path) -> None:
        """What every node does in which phase."""
        write_phases(path, self._spans(), self.system)

    def timeline(self) -> dict[str, Any]:
        """The series `phases`."""
        return {"phases": phase_columns(self._spans(), self.system)}

    def _spans(self) -> list[Span]:
        nodes = range(len(hosts_of(self.system.readouts)))
        end_s = self.scenario.run.duration
        return spans(self.engine.stages(), end_s, nodes, scheduled(self.system))

    def metrics(self, counted: Counted) -> dict[str, Any]:
        """Of the protocol."""
        window_s, nodes = counted["window_s"], self.system.nodes
        readouts, packing = self.scenario.readouts(nodes), self.scenario.fragments.packing
        spent_s = readouts * window_s
        written = counted["mfps_written"] / (readouts * self.scenario.nodes.streams)
        metrics: dict[str, Any] = {}
        if not self._ends_before_a_round:
            metrics |= {
                "event_rate_hz": packing * written / window_s,
                "throughput_bps": 8 * counted["bytes_written"] / window_s,
                "node_throughput_bps": 8 * counted["bytes_written"] / window_s / readouts,
            }
        metrics |= {
            "events_built": packing * counted["meps_built"],
            "events_discarded": packing * counted["meps_discarded"],
            "phases": counted["steps"],
            "dummy_share": 1 - self._builders / len(self.system.builders),
            "barrier_share": counted["in_barrier_s"] / spent_s,
            "idle_share": counted["idle_s"] / spent_s,
            "processor_share": counted["processor_s"] / (nodes * window_s),
            "control_messages": counted["control_messages"],
            "source_buffer_full": counted["mfps_blocked"],
        }
        if counted["steps"] and not self._ends_before_a_round:
            metrics["phase_s"] = spent_s / counted["steps"]
        if counted["barriers"]:
            entries = counted["barriers"] * readouts
            metrics["barrier_rate_hz"] = counted["barriers"] / window_s
            metrics["barrier_s"] = {
                "waiting": counted["waiting_for_slowest_s"] / entries,
                "releasing": counted["releasing_s"] / entries,
            }
        if self.scenario.nodes.card.buffer:
            metrics["trigger_stopped_share"] = {
                "acknowledge": counted["stopped_for_acknowledge_s"] / window_s,
                "memory": counted["stopped_for_memory_s"] / window_s,
            }
        if self.scenario.shift.change == "window":
            metrics["writes_overran"] = counted["writes_overran"]
        return metrics

    @property
    def _builders(self) -> int:
        """Builder units."""
        return len(hosts_of(self.system.builders))

    @property
    def _round_s(self) -> float:
        """In which the sources fill the MFPs of a round; for a rate above 0."""
        fragments, meps = self.scenario.fragments, self.scenario.shift.meps_per_phase
        return self._builders * meps * fragments.packing / fragments.rate

    @property
    def _ends_before_a_round(self) -> bool:
        """Whether the run is too short for a rate at `fragments.rate`."""
        return self.scenario.fragments.rate > 0 and self.scenario.run.duration < self._round_s

    def warnings(self, counted: Counted) -> list[str]:
        """What a reader of the numbers should know."""
        if self._ends_before_a_round:
            return [
                "at fragments.rate the MFPs of a whole round, for each builder unit, are there "
                f"after {self._round_s:.3g} s only, and run.duration ends before: no phase is "
                'measured at that rate; lengthen it, or see with fragments.rate = "0 Hz" what rate '
                "the network bears"
            ]
        if counted["steps"] == 0:
            return ["no phase ended after the warm-up; lengthen run.duration or make MFPs smaller"]
        if counted["skipped_steps"]:
            return [f"{counted['skipped_steps']} windows were skipped: nodes woke up too late"]
        return []
