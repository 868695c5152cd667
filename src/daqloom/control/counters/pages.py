"""Counter pages of this machine's units: shared memory that outlives processes, with the counts
between the last heartbeat and the end.

A unit is on this machine if its process exists here with a page of the unit's name, in any network
namespace."""

from daqloom._engine import Counters, UnitCounters


class Pages:
    """Counter pages of the units of `run` on this machine."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._pages: dict[int, UnitCounters | None] = {}

    def watch(self, unit: int, process: int) -> None:
        """Watch the page of a unit in a process, if it has one."""
        try:
            self._pages[unit] = UnitCounters.attach(process, self._run, unit)
        except OSError:
            self._pages[unit] = None

    def watches(self, unit: int) -> bool:
        """Return whether the unit is watched, or has no page."""
        return unit in self._pages

    def last(self, unit: int) -> Counters | None:
        """Return the unit's last counters, if it has a page, and stop watching."""
        page = self._pages.pop(unit, None)
        return page.read() if page is not None else None
