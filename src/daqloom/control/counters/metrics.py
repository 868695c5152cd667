"""Metrics of a result, from the counters of units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Literal, NamedTuple

from daqloom._engine import Balance, Counters, latency_bucket
from daqloom.control.counters.warnings import unprocessed_meps
from daqloom.control.protocol.messages import ConnectionRow
from daqloom.results.metrics import declaration
from daqloom.scenario.schema.parts import Parts

Reading = Mapping[int, Counters]
"""Total counters of each unit at one time."""
Count = Callable[[Counters], int | float | None]
"""Reader of one counter; None: the unit lacks it."""
Metrics = dict[str, int | float | dict[str, int | float]]
MICRO = 1e6


@dataclass(frozen=True)
class Row:
    """A metric, nested by a dot at most once, and its counter."""

    metric: str
    counter: Count
    kind: Literal["sum", "rate", "share", "each"]
    """Sum over units; sum per second; mean share of the units' time; or sum divided by that of the
    counter `by`."""
    factor: Literal["one", "bits", "events"] = "one"
    """Factor: bits of a byte, or events packed in a MEP."""
    by: Count | None = None


ROWS: tuple[Row, ...] = (
    Row("event_rate_hz", lambda c: c.meps_delivered, "rate", "events"),
    Row("throughput_bps", lambda c: c.mfp_bytes_built, "rate", "bits"),
    Row("events_built", lambda c: c.meps_built, "sum", "events"),
    Row("events_incomplete", lambda c: c.meps_incomplete, "sum", "events"),
    Row("events_discarded", lambda c: c.meps_discarded, "sum", "events"),
    Row("events_checked", lambda c: c.meps_checked, "sum", "events"),
    Row("events_wrong", lambda c: c.meps_wrong, "sum", "events"),
    Row("events_unchecked", lambda c: c.meps_unchecked, "sum", "events"),
    Row("events_repeated", lambda c: c.meps_repeated, "sum", "events"),
    Row("fragments_checked", lambda c: c.fragments_checked, "sum"),
    Row("checked_bytes", lambda c: c.fragment_bytes_checked, "sum"),
    Row("collection_latency_s.mean", lambda c: c.building_s, "each", by=lambda c: c.meps_delivered),
    Row("phases", lambda c: c.phases, "sum"),
    Row("phase_s", lambda c: c.in_phases_s, "each", by=lambda c: c.phases),
    Row("barrier_share", lambda c: c.in_barrier_s, "share"),
    Row("barrier_s.whole", lambda c: c.in_barrier_s, "each", by=lambda c: c.barriers),
    Row("go_wait_share", lambda c: c.asking_s or None, "share"),
    Row("write_requests", lambda c: c.write_requests or None, "sum"),
    Row("ahead_share", lambda c: c.answered_ahead, "each", by=lambda c: c.write_requests),
    Row("idle_share", lambda c: c.idle_s, "share"),
    Row("waiting_share.source", lambda c: c.waiting_for_source_s, "share"),
    Row("waiting_share.builder", lambda c: c.waiting_for_builder_s, "share"),
    Row("waiting_share.network", lambda c: c.waiting_for_network_s, "share"),
    Row("control_messages", lambda c: c.messages_sent, "sum"),
    Row("source_buffer_full", lambda c: c.mfps_blocked, "sum"),
    Row("trigger_stopped_share.acknowledge", lambda c: c.trigger_stopped_acknowledge_s, "share"),
    Row("trigger_stopped_share.memory", lambda c: c.trigger_stopped_memory_s, "share"),
    Row("unit_cores", lambda c: c.cpu_s, "share"),
)
"""Metrics of all protocols; absent if no unit has the counter."""

OVER_TCP: tuple[Row, ...] = (
    Row("retransmission_timeouts", lambda c: c.transport_retransmission_timeouts, "sum"),
    Row("retransmissions.all", lambda c: c.transport_segments_retransmitted, "sum"),
    Row("records_damaged", lambda c: c.transport_damaged_records, "sum"),
    Row("writes_damaged", lambda c: c.transport_damaged_writes, "sum"),
)
"""Metrics of `measure.transport = "tcp"`, from the units' own sockets."""


