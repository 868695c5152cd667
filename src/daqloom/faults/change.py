"""What a log says: a port that goes down or comes up, a failure with its duration, counters."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

COUNTERS = "counters"
"""Name of the format of files that have counters and no times."""


class Port(NamedTuple):
    """One end of a link, as a log names it."""

    node: str
    """Name of a host or switch, or its GUID as `0x…`."""
    port: str
    """Number or name; empty where the node has only one, or where `node` names the link."""


class Change(NamedTuple):
    """A port has gone down or come up."""

    at_s: float
    """Since 1970, by the log's own clock."""
    port: Port
    is_up: bool
    cause: str = ""


class Outage(NamedTuple):
    """A failure that a log tells as a whole."""

    begin_s: float
    end_s: float | None
    """None: it had not ended."""
    port: Port
    cause: str = ""


class PortCounters(NamedTuple):
    """Error counters of a port, at some time."""

    port: Port
    counts: dict[str, int]
    """By the name that the specification of InfiniBand gives, such as `SymbolErrorCounter`."""


@dataclass
class Told:
    """All that the logs of a site say."""

    changes: list[Change] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    counters: list[PortCounters] = field(default_factory=list)
    repeated: list[Change] = field(default_factory=list)
    """Changes that a second source reports; they count for ports without changes of their own."""
    cables: dict[Port, Port] = field(default_factory=dict)
    """The other end of a port, both ways, where a log names it."""
    names: dict[str, str] = field(default_factory=dict)
    """Name of the node with a GUID, `0x…`, where a log has both."""
    begin_s: float = float("inf")
    """Of the first line with a time, and of the last."""
    end_s: float = float("-inf")
    lines: Counter[str] = field(default_factory=Counter)
    """Lines by fate: `used`, `ignored`, `malformed`, as `daqloom.base.line_counts` has them; also
    `too long`, with a `clock step` back, and further notes of readers."""
    first_malformed: str = ""
    """Number, text and expected form of the first malformed line."""
    formats: Counter[str] = field(default_factory=Counter)
    """Files by format: `opensm`, `syslog`, `table`, `counters`."""

    @property
    def has_only_counters(self) -> bool:
        """Whether no file is a log: counters have no times."""
        return set(self.formats) == {COUNTERS}

    def seen(self, at_s: float) -> None:
        """Note a time of the log."""
        self.begin_s = min(self.begin_s, at_s)
        self.end_s = max(self.end_s, at_s)
