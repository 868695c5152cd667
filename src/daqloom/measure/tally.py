"""Counters that continue when a unit's process is restarted or reset, or has ended.

Shared memory outlives processes: it has what a unit counts between its last heartbeat and its end.
"""

from daqloom._engine import Counters, UnitCounters, known_counters

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
