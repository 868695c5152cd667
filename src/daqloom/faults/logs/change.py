"""Contents of logs: changes of ports, failures with a duration, error counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from daqloom.faults.logs.clock import Calendar

COUNTERS = "counters"
"""Format of files that have counters and no times."""


class Port(NamedTuple):
    """One end of a link, with the names of a log."""

    node: str
    """Name of a host or switch, or its GUID as `0x…`."""
    port: str
    """Number or name; empty for a node with a single port, or where `node` names the link."""


class Change(NamedTuple):
    """A port that went down or came up."""

    at_s: float
    """Seconds since 1970 by the log's clock."""
    port: Port
    is_up: bool
    cause: str = ""


class Outage(NamedTuple):
    """A failure that a log lists with its begin and end."""

    begin_s: float
    end_s: float | None
    """End; None if it had not ended."""
    port: Port
    cause: str = ""


class PortCounters(NamedTuple):
    """Error counters of a port."""

    port: Port
    counts: dict[str, int]
    """By the name in the InfiniBand specification, such as `SymbolErrorCounter`."""


@dataclass
class LogContent:
    """Contents of all logs of a site."""

    changes: list[Change] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    counters: list[PortCounters] = field(default_factory=list)
    repeated: list[Change] = field(default_factory=list)
    """Changes reported by a second source; they count for ports without changes of their own."""
    cables: dict[Port, Port] = field(default_factory=dict)
    """Other end of a port, both ways, where a log names it."""
    names: dict[str, str] = field(default_factory=dict)
    """Name of the node with a GUID, `0x…`."""
    begin_s: float = float("inf")
    """Time of the first line that has one; `end_s`: of the last."""
    end_s: float = float("-inf")
    lines: Counter[str] = field(default_factory=Counter)
    """Lines by fate (`daqloom.base.line_counts`), and those `too long` or behind a `clock step`."""
    first_malformed: str = ""
    """Number, text and expected form of the first malformed line."""
    formats: Counter[str] = field(default_factory=Counter)
    """Files by format: `opensm`, `syslog`, `table`, `counters`."""

    @property
    def has_only_counters(self) -> bool:
        """Whether no file has times."""
        return set(self.formats) == {COUNTERS}

    def cover(self, at_s: float, calendar: Calendar) -> None:
        """Extend the log to a time, and count a step back of the clock."""
        self.lines["clock step"] += calendar.steps_back(at_s)
        self.begin_s = min(self.begin_s, at_s)
        self.end_s = max(self.end_s, at_s)
