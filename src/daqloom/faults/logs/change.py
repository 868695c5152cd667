"""Contents of logs: changes of ports, failures with a duration, and error counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from daqloom.faults.logs.clock import Calendar

COUNTERS = "counters"
"""Format of files with error counters and without times."""


class Port(NamedTuple):
    """One end of a link, with names as in the log."""

    node: str
    """Name of a host or switch, or its GUID as `0x…`."""
    port: str
    """Number or name; empty for a node with a single port, or if `node` is the name of a link."""


class Change(NamedTuple):
    """A change of a port: it went down or came up."""

    at_s: float
    """Seconds since 1970 by the log's clock."""
    port: Port
    is_up: bool
    cause: str = ""


class Outage(NamedTuple):
    """A failure that a log lists with its begin and end."""

    begin_s: float
    end_s: float | None
    """End of the failure; None if it lasted beyond the log."""
    port: Port
    cause: str = ""


class PortCounters(NamedTuple):
    """Error counters of a port."""

    port: Port
    counts: dict[str, int]
    """Counts by name in the InfiniBand specification, such as `SymbolErrorCounter`."""


@dataclass
class LogContent:
    """Contents of all logs of a site."""

    changes: list[Change] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    counters: list[PortCounters] = field(default_factory=list)
    repeated: list[Change] = field(default_factory=list)
    """Changes from a second source, used only for ports without changes in `changes`."""
    cables: dict[Port, Port] = field(default_factory=dict)
    """Other end of a port, in both directions, if a log names it."""
    names: dict[str, str] = field(default_factory=dict)
    """Name of a node by its GUID, `0x…`."""
    begin_s: float = float("inf")
    """Time of the first line that has a time; `end_s`: of the last such line."""
    end_s: float = float("-inf")
    lines: Counter[str] = field(default_factory=Counter)
    """Lines by use (`daqloom.base.line_counts`), or `too long`, or behind a `clock step` back."""
    first_malformed: str = ""
    """Line number, text, and expected form of the first line that is malformed."""
    formats: Counter[str] = field(default_factory=Counter)
    """Number of files by format: `opensm`, `syslog`, `table`, `counters`."""

    @property
    def has_only_counters(self) -> bool:
        """Whether all files are error counters, which have no times."""
        return set(self.formats) == {COUNTERS}

    def cover(self, at_s: float, calendar: Calendar) -> None:
        """Extend the log's time range to `at_s`, and count a backward step of the clock."""
        self.lines["clock step"] += calendar.steps_back(at_s)
        self.begin_s = min(self.begin_s, at_s)
        self.end_s = max(self.end_s, at_s)
