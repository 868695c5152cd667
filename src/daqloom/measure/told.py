"""Sentences about what a measurement has checked, and about its failures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daqloom.result import Result


def checked(result: Result) -> Iterator[str]:
    """Return a sentence on what was checked and what was wrong; none where nothing was checked."""
    events, wrong, twice = (
        result.metric(f"events_{name}") or 0 for name in ("checked", "wrong", "repeated")
    )
    if not events and not wrong:
        return
    fragments = result.metric("fragments_checked") or 0
    size = result.metric("checked_bytes") or 0
    verdict = "none of them wrong" if not wrong else f"{wrong:,.0f} OTHER EVENTS WERE WRONG"
    verdict += f", {twice:,.0f} DUPLICATES" if twice else ", no duplicates"
    yield (
        f"Checked byte for byte: {events:,.0f} events, {fragments:,.0f} fragments, "
        f"{size / 1e9:.3g} GB; {verdict}."
    )


def failures(result: Result) -> Iterator[str]:
    """Return why the command failed although there is a result."""
    if repeated := result.metric("events_repeated"):
        yield f"{repeated:,.0f} events were duplicates: a consumer received them twice"
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
    if lost := result.metric("events_not_written"):
        yield f"{lost:,.0f} events were not written: the recording is incomplete"


FATES = (
    "incomplete",
    "dropped",
    "discarded",
    "not_processed",
    "not_written",
    "unfinished",
    "skipped",
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
