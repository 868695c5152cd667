"""Meter of a run: what its units built, lost and waited for, in bins of a second.

Units report at different times. Each counter of a unit is interpolated at the end of a bin between
the two reports around it, so that the bins of a run add up to its counters."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from daqloom._engine import Counters, RunControl
from daqloom.control.counters.metrics import merge, percentiles
from daqloom.control.protocol.states import Phase

WIDTH_S = 1.0
"""Length of a bin."""
LATEST_S = 1.0
"""Longest wait for the reports of all members before a bin is closed."""
MOST_READINGS = 64
"""Readings of a unit that are kept; they span a bin at any heartbeat but the shortest."""
KEPT = 5
"""Bins over which present rates are averaged."""
MOST_BEHIND_S = 60.0
"""Longest pause of the run control that is divided into bins; the rest is one bin."""

Values = tuple[float, ...]
SUMS: Mapping[str, Callable[[Counters], float | None]] = {
    "meps": lambda c: c.meps_delivered,
    "mfp_bytes": lambda c: c.mfp_bytes_built,
    "unit_s": lambda c: c.elapsed_s,
    "wait_source_s": lambda c: c.waiting_for_source_s,
    "wait_peer_s": lambda c: (
        (c.waiting_for_network_s or 0)
        + (c.asking_s or 0)
        + max(0, (c.waiting_for_builder_s or 0) - (c.waiting_for_consumer_s or 0))
    ),
    "wait_barrier_s": lambda c: c.in_barrier_s,
    "wait_consumer_s": lambda c: c.waiting_for_consumer_s,
    "incomplete": lambda c: c.meps_incomplete,
    "dropped": lambda c: c.meps_dropped,
    "discarded": lambda c: c.meps_discarded,
    "not_written": lambda c: c.meps_not_written,
    "taken_bytes": lambda c: c.mfp_bytes_taken,
    "fragment_bytes": lambda c: c.fragment_bytes_taken,
}
"""Counters whose increase a bin has; MEPs count as their events."""
WAITS = tuple(name for name in SUMS if name.startswith("wait_"))
LOSSES = ("incomplete", "dropped", "discarded", "not_written", "unfinished", "skipped")
"""Causes of lost events in a bin; see the metric `events_accounted`."""
OF_UNITS = LOSSES[:4]
LAST = (
    *("latency_p50_s", "latency_p99_s", "latency_max_s"),
    *("source_fill", "output_fill", "disk_free_bytes"),
)
"""Columns of which the last value is shown."""
Row = dict[str, float]


@dataclass(frozen=True)
class Bin:
    """Increases from `begin_s` on, on the clock of the run control (s)."""

    begin_s: float
    width_s: float
    run: Row
    """Columns of `daqloom.control.record.series.RUN`, without times and phase."""
    phase: Phase
    units: dict[int, Row]


class _Unit:
    """Readings of a unit since the end of the last bin."""

    def __init__(self, now_s: float, values: Values) -> None:
        self.base = values
        self.readings: deque[tuple[float, Values]] = deque([(now_s, values)], MOST_READINGS)
        self.counters = Counters()

    def take(self, end_s: float) -> Values:
        """Return the increases until `end_s`, and begin the next bin."""
        while len(self.readings) > 1 and self.readings[1][0] <= end_s:
            self.readings.popleft()
        (from_s, at), *later = self.readings
        if later and from_s < end_s:
            until_s, then = later[0]
            share = (end_s - from_s) / (until_s - from_s)
            at = tuple(a + share * (b - a) for a, b in zip(at, then, strict=True))
        increase = tuple(max(0.0, now - before) for now, before in zip(at, self.base, strict=True))
        self.base = tuple(map(max, at, self.base))
        return increase


class Meter:
    """Meter of the run of a run control. It begins at the present totals of the units, which they
    had at `now_s`. If that was before a gap without run control, `gap_end_s` is the time until
    which the first reports are awaited, so that what was built is spread over the gap."""

    def __init__(
        self, run: RunControl, packing: int, now_s: float = 0.0, gap_end_s: float = 0.0
    ) -> None:
        self._run, self.packing = run, packing
        self._gap_end_s = gap_end_s
        self.last: deque[Bin] = deque(maxlen=KEPT)
        """Last closed bins."""
        self._begin_s = now_s
        totals = [unit.tally.totals for unit in run.units]
        self._units = [_Unit(now_s, _values(each)) for each in totals]
        self._latencies = merge(each.building for each in totals)
        self._counted = self._counts()

    def count(self, now_s: float, unit: int) -> None:
        """Read the counters of a unit after its report."""
        counters, here = self._run.unit(unit).tally.totals, self._units[unit]
        here.counters = counters
        if now_s > here.readings[-1][0]:
            here.readings.append((now_s, _values(counters)))

    def close(self, now_s: float, *, at_once: bool = False) -> Iterable[Bin]:
        """Yield the bins that have ended, when all members have reported after their end, or
        `at_once` with the rest of the last one."""
        if now_s < self._gap_end_s and not at_once:
            readings = [self._units[unit].readings for unit in self._run.members]
            if self._run.phase is Phase.ATTACHING or any(len(each) < 2 for each in readings):
                return
            self._gap_end_s = 0.0
        if now_s - self._begin_s > MOST_BEHIND_S:
            yield self._bin(now_s - WIDTH_S)
        while now_s >= (end_s := self._begin_s + WIDTH_S):
            late = any(self._units[unit].readings[-1][0] < end_s for unit in self._run.members)
            if late and now_s < end_s + LATEST_S and not at_once:
                return
            yield self._bin(end_s)
        if at_once and now_s > self._begin_s:
            yield self._bin(now_s)

    def _bin(self, end_s: float) -> Bin:
        run, begin_s, self._begin_s = self._run, self._begin_s, end_s
        rows = {
            number: dict(zip(SUMS, unit.take(end_s), strict=True))
            for number, unit in enumerate(self._units)
        }
        total = {name: sum(row[name] for row in rows.values()) for name in SUMS}
        share = total["fragment_bytes"] / total["taken_bytes"] if total["taken_bytes"] else 1.0
        for number, row in rows.items():
            self._finish(row, share)
            row |= fills(self._units[number].counters)
            row["lost"] = sum(row.pop(cause) for cause in OF_UNITS)
            row["member"] = float(number in run.members)
        self._finish(total, share)
        counted, self._counted = self._counted, self._counts()
        total |= {name: max(0.0, self._counted[name] - counted[name]) for name in counted}
        total |= self._latency()
        total |= {"members": len(run.members) if run.phase is Phase.RUNNING else 0}
        total |= {"epoch": run.epoch}
        for name, worst in (("source_fill", max), ("output_fill", max), ("disk_free_bytes", min)):
            if found := [row[name] for row in rows.values() if name in row]:
                total[name] = worst(found)
        closed = Bin(begin_s, end_s - begin_s, total, run.phase, rows)
        self.last.append(closed)
        return closed

    def _finish(self, row: Row, share: float) -> None:
        """Turn MEPs into events, and bytes of MFPs into bytes of fragments."""
        row["events"] = self.packing * row.pop("meps")
        row["bytes"] = share * row.pop("mfp_bytes")
        for name in OF_UNITS:
            row[name] *= self.packing
        del row["taken_bytes"], row["fragment_bytes"]

    def _latency(self) -> Row:
        now = merge(unit.tally.totals.building for unit in self._run.units)
        before, self._latencies = self._latencies, now
        more = {bucket: n - before.get(bucket, 0) for bucket, n in now.items()}
        found = percentiles({bucket: n for bucket, n in more.items() if n > 0})
        return {f"latency_{name}_s": value_s for name, value_s in found.items()}

    def _counts(self) -> Row:
        balance, counts = self._run.balance_of_ended(), self._run.counts
        return {
            "unfinished": balance.unfinished * self.packing,
            "skipped": balance.skipped * self.packing,
            "units_lost": counts.get("units_lost", 0),
            "regroupings": counts.get("regroupings", 0),
        }


def _values(counters: Counters) -> Values:
    return tuple(float(read(counters) or 0) for read in SUMS.values())


def fills(counters: Counters) -> Row:
    """Return the filled shares of a unit's buffers, and the free space of its disk."""
    found: Row = {}
    if size := counters.stream_buffer_bytes:
        found["source_fill"] = (counters.stream_buffer_bytes_used or 0) / size
    if size := counters.output_buffer_bytes:
        found["output_fill"] = (counters.output_buffer_bytes_used or 0) / size
    if (free := counters.disk_free_bytes) is not None:
        found["disk_free_bytes"] = free
    return found


