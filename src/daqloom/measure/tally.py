"""Counters that go on counting when what counts begins anew."""

from __future__ import annotations

from collections.abc import Mapping

LEVELS = frozenset({"waits", "next_mep", "first_mep_s"})
"""What a node reports that is no count."""


class Tally:
    """Adds up the readings of a unit's counters over all processes that the unit has had."""

    def __init__(self) -> None:
        self.totals: dict[str, int | float] = {}
        self._last: dict[str, int | float] = {}

    def read(self, counters: Mapping[str, int | float]) -> None:
        """A new reading; of what has become less, all is new."""
        for name, value in counters.items():
            if name in LEVELS:
                self.totals[name] = value
                continue
            last = self._last.get(name, 0)
            self.totals[name] = self.totals.get(name, 0) + (value if value < last else value - last)
            self._last[name] = value
