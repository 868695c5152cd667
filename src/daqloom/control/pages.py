"""The counter pages of units of this machine: shared memory, which outlives processes. It has what
a unit counts between its last heartbeat and its end.

A unit is on this machine if its process is found here with a page of the unit's name, whatever its
host's name and network namespace are.
"""

from daqloom._engine import Counters, UnitCounters


class Pages:
    """Counter pages of the units of `run` on this machine."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._pages: dict[int, UnitCounters | None] = {}

    def watch(self, unit: int, process: int) -> None:
        """Begin to watch a unit in a process; where it has no page, heartbeats must do."""
        try:
            self._pages[unit] = UnitCounters.attach(process, self._run, unit)
        except OSError:
            self._pages[unit] = None

    def watches(self, unit: int) -> bool:
        """Return whether the unit has been watched, or the attempt failed."""
        return unit in self._pages

    def last(self, unit: int) -> Counters | None:
        """Return the unit's last counters and stop watching it; none if it had no page."""
        page = self._pages.pop(unit, None)
        return page.read() if page is not None else None
