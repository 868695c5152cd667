"""An event-building system with methods analyse, simulate and measure; see `daqloom.load`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daqloom.base import lazy, notebook
from daqloom.deployment.scenarios import override
from daqloom.scenario.file.show import template, to_toml
from daqloom.scenario.schema.models import Scenario
from daqloom.scenario.schema.parts import Parts
from daqloom.study.methods import methods

if TYPE_CHECKING:
    from daqloom.control.run_log import RunEvent
    from daqloom.measure.run import Progress
    from daqloom.results.result import Result
    from daqloom.study.methods.all_methods import Method, MethodResults
    from daqloom.study.methods.same_events import Comparison

with lazy.imports():
    from daqloom.study.methods import all_methods, same_events

COMPARED_S = 0.02
"""Default simulated time over which formula and simulation of a rack are compared (s)."""


@dataclass(frozen=True, repr=False)
class System:
    """An event-building system, to be analysed, simulated, measured and compared. `scenario` is its
    validated description: every key with its value in SI units."""

    scenario: Scenario

    @property
    def name(self) -> str:
        """Short name in results; by default the name of the scenario file."""
        return self.scenario.name

    def show(self) -> str:
        """Return the scenario as TOML with all defaults, after comments on assumed values. Defaults
        that depend on other keys are comments."""
        return template(self.scenario)

    def with_overrides(self, overrides: Iterable[str] | Mapping[str, Any]) -> System:
        """Return the same system with some keys changed. `overrides` are `["event.size=2 MB"]` or
        `{"event.size": "2 MB"}`. Raises ScenarioError."""
        return System(override(self.scenario, overrides))

    def analyse(self) -> Result:
        """Evaluate the closed forms. Raises ScenarioError if none applies."""
        return methods.analyse(self.scenario)

    def simulate(
        self,
        *,
        seed: int | None = None,
        pcap: Mapping[str, Path] | None = None,
        trace: Path | None = None,
        timeline: bool = False,
        course: bool = False,
        progress: Callable[[float], None] | None = None,
    ) -> Result:
        """Simulate packet by packet for `run.duration` virtual seconds. `seed` replaces `run.seed`,
        `trace` is an output file for ui.perfetto.dev, and `progress` is called with the completed
        share of the run. `pcap` maps links of a rack to output files for Wireshark. `timeline` adds
        the time series that figures of a fabric draw, `course` throughput against time."""
        return methods.simulate(
            self.scenario,
            seed=seed,
            pcap=pcap,
            trace=trace,
            timeline=timeline,
            course=course,
            progress=progress,
        )

    def measure(
        self,
        *,
        seed: int | None = None,
        log_dir: Path | None = None,
        trace: Path | None = None,
        timeline: bool = False,
        arrivals: Path | None = None,
        progress: Callable[[Progress], None] | None = None,
        on_event: Callable[[RunEvent], None] | None = None,
        record: Path | None = None,
    ) -> Result:
        """Build events with real processes for `measure.duration` seconds. See
        `daqloom.measure.run.measure` for the arguments and exceptions."""
        return methods.measure(
            self.scenario,
            seed=seed,
            log_dir=log_dir,
            trace=trace,
            timeline=timeline,
            arrivals=arrivals,
            progress=progress,
            on_event=on_event,
            record=record,
        )

    def compare(self, *, seed: int | None = None) -> MethodResults | Comparison:
        """Compare methods: `on_same_events` for TCP pull building in a rack, else `run_methods`."""
        system = self if seed is None else self.with_overrides({"run.seed": seed})
        is_incast = Parts.INCAST in system.scenario.parts
        return system.on_same_events() if is_incast else system.run_methods()

    def run_methods(
        self,
        methods: Iterable[Method] | None = None,
        *,
        simulated: Callable[[float], None] | None = None,
        measured: Callable[[Progress], None] | None = None,
    ) -> MethodResults:
        """Apply several methods, by default all that this machine supports. `simulated` and
        `measured` are called with the progress of the simulation and the measurement. If the
        measurement fails, the results of other methods are returned with its reason (`failure`);
        MeasureError is raised only without other results, StoppedError after Ctrl-C."""
        chosen = all_methods.usual_methods(self.scenario) if methods is None else methods
        return all_methods.run_methods(
            self.scenario, chosen, simulated=simulated, measured=measured
        )

    def on_same_events(
        self,
        duration_s: float = COMPARED_S,
        *,
        seed: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> Comparison:
        """Compare formula and simulation of a rack on the same events, for `duration_s` of virtual
        time. The network is empty at first. Raises StudyError for too few events, or if only the
        simulator can draw them."""
        drawn = self.scenario.run.seed if seed is None else seed
        return same_events.compare(self.scenario, duration_s, seed=drawn, progress=progress)

    def __repr__(self) -> str:
        return f"<System {self.name}>"

    def _repr_html_(self) -> str:
        """Return a table of the keys that are set, and a collapsed list of all keys."""
        given = self.scenario.model_dump(
            mode="json", exclude_unset=True, exclude={"name", "title", "description"}
        )
        return "\n".join(
            [
                notebook.heading(self.name, self.scenario.title),
                notebook.table(("key", "value"), _leaves(given)),
                notebook.fold("all keys", to_toml(self.scenario)),
            ]
        )


def _leaves(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", str(value)
