"""Counters that continue when a unit's process is restarted or reset."""

from __future__ import annotations

from daqloom._engine import Counters, known_counters

GAUGES = frozenset(each.name for each in known_counters() if each.is_gauge)
"""What is so now: readings are not summed."""


class Tally:
    """Sums a unit's counters over all processes that the unit has had."""

    def __init__(self) -> None:
        self._totals: dict[str, int | float] = {}
        self._last: dict[str, int | float] = {}
        self._read_s = 0.0

    @property
    def totals(self) -> Counters:
        """The sums until now."""
        return Counters(self._totals)

    def begins_anew(self, counters: Counters) -> bool:
        """Return whether a reading comes from another process, or from one that was reset."""
        return (counters.elapsed_s or 0) < self._read_s

    def read(self, counters: Counters) -> None:
        """Add a new reading; a counter that has become smaller has begun anew at 0."""
        if counters.elapsed_s is not None:
            if self.begins_anew(counters):
                self._last = {}
            self._read_s = counters.elapsed_s
        for name, value in counters.by_name.items():
            if name in GAUGES:
                self._totals[name] = value
                continue
            last = self._last.get(name, 0)
            self._totals[name] = self._totals.get(name, 0) + (
                value if value < last else value - last
            )
            self._last[name] = value
