"""Recorder of throughput and number of members against time."""

from collections.abc import Iterable

from daqloom._engine import Counters
from daqloom.control.protocol.states import Phase
from daqloom.control.run_log import RunEvent
from daqloom.results.course import Bins


class Recorder:
    """Recorder of built bytes against time, in bins of `heartbeat_s`. Bytes that a unit built
    between two reports are spread evenly over the time between them."""

    def __init__(self, heartbeat_s: float) -> None:
        self.began_s: float | None = None
        """Time when units first build (s); earlier bytes are not recorded."""
        self.bytes_built = Bins(heartbeat_s)
        self._last: dict[int, tuple[float, int]] = {}

    def count(self, at_s: float, unit: int, totals: Counters) -> None:
        """Record a report with the counters of a unit since the start of the run."""
        if self.began_s is None:
            return
        last_s, last = self._last.get(unit, (0.0, 0))
        now_s, built = at_s - self.began_s, totals.mfp_bytes_built or 0
        if built > last:
            self.bytes_built.add(last_s, now_s, built - last)
        self._last[unit] = now_s, built


def members(events: Iterable[RunEvent], began_s: float) -> list[tuple[float, int]]:
    """Return the number of building units from each time on, relative to `began_s`, as
    `daqloom.results.course.Members`."""
    found: list[tuple[float, int]] = []
    for event in events:
        building = event.members if event.phase is Phase.RUNNING else 0
        if not found or found[-1][1] != building:
            found.append((max(0.0, event.time_s - began_s), building))
    return found[1:] if found and found[0][1] == 0 else found
