"""Warnings of a measurement: checks, losses and failures, as sentences."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from daqloom.base import lazy
from daqloom.results.metrics import with_unit
from daqloom.results.result import Result
from daqloom.scenario.schema.models import Scenario

if TYPE_CHECKING:
    from daqloom._engine import Counters

with lazy.imports():
    from daqloom import data


def checks(result: Result) -> Iterator[str]:
    """Return a sentence on the checks of events, if there were any."""
    names = ("events_checked", "events_wrong", "events_repeated", "fragments_checked")
    events, wrong, twice, fragments = (result.metric(name) or 0 for name in names)
    size = result.metric("checked_bytes") or 0
    if not events and not wrong:
        return
    verdict = "none of them wrong" if not wrong else f"{wrong:,.0f} OTHER EVENTS WERE WRONG"
    verdict += f", {twice:,.0f} DUPLICATES" if twice else ", no duplicates"
    yield (
        f"Checked byte for byte: {events:,.0f} events, {fragments:,.0f} fragments, "
        f"{size / 1e9:.3g} GB; {verdict}."
    )


def failures(result: Result) -> Iterator[str]:
    """Return the failures of a run with a result."""
    if result.failure:
        yield result.failure
    yield from wrong(result)
    yield from _account_gaps(result)
    if lost := result.metric("events_not_written"):
        yield f"{lost:,.0f} events were not written: the recording is incomplete"


def damage(counted: Mapping[int, Counters]) -> Iterator[str]:
    """Return sentences on damaged data of the whole run, which was not used."""
    units = counted.values()
    if records := sum(each.transport_damaged_records or 0 for each in units):
        yield (
            f"{records:,} records came damaged, and each ended its connection; find what changes "
            "bytes between the units"
        )
    if writes := sum(each.transport_damaged_writes or 0 for each in units):
        yield f"{writes:,} writes came damaged, and were sent again"
    if places := sum(each.places_skipped or 0 for each in units):
        yield (
            f"the replay skipped {places:,} damaged places of the recording; `daqloom data check` "
            "lists them"
        )


def omitted_checks(counted: Mapping[int, Counters], packing: int) -> Iterator[str]:
    """Return a sentence on replayed events of the whole run that could not be checked."""
    if meps := sum(each.meps_unchecked or 0 for each in counted.values()):
        yield (
            f"{meps * packing:,} replayed events were not checked: their builder units lack files "
            "of the recording, or indices of more than 250 MB of them; give each machine all files "
            "with their indices"
        )


def wrong(result: Result) -> Iterator[str]:
    """Return the failed checks of built events."""
    if damaged := result.metric("events_wrong"):
        yield (
            f"{damaged:,.0f} events had wrong bytes: they were damaged on their way, or the source "
            "sends other data than the sink checks"
        )
    if repeated := result.metric("events_repeated"):
        yield f"{repeated:,.0f} events were duplicates: a consumer received them twice"


def _account_gaps(result: Result) -> Iterator[str]:
    accounts = result.metrics.get("events_accounted")
    if isinstance(accounts, Mapping):
        ended = sum(events for fate, events in accounts.items() if fate != "begun")
        if negative := [fate for fate, events in accounts.items() if events < 0]:
            yield f"{negative[0]} is {accounts[negative[0]]:,} events: they were not counted right"
        if ended != accounts["begun"]:
            yield (
                f"{ended:,} events were accounted for, and only {accounts['begun']:,} were begun: "
                "some were built twice"
            )


FATES = (
    *("incomplete", "dropped", "discarded", "not_processed"),
    *("not_written", "unfinished", "skipped", "in_flight"),
)


def fates(result: Result) -> Iterator[str]:
    """Return a sentence on the fates of all events of the run."""
    accounts = result.metrics.get("events_accounted")
    if not isinstance(accounts, Mapping):
        return
    begun, built = accounts["begun"], accounts["built"]
    others = [
        f"{accounts[fate]:,} {fate.replace('_', ' ')}" for fate in FATES if accounts.get(fate)
    ]
    rest = f"{built:,} were built, {', '.join(others)}" if others else "all were built"
    yield f"Of the {begun:,} events of the whole run, warm-up included, {rest}."


MOST_NAMED = 4


def unprocessed_meps(counters: Counters) -> tuple[int, int]:
    """Return the MEPs, and the incomplete ones among them, that a unit built and its sink did not
    process: killed processes leave them in their output buffers."""
    incomplete = counters.meps_incomplete or 0
    return (
        (counters.meps_built or 0) + incomplete - (counters.meps_processed or 0),
        incomplete - (counters.incomplete_meps_processed or 0),
    )


def lost_events(totals: Mapping[int, Counters], packing: int, sink: str) -> Iterator[str]:
    """Return sentences on events that sinks (`measure.sink`) did not process or write, from the
    counters of each unit at the end of a run."""
    killed = {unit: unprocessed_meps(each)[0] for unit, each in totals.items()}
    if sink != "user" and any(killed.values()):
        yield (
            f"{sum(killed.values()) * packing:,} events were built and then lost: "
            f"{_units([unit for unit, meps in killed.items() if meps])} ended before the sink had "
            "processed them"
        )
    units = {unit: each for unit, each in totals.items() if each.meps_not_written}
    if units:
        count = sum(each.meps_not_written or 0 for each in units.values()) * packing
        why = " and ".join(dict.fromkeys(each.causes_of_loss for each in units.values()))
        yield (
            f"{count:,} events were built, but not written or written without some sources, by "
            f"{_units(units)}: {why}"
        )


def _units(numbers: Iterable[int]) -> str:
    named = [str(number) for number in sorted(numbers)]
    return f"{'unit' if len(named) == 1 else 'units'} {', '.join(named)}"


def unfinished_files(scenario: Scenario) -> Iterator[str]:
    """Return a sentence on files of the recording that no unit will finish."""
    folder = scenario.measure.sink_files
    if scenario.measure.sink != "file":
        return
    try:
        left = [each for each in data.unfinished_files(folder) if not each.in_use]
    except OSError:  # units on other machines wrote it there
        return
    if left:
        names = ", ".join(os.path.basename(each.file) for each in left[:MOST_NAMED])
        more = ", …" if len(left) > MOST_NAMED else ""
        size = with_unit(sum(each.nbytes for each in left), "B")
        yield (
            f"{len(left)} unfinished {'file' if len(left) == 1 else 'files'} in {folder}, {size}: "
            f"{names}{more}; `daqloom data recover {folder}` finishes or deletes files that killed "
            "units left"
        )
