"""Comparison of formula and simulation on the same events. The published formula holds for regular
events; it adds a triangular buffer occupancy for each event. Here the triangles start at the
arrival times of the simulated events. This separates the effect of arrivals from the effect of the
network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from daqloom.analyse.bounds import first_byte_s
from daqloom.analyse.peak import exact
from daqloom.analyse.system import System
from daqloom.analyse.triangles import in_turn, occupancy
from daqloom.base import lazy
from daqloom.base.claims import claimed_folder
from daqloom.deployment.scenarios import override
from daqloom.results.result import Result
from daqloom.scenario import Scenario
from daqloom.scenario.quantities import FREQUENCY, TIME
from daqloom.study import StudyError
from daqloom.study.methods import methods

with lazy.imports():
    import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST_EVENTS = 10


@dataclass(frozen=True)
class Comparison:
    """Buffer occupancy of the top-of-rack switch by formula and simulation; the network is empty at
    first. `times_s`, `formula_bytes`, shape (n,): corners of the formula's occupancy, which is
    linear between them. `simulated` is the simulation's result; its series `tor_occupancy` has the
    same time axis. Peaks (B) by formula: `regular_peak` for regular events at the same rate,
    `formula_peak` for these events."""

    times_s: NDArray[np.float64]
    formula_bytes: NDArray[np.float64]
    simulated: Result
    regular_peak: float
    formula_peak: float
    simulated_peak: float

    @property
    def arrivals_factor(self) -> float:
        """Effect of arrivals: ratio of peaks by formula, these events over regular events."""
        return self.formula_peak / self.regular_peak

    @property
    def network_factor(self) -> float:
        """Effect of the network: ratio of peaks for these events, simulation over formula."""
        return self.simulated_peak / self.formula_peak


def compare(
    scenario: Scenario,
    duration_s: float,
    *,
    seed: int,
    progress: Callable[[float], None] | None = None,
) -> Comparison:
    """Apply formula and simulation to the same arrivals in `duration_s`, beginning with an empty
    network. Raises StudyError for too few arrivals, or if only the simulator can draw them
    (LHC)."""
    arrivals = draw_arrivals(scenario, duration_s, seed)
    system = System(scenario)
    times, held = formula_occupancy(system, arrivals)
    within = times <= duration_s
    simulated = _simulate(scenario, arrivals, duration_s, seed, progress)
    return Comparison(
        times_s=times[within],
        formula_bytes=held[within],
        simulated=simulated,
        regular_peak=exact(system.triangle, system.rate_hz, scenario.builders.units).peak_bytes,
        formula_peak=float(np.max(held[within])),
        simulated_peak=float(simulated.metric("buffer_peak_bytes.tor") or 0.0),
    )


def formula_occupancy(
    system: System, arrivals: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return corners (time in s, occupancy in bytes), shape (3·n,), of the formula for events that
    are requested at `arrivals`, sorted times (s) of shape (n,). The uplink carries one after the
    other."""
    event = system.triangle
    return occupancy(event, in_turn(event, arrivals + first_byte_s(system)))


def draw_arrivals(scenario: Scenario, duration_s: float, seed: int) -> NDArray[np.float64]:
    """Return the times (s) at which events are requested in `duration_s`, sorted, shape (n,).
    Raises StudyError for too few events, and for arrivals that only the simulator can draw."""
    rate_hz = scenario.event.rate
    expected = rate_hz * duration_s
    if expected < FEWEST_EVENTS:
        raise StudyError(
            f"{TIME.format(duration_s)} at event.rate = {FREQUENCY.format(rate_hz)} are "
            f"{expected:.3g} events; compare at least {FEWEST_EVENTS}, over a longer --duration"
        )
    if scenario.event.arrivals == "deterministic":
        return np.arange(1, int(expected) + 1) / rate_hz
    if scenario.event.arrivals == "trace":
        known = np.asarray(scenario.event.arrival_times, dtype=np.float64)
        return known[known <= duration_s]
    if scenario.event.arrivals == "poisson":
        # For a given number of events, the times of a Poisson process are uniform.
        random = np.random.default_rng(seed)
        count = random.poisson(expected)
        return np.sort(random.uniform(0.0, duration_s, count))
    raise StudyError(
        f'event.arrivals = "{scenario.event.arrivals}" cannot be compared event by event; set '
        "poisson, deterministic or trace"
    )


def _simulate(
    scenario: Scenario,
    arrivals: NDArray[np.float64],
    duration_s: float,
    seed: int,
    progress: Callable[[float], None] | None,
) -> Result:
    with claimed_folder() as folder:
        trace = folder / "arrivals.txt"
        trace.write_text("".join(f"{instant!r}\n" for instant in arrivals.tolist()))
        same = override(
            scenario,
            {
                "event.arrivals": "trace",
                "event.trace": str(trace),
                "run.duration": f"{duration_s!r} s",
                "run.warmup": "0 s",
            },
        )
        return methods.simulate(same, seed=seed, progress=progress)
