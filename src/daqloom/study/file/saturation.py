"""Points that are offered more than the system can carry, found before they are run.

No buffer helps there: queues grow as long as the run lasts, up to the number of events that
builders take at a time. Such a run is cut short once that is reached; its queues show a limit of
the builders, not of the network.
"""

import math
from collections.abc import Mapping
from typing import Any

from daqloom.analyse.bounds import event_rate_bounds_hz
from daqloom.analyse.system import System
from daqloom.scenario import Scenario
from daqloom.study.file.axis import number, text
from daqloom.topology.system.scenarios import override

RATE, SIZE, DURATION, WARMUP = "event.rate", "event.size", "run.duration", "run.warmup"

INDEPENDENT = (RATE, "network.switch.", "run.")
"""Keys, and beginnings of keys, that do not change the bound of the rate."""

FILLS = 2
"""Times that the excess fills all builders' events in a saturated run: once to reach the final
state, and once more to observe it."""

MOST_BACKLOG = 1e9
"""Excess (B) at which such a run ends in any case: every waiting packet takes memory."""

MOST_REMEMBERED = 100_000


class Saturation:
    """Saturated points of `base` with changes, and the length of their runs."""

    def __init__(self, base: Scenario) -> None:
        self._base = base
        self._bounds: dict[str, tuple[float, int]] = {}

    def excess_hz(self, changes: Mapping[str, Any]) -> float:
        """Return the offered event rate less the bound of `analyse`; above 0 the point is
        saturated. The bound (`event_rate_bound_hz`) is that of the first full link, host or
        builder. Raises ScenarioError where the system is not valid."""
        return number(self._base, changes, RATE) - self._limits(changes)[0]

    def bounded(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return `changes`, with a shorter run where they are saturated. Warm-up and run become
        shorter by the same factor, so that the excess of the events fills the builders `FILLS`
        times, or comes to `MOST_BACKLOG`; a run that is shorter already is unchanged."""
        excess_hz = self.excess_hz(changes)
        if excess_hz <= 0:
            return dict(changes)
        duration_s = number(self._base, changes, DURATION)
        most = MOST_BACKLOG / number(self._base, changes, SIZE)
        needed_s = min(FILLS * self._limits(changes)[1], most) / excess_hz
        if needed_s >= duration_s:
            return dict(changes)
        shorter = {
            key: _whole_microseconds(number(self._base, changes, key) * needed_s / duration_s)
            for key in (DURATION, WARMUP)
        }
        return dict(changes) | {key: text(key, seconds) for key, seconds in shorter.items()}

    def _limits(self, changes: Mapping[str, Any]) -> tuple[float, int]:
        """Return the bound of the rate, and the events that all builders take at a time; neither
        depends on rate, switches or run, so that axes and searches of those compute it once."""
        others = {key: value for key, value in changes.items() if _matters(key)}
        label = repr(others)
        if label not in self._bounds:
            if len(self._bounds) >= MOST_REMEMBERED:
                self._bounds.clear()
            scenario = override(self._base, others) if others else self._base
            builders = scenario.builders
            bound_hz = min(event_rate_bounds_hz(System(scenario)).values())
            if scenario.event.arrival_times is not None:
                bound_hz = math.inf  # the trace sets the rate, not the key
            self._bounds[label] = bound_hz, builders.units * scenario.building.concurrent_events
        return self._bounds[label]


def _matters(key: str) -> bool:
    """Whether the bound depends on a key, or the system is not valid without it, as DCTCP."""
    return not key.startswith(INDEPENDENT) or key.endswith(".ecn_threshold")


def _whole_microseconds(seconds: float) -> float:
    return math.ceil(seconds * 1e6) / 1e6
