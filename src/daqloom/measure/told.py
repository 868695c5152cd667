"""What a measurement proves, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from daqloom.result import Result


def checked(result: Result) -> Iterator[str]:
    """What was checked, and what of it was wrong; nothing where nobody checked."""
    events, wrong, twice = (
        result.metric(f"events_{name}") or 0 for name in ("checked", "wrong", "repeated")
    )
    if not events and not wrong:
        return
    fragments = result.metric("fragments_checked") or 0
    size = result.metric("checked_bytes") or 0
    verdict = "none of them wrong" if not wrong else f"{wrong:,.0f} MORE EVENTS WERE WRONG"
    verdict += f", {twice:,.0f} EVENTS CAME TWICE" if twice else ", none twice"
    yield (
        f"Checked byte for byte: {events:,.0f} events, {fragments:,.0f} fragments, "
        f"{size / 1e9:.3g} GB; {verdict}."
    )


FATES = ("incomplete", "dropped", "discarded", "unfinished")


def fates(result: Result) -> Iterator[str]:
    """What has become of every event of the whole run."""
    accounts = result.metrics.get("events_accounted")
    if not isinstance(accounts, Mapping):
        return
    begun, built = accounts["begun"], accounts["built"]
    others = [f"{accounts[fate]:,} {fate}" for fate in FATES if accounts.get(fate)]
    rest = f"{built:,} were built, {', '.join(others)}" if others else "all were built"
    yield f"Of the {begun:,} events of the whole run, warm-up included, {rest}."