def present(bins: Iterable[Bin]) -> tuple[Row, dict[int, Row]]:
    """Return the rates over bins, of the run and of each unit: `event_rate_hz`, `throughput_bps`,
    shares of time in `wait_source`, `wait_peer`, `wait_barrier` and `wait_consumer`, and lost
    events per second (`lost_hz`, of the run also by cause). Latencies, fills of buffers and free
    space are the last ones."""
    found = list(bins)
    width_s = sum(each.width_s for each in found)
    if not found:
        return {}, {}

    def rates(rows: list[Row], causes: Iterable[str]) -> Row:
        def total(name: str) -> float:
            return sum(each.get(name, 0.0) for each in rows)

        unit_s = total("unit_s") or 1.0
        return {
            "event_rate_hz": total("events") / width_s,
            "throughput_bps": 8 * total("bytes") / width_s,
            **{name.removesuffix("_s"): total(name) / unit_s for name in WAITS},
            "lost_hz": sum(map(total, causes)) / width_s,
            **{name: value for name, value in rows[-1].items() if name in LAST},
        }

    run = rates([each.run for each in found], LOSSES)
    for cause in LOSSES:
        run[f"{cause}_hz"] = sum(each.run.get(cause, 0.0) for each in found) / width_s
    return run, {
        unit: rates([each.units[unit] for each in found], ["lost"]) for unit in found[-1].units
    }
