"""Counters that go on counting when what counts begins anew."""

from __future__ import annotations

from collections.abc import Mapping

from daqloom.measure.node import ELAPSED

LEVELS = frozenset({"waits", "next_mep", "first_mep_s"})
"""What a node reports that is no count."""


class Tally:
    """Adds up the readings of a unit's counters over all processes that the unit has had."""

    def __init__(self) -> None:
        self.totals: dict[str, int | float] = {}
        self._last: dict[str, int | float] = {}

    def begins_anew(self, counters: Mapping[str, int | float]) -> bool:
        """Whether another process, or one that was reset, has counted this."""
        return counters.get(ELAPSED, 0) < self._last.get(ELAPSED, 0)

    def read(self, counters: Mapping[str, int | float]) -> None:
        """A new reading; of what has become less, all is new."""
        if ELAPSED in counters and self.begins_anew(counters):
            self._last = {}
        for name, value in counters.items():
            if name in LEVELS:
                self.totals[name] = value
                continue
            last = self._last.get(name, 0)
            self.totals[name] = self.totals.get(name, 0) + (value if value < last else value - last)
            self._last[name] = value
