"""Counters of units on this machine, read from memory that outlives them.

What a unit counts after its last heartbeat, until it is killed, is there as well.
"""

from __future__ import annotations

from typing import Any

Counters = dict[str, int | float]
PATIENCE_S = 0.2
"""For a unit that is to hand over its counters."""


class Pages:
    """Of the units of `run` that are on this machine."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._pages: dict[int, Any] = {}

    def watch(self, unit: int) -> None:
        """From now on; where there is nothing to see, heartbeats have to do."""
        from daqloom._engine import UnitCounters

        try:
            self._pages[unit] = UnitCounters.attach(self._run, unit, PATIENCE_S)
        except ValueError:
            self._pages[unit] = None

    def watches(self, unit: int) -> bool:
        """Whether it has been tried."""
        return unit in self._pages

    def last(self, unit: int) -> Counters:
        """What the unit has counted; it is not watched any more. Empty: nothing to see."""
        page = self._pages.pop(unit, None)
        return page.read() if page is not None else {}
