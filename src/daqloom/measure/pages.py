"""The counter pages of units of this machine: shared memory, which outlives processes. It has what
a unit counts between its last heartbeat and its end."""

from daqloom._engine import Counters, UnitCounters

PATIENCE_S = 0.2
"""How long a unit may take to hand over its counters (s)."""


class Pages:
    """Counter pages of the units of `run` on this machine."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._pages: dict[int, UnitCounters | None] = {}

    def watch(self, unit: int) -> None:
        """Begin to watch a unit; where it has no page, heartbeats must do."""
        try:
            self._pages[unit] = UnitCounters.attach(self._run, unit, PATIENCE_S)
        except OSError:
            self._pages[unit] = None

    def watches(self, unit: int) -> bool:
        """Return whether the unit has been watched, or the attempt failed."""
        return unit in self._pages

    def last(self, unit: int) -> Counters | None:
        """Return the unit's last counters and stop watching it; none if it had no page."""
        page = self._pages.pop(unit, None)
        return page.read() if page is not None else None
