"""From the counters of units to the metrics of a result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from daqloom.measure.latencies import latencies
from daqloom.measure.node import ELAPSED

Counters = Mapping[str, int | float]
Reading = Mapping[int, Counters]
"""The totals of each unit at one time."""
Metrics = dict[str, int | float | dict[str, int | float]]


@dataclass(frozen=True)
class Row:
    """A metric, nested by a dot at most once, and the counter of units that it comes from."""

    metric: str
    counter: str
    kind: Literal["sum", "rate", "share", "each"]
    """What units count, together; the same per second; of the time of those that count it, the
    mean; per what `by` counts, of all units."""
    factor: Literal["one", "bits", "events"] = "one"
    """Counters are of events, or of MEPs, which stand for as many events as are packed."""
    by: str = ""


ROWS: tuple[Row, ...] = (
    Row("event_rate_hz", "meps_delivered", "rate", "events"),
    Row("throughput_bps", "mfp_bytes_built", "rate", "bits"),
    Row("events_built", "meps_built", "sum", "events"),
    Row("events_incomplete", "meps_incomplete", "sum", "events"),
    Row("events_discarded", "meps_discarded", "sum", "events"),
    Row("events_checked", "meps_checked", "sum", "events"),
    Row("events_wrong", "meps_wrong", "sum", "events"),
    Row("events_repeated", "meps_repeated", "sum", "events"),
    Row("fragments_checked", "fragments_checked", "sum"),
    Row("checked_bytes", "fragment_bytes_checked", "sum"),
    Row("collection_latency_s.mean", "building_s", "each", by="meps_delivered"),
    Row("phases", "phases", "sum"),
    Row("phase_s", "in_phases_s", "each", by="phases"),
    Row("barrier_share", "in_barrier_s", "share"),
    Row("barrier_s.whole", "in_barrier_s", "each", by="barriers"),
    Row("idle_share", "idle_s", "share"),
    Row("waiting_share.source", "waiting_for_source_s", "share"),
    Row("waiting_share.builder", "waiting_for_builder_s", "share"),
    Row("waiting_share.network", "waiting_for_network_s", "share"),
    Row("control_messages", "messages_sent", "sum"),
    Row("source_buffer_full", "mfps_blocked", "sum"),
    Row("unit_cores", "cpu_s", "share"),
)
"""A metric whose counter no unit has is absent."""


OF_PHASES = frozenset({"phases", "phase_s", "barrier_share", "barrier_s", "idle_share"})
"""Metrics, by the first part of their names, that only linear shifting has."""


def rows_of(protocol: str) -> tuple[Row, ...]:
    """Those of `nodes.protocol`."""
    return tuple(
        row for row in ROWS if protocol == "shift" or row.metric.partition(".")[0] not in OF_PHASES
    )


def difference(begin: Reading, end: Reading) -> dict[int, dict[str, int | float]]:
    """What each unit has counted in between."""
    return {
        unit: {name: value - begin.get(unit, {}).get(name, 0) for name, value in counters.items()}
        for unit, counters in end.items()
    }


def metrics(counted: Reading, packing: int, rows: Sequence[Row] = ROWS) -> Metrics:
    """Of what units have counted, with `packing` events in a MEP. Rates are the sum of those of
    the units, each over its own time: no two are read at the same moment."""
    found: Metrics = {}
    window_s = max((counters.get(ELAPSED, 0) for counters in counted.values()), default=0)
    factors = {"one": 1, "bits": 8, "events": packing}
    for row in rows:
        units = [counters for counters in counted.values() if row.counter in counters]
        value = _value(row, units, float(window_s))
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
    built = _total("mep_bytes_built", counted.values())
    if built:
        found["overhead_share"] = 1 - share * _total("mfp_bytes_built", counted.values()) / built
    throughput = found.get("throughput_bps")
    if isinstance(throughput, int | float):
        found["throughput_bps"] = share * throughput
    return found


def _fragment_share(units: Collection[Counters]) -> float | None:
    """Of the bytes of multi-fragment packets; only readout units look into them."""
    taken = _total("mfp_bytes_taken", units)
    return _total("fragment_bytes_taken", units) / taken if taken else None


def _total(counter: str, units: Collection[Counters]) -> int | float:
    return sum(unit.get(counter, 0) for unit in units)


def _nest(found: Metrics, name: str) -> dict[str, int | float]:
    nest = found.setdefault(name, {})
    assert isinstance(nest, dict)
    return nest


def _skew(units: Collection[Counters]) -> dict[str, float]:
    """How long the unit that comes last to barriers spends in one, and the one that comes first."""
    means_s = [
        unit.get("in_barrier_s", 0) / unit["barriers"] for unit in units if unit.get("barriers")
    ]
    return {"least": min(means_s), "most": max(means_s)} if means_s else {}


REFUSED = "refused_"
"""Counters of units that begin so are what they refused, by cause."""


def refused(counted: Reading) -> dict[str, int | float]:
    """The same of all units, by cause; those without any left out."""
    found: dict[str, int | float] = {}
    for counters in counted.values():
        for name, value in counters.items():
            if name.startswith(REFUSED) and value:
                cause = name.removeprefix(REFUSED)
                found[cause] = found.get(cause, 0) + value
    return found


LATE = 0.1
"""By this share of the window may a unit's own time be shorter, because of when it was read; with
less it was not there all the time."""


def _value(row: Row, units: Sequence[Counters], window_s: float) -> int | float | None:
    if not units:
        return None
    if row.kind == "sum":
        return sum(unit[row.counter] for unit in units)
    if row.kind == "each":
        divisor = sum(unit.get(row.by, 0) for unit in units) if row.by else len(units)
        return sum(unit[row.counter] for unit in units) / divisor if divisor else None
    if window_s <= 0:
        return None
    rates = [unit[row.counter] / max(unit.get(ELAPSED, 0), (1 - LATE) * window_s) for unit in units]
    return sum(rates) if row.kind == "rate" else sum(rates) / len(rates)


def accounts(totals: Reading, next_mep: int, packing: int) -> dict[str, int]:
    """What has become of every event of a run, once it has ended, by `events_accounted.*`.

    `totals` are the counters of the whole run, `next_mep` the first number that no builder unit
    was given. What no builder unit tells of is unfinished.
    """
    told = {
        "built": "meps_built",
        "incomplete": "meps_incomplete",
        "dropped": "meps_dropped",
        "discarded": "meps_discarded",
    }
    found = {
        fate: int(sum(unit.get(counter, 0) for unit in totals.values())) * packing
        for fate, counter in told.items()
    }
    begun = next_mep * packing
    return {"begun": begun, **found, "unfinished": begun - sum(found.values())}