def rows_of(part: Parts, transport: str = "shm") -> tuple[Row, ...]:
    """Return the rows whose metrics are declared as measured for the part of a building protocol,
    over `measure.transport`."""
    rows = ROWS + (OVER_TCP if transport == "tcp" else ())
    return tuple(row for row in rows if part in declaration(row.metric).given_by("measure"))


def difference(begin: Reading, end: Reading) -> dict[int, Counters]:
    """Return the counts of each unit between two readings."""
    found = {}
    for unit, counted in end.items():
        before = begin[unit].by_name if unit in begin else {}
        now = counted.by_name.items()
        found[unit] = Counters({name: value - before.get(name, 0) for name, value in now})
    return found


def metrics(counted: Reading, packing: int, rows: Sequence[Row] = ROWS) -> Metrics:
    """Return the metrics of units with `packing` events in a MEP. A rate is the sum of the units'
    rates, each over its own time: readings of units are not simultaneous."""
    values: Metrics = {}
    factors = {"one": 1, "bits": 8, "events": packing}
    units = list(counted.values())
    for row in rows:
        value = _value(row, units, window_s(counted))
        if value is None:
            continue
        name, _, inner = row.metric.partition(".")
        if inner:
            _nest(values, name)[inner] = value * factors[row.factor]
        else:
            values[name] = value * factors[row.factor]
    for name, percentiles in latencies(units).items():
        _nest(values, name).update(percentiles)
    if skew := _skew(units):
        _nest(values, "barrier_s").update(skew)
    share = fragment_share(units)
    if share is None:
        return values
    if built := _total(units, lambda c: c.mep_bytes_built):
        values["overhead_share"] = 1 - share * _total(units, lambda c: c.mfp_bytes_built) / built
    throughput = values.get("throughput_bps")
    if isinstance(throughput, int | float):
        values["throughput_bps"] = share * throughput
    return values


def connection_columns(
    connections: Mapping[tuple[int, int], ConnectionRow],
) -> dict[str, list[int] | list[float]]:
    """Return the kernels' counters of connections as columns, by sending and receiving unit; the
    round trip is smoothed."""
    rows = sorted(connections.items())
    names = ("sent_bytes", "segments_retransmitted", "retransmission_timeouts")
    return {
        "from": [unit for (unit, _), _ in rows],
        "to": [to for (_, to), _ in rows],
        **{name: [getattr(row, name) for _, row in rows] for name in names},
        "round_trip_s": [row.round_trip_us / MICRO for _, row in rows],
        "least_round_trip_s": [row.least_round_trip_us / MICRO for _, row in rows],
        "delivery_rate_bps": [8 * row.delivery_rate_bytes_per_s for _, row in rows],
    }


def window_s(counted: Reading) -> float:
    """Return the length of the measurement (s): the longest of any unit."""
    return max((unit.elapsed_s or 0.0 for unit in counted.values()), default=0.0)


def waiting(totals: Reading) -> int:
    """Return the number of events without a builder unit yet."""
    return sum(unit.events_waiting or 0 for unit in totals.values())


def fragment_share(units: Sequence[Counters]) -> float | None:
    """Return the share of fragments in the bytes of MFPs, which readout units count."""
    taken = _total(units, lambda c: c.mfp_bytes_taken)
    return _total(units, lambda c: c.fragment_bytes_taken) / taken if taken else None


def _total(units: Iterable[Counters], counter: Count) -> int | float:
    return sum(counter(unit) or 0 for unit in units)


def _nest(found: Metrics, name: str) -> dict[str, int | float]:
    nest = found.setdefault(name, {})
    assert isinstance(nest, dict)
    return nest


def _skew(units: Sequence[Counters]) -> dict[str, float]:
    """Return the least and the most time per barrier of a unit."""
    means_s = [(unit.in_barrier_s or 0) / unit.barriers for unit in units if unit.barriers]
    return {"least": min(means_s), "most": max(means_s)} if means_s else {}


def refusals(counted: Reading) -> dict[str, int]:
    """Return the refusals of all units, by cause."""
    found: Counter[str] = Counter()
    for unit in counted.values():
        found.update(unit.refused)
    return dict(+found)


LATE = 0.1
"""Share of the window by which a unit's time may be shorter due to the times of reading; a unit
with less was absent for part of the window."""


