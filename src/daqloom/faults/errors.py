"""Errors that the ports of a link have counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from daqloom.faults.change import PortCounters
    from daqloom.faults.links import Links


@dataclass(frozen=True)
class LinkErrors:
    """What both ends have counted, as far as a dump names them."""

    link: str
    symbol_errors: int
    """Minor errors on the wire, of both directions."""
    link_error_recoveries: int
    """Times that the link trained anew and stayed up, as the end says that counted more."""
    link_downed: int
    """Times that it went down: the same of both ends, unless one was reset."""

    def record(self) -> dict[str, Any]:
        """Return what is printed with --json."""
        return dict(vars(self))


def errors_by_link(counters: Sequence[PortCounters], links: Links) -> list[LinkErrors]:
    """Return the errors of each link with any, the most symbol errors first, then the most
    recoveries. Of a port that several dumps name, the last one counts; ports that the network does
    not have are left out."""
    last = {each.port: each for each in counters}
    by_link: dict[str, list[PortCounters]] = {}
    for port, each in last.items():
        if link := links.of(port):
            by_link.setdefault(link, []).append(each)
    found = [
        LinkErrors(
            link,
            sum(end.symbol_errors for end in ends),
            max(end.link_error_recoveries for end in ends),
            max(end.link_downed for end in ends),
        )
        for link, ends in by_link.items()
    ]
    counted = [e for e in found if e.symbol_errors or e.link_error_recoveries or e.link_downed]
    return sorted(
        counted,
        key=lambda e: (-e.symbol_errors, -e.link_error_recoveries, -e.link_downed, e.link),
    )
