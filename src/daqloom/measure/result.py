"""Computes the metrics of a result from the counters of units."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from daqloom._engine import CounterName
from daqloom.measure.counters import REFUSED
from daqloom.measure.latencies import latencies
from daqloom.measure.ledger import Balance
from daqloom.measure.node import CPU, ELAPSED, Counters
from daqloom.measure.recorded import INCOMPLETE_NOT_WRITTEN, NOT_WRITTEN, unprocessed
from daqloom.metrics import Systems, declared

Reading = Mapping[int, Counters]
"""The total counters of each unit at one time."""
Metrics = dict[str, int | float | dict[str, int | float]]


@dataclass(frozen=True)
class Row:
    """A metric, nested by a dot at most once, and the counter that it is computed from."""

    metric: str
    counter: str
    kind: Literal["sum", "rate", "share", "each"]
    """How the counter becomes a metric: summed over units; that sum per second; the mean share of
    the time of the units that count it; or the sum divided by that of the counter `by`."""
    factor: Literal["one", "bits", "events"] = "one"
    """Whether the counter is of MEPs, each of which has as many events as are packed."""
    by: str = ""


ROWS: tuple[Row, ...] = (
    Row("event_rate_hz", CounterName.meps_delivered, "rate", "events"),
    Row("throughput_bps", CounterName.mfp_bytes_built, "rate", "bits"),
    Row("events_built", CounterName.meps_built, "sum", "events"),
    Row("events_incomplete", CounterName.meps_incomplete, "sum", "events"),
    Row("events_discarded", CounterName.meps_discarded, "sum", "events"),
    Row("events_checked", CounterName.meps_checked, "sum", "events"),
    Row("events_wrong", CounterName.meps_wrong, "sum", "events"),
    Row("events_repeated", CounterName.meps_repeated, "sum", "events"),
    Row("fragments_checked", CounterName.fragments_checked, "sum"),
    Row("checked_bytes", CounterName.fragment_bytes_checked, "sum"),
    Row("collection_latency_s.mean", CounterName.building_s, "each", by=CounterName.meps_delivered),
    Row("phases", CounterName.phases, "sum"),
    Row("phase_s", CounterName.in_phases_s, "each", by=CounterName.phases),
    Row("barrier_share", CounterName.in_barrier_s, "share"),
    Row("barrier_s.whole", CounterName.in_barrier_s, "each", by=CounterName.barriers),
    Row("idle_share", CounterName.idle_s, "share"),
    Row("waiting_share.source", CounterName.waiting_for_source_s, "share"),
    Row("waiting_share.builder", CounterName.waiting_for_builder_s, "share"),
    Row("waiting_share.network", CounterName.waiting_for_network_s, "share"),
    Row("control_messages", CounterName.messages_sent, "sum"),
    Row("source_buffer_full", CounterName.mfps_blocked, "sum"),
    Row("unit_cores", CPU, "share"),
)
"""Metrics of all protocols; one whose counter no unit has is absent."""


def rows_of(protocol: str) -> tuple[Row, ...]:
    """Return the rows whose metrics are declared as measured for `building.protocol`."""
    system = Systems.of(protocol)
    return tuple(row for row in ROWS if system in declared(row.metric).measure)


def difference(begin: Reading, end: Reading) -> dict[int, dict[str, int | float]]:
    """Return what each unit counted between two readings."""
    return {
        unit: {name: value - begin.get(unit, {}).get(name, 0) for name, value in counters.items()}
        for unit, counters in end.items()
    }


def metrics(counted: Reading, packing: int, rows: Sequence[Row] = ROWS) -> Metrics:
    """Return the metrics, from counters of units with `packing` events in a MEP.

    A rate is the sum of the rates of the units, each over its own time: no two are read at the same
    moment."""
    found: Metrics = {}
    factors = {"one": 1, "bits": 8, "events": packing}
    for row in rows:
        units = [counters for counters in counted.values() if row.counter in counters]
        value = _value(row, units, window_s(counted))
        if value is None:
            continue
        name, _, inner = row.metric.partition(".")
        scaled = value * factors[row.factor]
        if not inner:
            found[name] = scaled
        else:
            _nest(found, name)[inner] = scaled
    for name, percentiles in latencies(counted.values()).items():
        _nest(found, name).update(percentiles)
    if skew := _skew(counted.values()):
        _nest(found, "barrier_s").update(skew)
    share = _fragment_share(counted.values())
    if share is None:
        return found
    built = _total(CounterName.mep_bytes_built, counted.values())
    if built:
        found["overhead_share"] = (
            1 - share * _total(CounterName.mfp_bytes_built, counted.values()) / built
        )
    throughput = found.get("throughput_bps")
    if isinstance(throughput, int | float):
        found["throughput_bps"] = share * throughput
    return found


def window_s(counted: Reading) -> float:
    """Return the length of the measurement (s): the longest of any unit."""
    return float(max((counters.get(ELAPSED, 0) for counters in counted.values()), default=0))


def _fragment_share(units: Collection[Counters]) -> float | None:
    """Return the share of fragments in the bytes of MFPs; only readout units count it."""
    taken = _total(CounterName.mfp_bytes_taken, units)
    return _total(CounterName.fragment_bytes_taken, units) / taken if taken else None


def _total(counter: str, units: Collection[Counters]) -> int | float:
    return sum(unit.get(counter, 0) for unit in units)


def _nest(found: Metrics, name: str) -> dict[str, int | float]:
    nest = found.setdefault(name, {})
    assert isinstance(nest, dict)
    return nest


def _skew(units: Collection[Counters]) -> dict[str, float]:
    """Return the time per barrier of the unit that is last to enter them, and of the first."""
    means_s = [
        unit.get(CounterName.in_barrier_s, 0) / unit[CounterName.barriers]
        for unit in units
        if unit.get(CounterName.barriers)
    ]
    return {"least": min(means_s), "most": max(means_s)} if means_s else {}


def refused(counted: Reading) -> dict[str, int | float]:
    """Return what all units refused, by cause; causes without any are left out."""
    found: dict[str, int | float] = {}
    for counters in counted.values():
        for name, value in counters.items():
            if name.startswith(REFUSED) and value:
                cause = name.removeprefix(REFUSED)
                found[cause] = found.get(cause, 0) + value
    return found


LATE = 0.1
"""Share of the window by which a unit's own time may be shorter because of when it was read; a
unit with less was absent for part of the window."""


def _value(row: Row, units: Sequence[Counters], time_s: float) -> int | float | None:
    if not units:
        return None
    if row.kind == "sum":
        return sum(unit[row.counter] for unit in units)
    if row.kind == "each":
        divisor = sum(unit.get(row.by, 0) for unit in units) if row.by else len(units)
        return sum(unit[row.counter] for unit in units) / divisor if divisor else None
    if time_s <= 0:
        return None
    rates = [unit[row.counter] / max(unit.get(ELAPSED, 0), (1 - LATE) * time_s) for unit in units]
    return sum(rates) if row.kind == "rate" else sum(rates) / len(rates)


def accounts(
    totals: Reading, balance: Balance, next_mep: int, packing: int, sink: str
) -> dict[str, int]:
    """Return the fates of all events of a run that has ended, as `events_accounted.*`.

    `totals` are the counters of the whole run, `balance` the fates that no counter shows,
    `next_mep` the first number that was assigned to no builder unit, `sink` the scenario's
    `measure.sink`. Each fate is counted on its own: their sum is `begun`, unless events were built
    twice. An event built, complete or not, and then not processed or not written is neither `built`
    nor `incomplete`.
    """

    def meps(counter: str) -> int:
        return int(sum(unit.get(counter, 0) for unit in totals.values()))

    told = {
        "built": CounterName.meps_built,
        "incomplete": CounterName.meps_incomplete,
        "dropped": CounterName.meps_dropped,
        "discarded": CounterName.meps_discarded,
    }
    found = {fate: meps(counter) for fate, counter in told.items()}
    if sink != "user":
        lost = [unprocessed(unit) for unit in totals.values()]
        found["not_processed"] = sum(each.meps for each in lost)
        found["incomplete"] -= sum(each.incomplete for each in lost)
        found["built"] -= sum(each.meps - each.incomplete for each in lost)
    if sink == "file":
        found["not_written"] = meps(NOT_WRITTEN)
        found["incomplete"] -= meps(INCOMPLETE_NOT_WRITTEN)
        found["built"] -= meps(NOT_WRITTEN) - meps(INCOMPLETE_NOT_WRITTEN)
    found |= {"unfinished": balance.unfinished, "skipped": balance.skipped}
    return {fate: count * packing for fate, count in ({"begun": next_mep} | found).items()}
