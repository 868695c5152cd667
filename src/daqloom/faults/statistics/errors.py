"""Errors counted by the ports of links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daqloom.faults.logs.change import PortCounters
    from daqloom.faults.statistics.links import Links

SYMBOL, RECOVERY, DOWNED = "SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter"
NAMED = {
    "symbol_errors": (SYMBOL, "symbol errors of both ends"),
    "link_error_recoveries": (RECOVERY, "recoveries of the link"),
    "link_downed": (DOWNED, "times that the link went down"),
}
"""Counters in every record: InfiniBand's counter and its meaning, by name."""
_OF_THE_LINK = (RECOVERY, DOWNED)
"""Counters of events that both ends count; other counters concern one end's traffic."""


@dataclass(frozen=True)
class LinkErrors:
    """Error counters of a link."""

    link: str
    counts: dict[str, int]
    """Counts by name in the InfiniBand specification: the sum of both ends, or the larger count for
    events that both ends count."""

    def record(self) -> dict[str, Any]:
        """Return the object that `--json` prints."""
        named = {name: self.counts.get(counter, 0) for name, (counter, _) in NAMED.items()}
        return {"link": self.link, **named, "counters": self.counts}


def errors_by_link(counters: Sequence[PortCounters], links: Links) -> list[LinkErrors]:
    """Return the links with errors, sorted by link-downed, symbol-error and recovery counts. The
    last dump of each port counts; ports outside the network are left out."""
    last = {each.port: each for each in counters}
    by_link: dict[str, list[PortCounters]] = {}
    for port, each in last.items():
        if link := links.name(port):
            by_link.setdefault(link, []).append(each)
    found = [LinkErrors(link, _counts(ends)) for link, ends in by_link.items()]

    def rank(errors: LinkErrors) -> tuple[int | str, ...]:
        return *(-errors.counts.get(name, 0) for name in (DOWNED, SYMBOL, RECOVERY)), errors.link

    return sorted((each for each in found if each.counts), key=rank)


def _counts(ends: Sequence[PortCounters]) -> dict[str, int]:
    names = dict.fromkeys(name for end in ends for name in end.counts)
    values = {name: [end.counts.get(name, 0) for end in ends] for name in names}
    counts = {name: (max if name in _OF_THE_LINK else sum)(each) for name, each in values.items()}
    return {name: count for name, count in counts.items() if count}
