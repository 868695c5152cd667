"""Errors that the ports of a link have counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daqloom.faults.change import PortCounters
    from daqloom.faults.links import Links

SYMBOL, RECOVERY, DOWNED = "SymbolErrorCounter", "LinkErrorRecoveryCounter", "LinkDownedCounter"
_OF_THE_LINK = (RECOVERY, DOWNED)
"""Counters of events that both ends count; all others count what one end receives or sends."""


@dataclass(frozen=True)
class LinkErrors:
    """Counters of both ends, as far as a dump names them."""

    link: str
    counts: dict[str, int]
    """By the name of InfiniBand's specification: the sum of both ends; of recoveries and of times
    that the link went down, which both ends count, the larger number."""

    @property
    def symbol_errors(self) -> int:
        """Minor errors on the wire, of both directions."""
        return self.counts.get(SYMBOL, 0)

    @property
    def link_error_recoveries(self) -> int:
        """Times that the link trained anew and stayed up."""
        return self.counts.get(RECOVERY, 0)

    @property
    def link_downed(self) -> int:
        """Times that the link went down."""
        return self.counts.get(DOWNED, 0)

    def record(self) -> dict[str, Any]:
        """Return what is printed with --json."""
        return {
            "link": self.link,
            "symbol_errors": self.symbol_errors,
            "link_error_recoveries": self.link_error_recoveries,
            "link_downed": self.link_downed,
            "counters": self.counts,
        }


def errors_by_link(counters: Sequence[PortCounters], links: Links) -> list[LinkErrors]:
    """Return the errors of each link with any: those that went down most often first, then by
    symbol errors and recoveries. If several dumps name a port, the last one counts; ports that the
    network does not have are left out."""
    last = {each.port: each for each in counters}
    by_link: dict[str, list[PortCounters]] = {}
    for port, each in last.items():
        if link := links.of(port):
            by_link.setdefault(link, []).append(each)
    found = [LinkErrors(link, _counts(ends)) for link, ends in by_link.items()]
    return sorted(
        (each for each in found if each.counts),
        key=lambda e: (-e.link_downed, -e.symbol_errors, -e.link_error_recoveries, e.link),
    )


def _counts(ends: Sequence[PortCounters]) -> dict[str, int]:
    names = dict.fromkeys(name for end in ends for name in end.counts)
    counts = {}
    for name in names:
        values = [end.counts.get(name, 0) for end in ends]
        counts[name] = max(values) if name in _OF_THE_LINK else sum(values)
    return {name: count for name, count in counts.items() if count}
