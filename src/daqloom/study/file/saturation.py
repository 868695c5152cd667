"""Saturated points, whose offered event rate exceeds the capacity, determined before they are run.
In a saturated run queues grow until builders collect the maximum number of concurrent events. The
run is shortened to the time in which this state is reached. Its queues show a limit of the builders
and not of the network."""

import math
from collections.abc import Mapping
from typing import Any

from daqloom.analyse.bounds import event_rate_bounds_hz
from daqloom.analyse.system import System
from daqloom.deployment.scenarios import override
from daqloom.scenario import Scenario
from daqloom.study.file.axis import number, text

RATE, SIZE, DURATION, WARMUP = "event.rate", "event.size", "run.duration", "run.warmup"

INDEPENDENT = (RATE, "network.switch.", "run.")
"""Keys, and prefixes of keys, that do not affect the bound of the event rate."""

FILLS = 2
"""Duration of a saturated run, in units of the time in which the excess fills all concurrent events
of the builders: once to reach the final state, and once to observe it."""

MOST_BACKLOG = 1e9
"""Backlog (B) at which a saturated run ends in any case, because waiting packets take memory."""

MOST_REMEMBERED = 100_000


class Saturation:
    """Determines whether `base` with changes is saturated, and the duration of saturated runs."""

    def __init__(self, base: Scenario) -> None:
        self._base = base
        self._bounds: dict[str, tuple[float, int]] = {}

    def excess_hz(self, changes: Mapping[str, Any]) -> float:
        """Return the offered event rate minus the bound of `analyse`; above 0 the point is
        saturated. At the bound (`event_rate_bound_hz`) the first link, host or builder saturates.
        Raises ScenarioError if the changed scenario is invalid."""
        return number(self._base, changes, RATE) - self._limits(changes)[0]

    def shorten(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return `changes`, with a shorter run if the point is saturated. Warm-up and duration are
        scaled by the same factor, so that excess events fill the builders `FILLS` times, or the
        backlog reaches `MOST_BACKLOG`. Runs are never made longer."""
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
        """Return the bound of the event rate, and the concurrent events of all builders. Both are
        computed once for axes and searches over event rate, switches and run."""
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
    """Return whether the bound or the scenario's validity (DCTCP's ECN threshold) needs a key."""
    return not key.startswith(INDEPENDENT) or key.endswith(".ecn_threshold")


def _whole_microseconds(seconds: float) -> float:
    return math.ceil(seconds * 1e6) / 1e6
