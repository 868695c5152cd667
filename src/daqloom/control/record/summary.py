"""Summary of a run: sums until now, and sentences about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from daqloom.base.words import duration, plural
from daqloom.control.counters.metrics import Part, accounts, fragment_share
from daqloom.control.record.record import Summary, local_time
from daqloom.results.metrics import for_people

if TYPE_CHECKING:
    from daqloom._engine import RunControl

MOST_CAUSES = 50
"""Losses of units that a summary keeps."""
MOST_NAMED = 5


def sums(
    run: RunControl,
    causes: Iterable[tuple[float, str]] = (),
    *,
    parts: Iterable[Part],
    number: int | None = None,
    sink: str = "",
    state: str = "running",
    length_s: float = 0.0,
    building_s: float = 0.0,
) -> Summary:
    """Return the summary of a run, of which each part has another setup. `causes`: losses of units,
    with their times. `sink`: measure.sink of a run that has ended, which events may not have
    reached."""
    has_ended = state != "running"
    fates: Counter[str] = Counter()
    events_built = 0
    for part in parts:
        known = sink if has_ended else "user"
        fates.update(accounts(part.counted, part.balance, 0, part.packing, known))
        if not has_ended:  # which `accounts` leaves out without the sink
            unwritten = (each.meps_not_written or 0 for each in part.counted.values())
            fates["not_written"] += part.packing * sum(unwritten)
        delivered = (each.meps_delivered or 0 for each in part.counted.values())
        events_built += part.packing * sum(delivered)
    counted = [unit.tally.totals for unit in run.units]
    share = fragment_share(counted)
    return Summary(
        state="failed" if has_ended and run.failure else state,
        failure=run.failure[:1000],
        length_s=length_s,
        number=number,
        events=events_built,
        bytes=(1.0 if share is None else share)
        * sum(each.mfp_bytes_built or 0 for each in counted),
        building_s=building_s,
        lost={
            fate: count
            for fate, count in fates.items()
            if count > 0 and fate not in ("begun", "built")
        },
        units_lost=run.counts["units_lost"],
        regroupings=run.counts["regroupings"],
        causes=tuple((max(0.0, time_s), text[:1000]) for time_s, text in causes)[:MOST_CAUSES],
    )


def losses(lost: dict[str, int]) -> str:
    """Return lost events by cause, the most first, such as "1,200 incomplete, 30 discarded"."""
    most = sorted(lost.items(), key=lambda each: -each[1])
    return ", ".join(f"{count:,} {cause.replace('_', ' ')}" for cause, count in most)


def sentences(summary: Summary, began: datetime, run: str) -> Iterator[str]:
    """Yield sentences on a run with the ID `run`, if it has built events or has lost units."""
    if summary.events:
        rate = for_people("event_rate_hz", summary.event_rate_hz)
        throughput = for_people("throughput_bps", summary.throughput_bps)
        yield (
            f"{run} built {summary.events:,} events in {duration(summary.length_s)}: {rate} and "
            f"{throughput} while it was running"
        )
    if summary.lost:
        yield f"lost events: {losses(summary.lost)}"
    if summary.regroupings or summary.causes:
        named = [f"{clock(began, time_s)} {text}" for time_s, text in summary.causes[:MOST_NAMED]]
        more = len(summary.causes) - len(named)
        yield f"{plural(summary.regroupings, 'regrouping')}" + (
            f": {'; '.join(named)}" + (f"; and {more} more" if more > 0 else "") if named else ""
        )


def clock(began: datetime, time_s: float) -> str:
    """Return the local time of day of a time of the run, such as 03:00:15."""
    return local_time(began, time_s)[-8:]
