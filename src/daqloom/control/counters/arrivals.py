"""Arrivals of events at the event manager of a run, and their trace."""

from array import array

from daqloom.control.protocol.messages import ArrivalRows


class ArrivalLog:
    """First `most` arrivals that units report. Within an epoch, times are by a monotonic clock,
    between epochs by the wall clocks of the event managers' hosts."""

    def __init__(self, most: int) -> None:
        self.times_ns = array("q")
        """Times since 1970 in the order of reports."""
        self.begin_ns: int | None = None
        """Begin of the first epoch with arrivals (since 1970)."""
        self.beyond = 0
        """Number of further arrivals."""
        self._most = most

    def add(self, rows: ArrivalRows) -> None:
        """Add arrivals that a unit reports."""
        if not self._most:  # no trace
            return
        kept = rows.times_ns[: self._most - len(self.times_ns)]
        self.times_ns.extend(rows.begin_ns + time_ns for time_ns in kept)
        self.beyond += len(rows.times_ns) - len(kept) + rows.beyond
        self.begin_ns = min(self.begin_ns or rows.begin_ns, rows.begin_ns)


def trace_text(log: ArrivalLog, source: str) -> str:
    """Return the text of an arrival trace: times (s) since the begin, one a line, in ascending
    order, below their source."""
    begin_ns = log.begin_ns or 0
    lines = [f"{(at_ns - begin_ns) / 1e9:.9f}\n" for at_ns in sorted(log.times_ns)]
    return f"# arrivals (s) of {source}\n" + "".join(lines)
