"""When events came to the event manager of a run, and the arrival trace that it makes."""

from array import array

from daqloom.control.messages import ArrivalRows


class ArrivalLog:
    """The first `most` arrivals that units told of.

    Within an epoch, times differ by what a monotonic clock has measured; those of several epochs
    are as far apart as the wall clocks of the hosts of their event managers say."""

    def __init__(self, most: int) -> None:
        self.times_ns = array("q")
        """Since 1970, in the order in which they were told."""
        self.begin_ns: int | None = None
        """Begin of the first epoch that has any (since 1970)."""
        self.beyond = 0
        """How many more came."""
        self._most = most

    def add(self, rows: ArrivalRows) -> None:
        """Take in arrivals that a unit tells of."""
        if not self._most:  # nobody has asked for any
            return
        kept = rows.times_ns[: self._most - len(self.times_ns)]
        self.times_ns.extend(rows.begin_ns + time_ns for time_ns in kept)
        self.beyond += len(rows.times_ns) - len(kept) + rows.beyond
        self.begin_ns = min(self.begin_ns or rows.begin_ns, rows.begin_ns)


def trace_text(log: ArrivalLog, source: str) -> str:
    """Return the text of an arrival trace: times (s) since the begin, one a line, not decreasing;
    above them, where they come from."""
    begin_ns = log.begin_ns or 0
    lines = [f"{(at_ns - begin_ns) / 1e9:.9f}\n" for at_ns in sorted(log.times_ns)]
    return f"# arrivals (s) of {source}\n" + "".join(lines)