def _value(row: Row, units: Sequence[Counters], time_s: float) -> int | float | None:
    counted = [(unit, value) for unit in units if (value := row.counter(unit)) is not None]
    if not counted:
        return None
    total = sum(value for _, value in counted)
    if row.kind == "sum":
        return total
    if row.kind == "each":
        divisor = _total((unit for unit, _ in counted), row.by) if row.by else len(counted)
        return total / divisor if divisor else None
    if time_s <= 0:
        return None
    rates = [value / max(unit.elapsed_s or 0, (1 - LATE) * time_s) for unit, value in counted]
    return sum(rates) if row.kind == "rate" else sum(rates) / len(rates)


class Part(NamedTuple):
    """Sums of a run under one setup."""

    packing: int
    counted: Reading
    balance: Balance

    def since(self, before: Part | None) -> Part:
        """Return the difference to the sums at the end of the setup before."""
        if before is None:
            return self
        now, then = self.balance, before.balance
        balance = Balance(
            unfinished=now.unfinished - then.unfinished,
            skipped=now.skipped - then.skipped,
            twice=now.twice - then.twice,
        )
        return Part(self.packing, difference(before.counted, self.counted), balance)


def accounts(
    totals: Reading, balance: Balance, next_mep: int, packing: int, sink: str
) -> dict[str, int]:
    """Return the fates of all events of a run that has ended, as `events_accounted.*`.

    `totals` are the counters of the whole run, `balance` the fates without counters, `next_mep` the
    first number without a builder unit, `sink` the scenario's `measure.sink`. Each fate is counted
    on its own: their sum is `begun`, unless events were built twice. Built events, complete or not,
    that are not processed or not written are neither `built` nor `incomplete`."""

    def meps(counter: Callable[[Counters], int | None]) -> int:
        return sum(counter(unit) or 0 for unit in totals.values())

    fates = {
        "built": meps(lambda c: c.meps_built),
        "incomplete": meps(lambda c: c.meps_incomplete),
        "dropped": meps(lambda c: c.meps_dropped),
        "discarded": meps(lambda c: c.meps_discarded),
    }

    def lost(fate: str, count: int, incomplete: int) -> None:
        fates[fate] = count
        fates["incomplete"] -= incomplete
        fates["built"] -= count - incomplete

    if sink != "user":
        counts = [unprocessed_meps(unit) for unit in totals.values()]
        lost("not_processed", sum(meps for meps, _ in counts), sum(part for _, part in counts))
    if sink == "file":
        incomplete = meps(lambda c: c.incomplete_meps_not_written)
        lost("not_written", meps(lambda c: c.meps_not_written), incomplete)
    fates |= {"unfinished": balance.unfinished, "skipped": balance.skipped}
    return {fate: count * packing for fate, count in ({"begun": next_mep} | fates).items()}


Buckets = dict[int, int]
"""Counts by bucket number, in ascending order."""

HISTOGRAMS: dict[str, Callable[[Counters], Buckets]] = {
    "collection_latency_s": lambda counted: counted.building,
    "barrier_s": lambda counted: counted.in_barrier,
}
"""Latency metrics and their histograms."""


def merge(histograms: Iterable[Buckets]) -> Buckets:
    """Merge several histograms into one."""
    found: Counter[int] = Counter()
    for buckets in histograms:
        found.update(buckets)
    return dict(sorted(found.items()))


def percentiles(buckets: Buckets) -> dict[str, float]:
    """Return p50 and p99 (s), at the middle of their buckets, within 3 %, and max, the end of the
    last bucket."""
    places = [latency_bucket(bucket) for bucket in buckets]
    if not places:
        return {}
    up_to = list(accumulate(buckets.values()))
    found = {}
    for name, share in (("p50", 0.5), ("p99", 0.99)):
        rank = max(1, ceil(share * up_to[-1]))
        lowest, width = places[next(i for i, count in enumerate(up_to) if count >= rank)]
        found[name] = lowest + width / 2
    return {**found, "max": sum(places[-1])}


def latencies(counted: Sequence[Counters]) -> dict[str, dict[str, float]]:
    """Return percentiles by metric, from the counters of all units, without empty metrics."""
    found = {
        metric: percentiles(merge(histogram(unit) for unit in counted))
        for metric, histogram in HISTOGRAMS.items()
    }
    return {metric: values for metric, values in found.items() if values}
