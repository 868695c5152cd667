"""Counters that continue when a unit's process is restarted or reset."""

from __future__ import annotations

from collections.abc import Mapping

from daqloom._engine import CounterName
from daqloom.measure.node import ELAPSED

LEVELS = frozenset({CounterName.waits, CounterName.next_mep, CounterName.first_mep_s})
"""Gauges among what a node reports, which are not summed."""


class Tally:
    """Sums a unit's counters over all processes that the unit has had."""

    def __init__(self) -> None:
        self.totals: dict[str, int | float] = {}
        self._last: dict[str, int | float] = {}

    def begins_anew(self, counters: Mapping[str, int | float]) -> bool:
        """Return whether a reading comes from another process, or from one that was reset."""
        return counters.get(ELAPSED, 0) < self._last.get(ELAPSED, 0)

    def read(self, counters: Mapping[str, int | float]) -> None:
        """Add a new reading; a counter that has become smaller has begun anew at 0."""
        if ELAPSED in counters and self.begins_anew(counters):
            self._last = {}
        for name, value in counters.items():
            if name in LEVELS:
                self.totals[name] = value
                continue
            last = self._last.get(name, 0)
            self.totals[name] = self.totals.get(name, 0) + (value if value < last else value - last)
            self._last[name] = value
