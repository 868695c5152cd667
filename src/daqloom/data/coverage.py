"""Event numbers of each source in a recording, as intervals: memory grows with gaps, not events."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

LAST_EVENT = 2**64 - 2
"""Largest valid event number: the exclusive end of an interval must fit into 64 bits."""
MOST_EXAMPLES = 10
"""Maximum examples listed for each kind of finding; all findings are counted."""
PENDING = 1 << 16
"""Minimum number of new intervals that are collected before a merge."""


@dataclass(frozen=True)
class EventRange:
    """Events from `first` to `last`, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Duplicate(EventRange):
    """Events of one source that occur more than once."""

    source: int
    file: str
    """A file that contains a repetition of the events."""


@dataclass(frozen=True)
class Incomplete(EventRange):
    """Events that some sources have and `missing_sources` lack."""

    missing_sources: tuple[int, ...]


class _Source:
    """Event numbers of a source: merged disjoint ascending intervals [first, end), and new ones."""

    def __init__(self) -> None:
        self.firsts: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.ends: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.new_firsts, self.new_ends, self.new_files = array("Q"), array("Q"), array("q")

    def add(self, first: int, end: int, file: int) -> bool:
        """Add an interval; return False if it only extends the last one."""
        if self.new_ends and self.new_ends[-1] == first and self.new_files[-1] == file:
            self.new_ends[-1] = end
            return False
        self.new_firsts.append(first)
        self.new_ends.append(end)
        self.new_files.append(file)
        return True

    def merge(self) -> tuple[int, list[tuple[int, int, int]]]:
        """Merge the new intervals; return the number of repeated events, and the first repetitions
        as (first, end, file)."""
        if not self.new_firsts:
            return 0, []
        firsts = np.concatenate((self.firsts, np.array(self.new_firsts, np.uint64)))
        ends = np.concatenate((self.ends, np.array(self.new_ends, np.uint64)))
        files = np.concatenate((np.full(len(self.firsts), -1), np.array(self.new_files, np.int64)))
        del self.new_firsts[:], self.new_ends[:], self.new_files[:]
        order = np.argsort(firsts, kind="stable")
        firsts, ends, files = firsts[order], ends[order], files[order]
        covered = np.maximum.accumulate(ends)  # largest end so far
        overlaps = np.flatnonzero(firsts[1:] < covered[:-1]) + 1
        repeat_ends = np.minimum(covered[overlaps - 1], ends[overlaps])
        count = int((repeat_ends - firsts[overlaps]).sum())
        examples = []
        for place, end in zip(overlaps[:MOST_EXAMPLES], repeat_ends, strict=False):
            # Merged intervals are disjoint, so one of two overlapping intervals is new and has a
            # file.
            file = files[place] if files[place] >= 0 else files[np.argmax(ends[:place])]
            examples.append((int(firsts[place]), int(end), int(file)))
        starts = np.concatenate(([0], np.flatnonzero(firsts[1:] > covered[:-1]) + 1))
        self.firsts = firsts[starts]
        self.ends = covered[np.concatenate((starts[1:] - 1, [len(firsts) - 1]))]
        return count, examples


@dataclass
class Gaps:
    """Events that are missing between the first and the last of a recording."""

    events: int = 0
    """Number of events that some source has."""
    lost_events: int = 0
    """Number of events that no source has."""
    incomplete_events: int = 0
    """Number of events that some sources have and others lack."""
    missing: int = 0
    """Number of (source, event) pairs that incomplete events lack."""
    lost: list[EventRange] = field(default_factory=list)
    incomplete: list[Incomplete] = field(default_factory=list)
    """First `MOST_EXAMPLES` ranges of incomplete events; `lost` has those of lost events."""


class Coverage:
    """Collects event numbers of a recording, in any order, and finds duplicates and gaps."""

    def __init__(self) -> None:
        self._sources: dict[int, _Source] = {}
        self._files: list[str] = []
        self._pending = 0
        self._merge_at = PENDING
        self._duplicates = 0
        self._examples: list[Duplicate] = []

    def begin_file(self, file: str) -> None:
        """Attribute all later events to `file`."""
        self._files.append(file)

    def add(self, source: int, first: int, events: int) -> None:
        """Add `events` events of a source from `first` on; 0 only registers the source."""
        found = self._sources.get(source)
        if found is None:
            found = self._sources[source] = _Source()
        if events:
            self._pending += found.add(first, first + events, len(self._files) - 1)
            if self._pending >= self._merge_at:
                self._merge()

    @property
    def sources(self) -> list[int]:
        """Source ids, ascending."""
        return sorted(self._sources)

    def duplicates(self) -> tuple[int, list[Duplicate]]:
        """Return the number of repeated (source, event) pairs, and the first few places."""
        self._merge()
        return self._duplicates, self._examples

    def span(self) -> EventRange | None:
        """Return the range from the first to the last event of any source; None without events."""
        self._merge()
        held = [each for each in self._sources.values() if len(each.firsts)]
        if not held:
            return None
        first = min(int(each.firsts[0]) for each in held)
        return EventRange(first, max(int(each.ends[-1]) for each in held) - 1)

    def gaps(self) -> Gaps:
        """Return the events that are missing within `span`."""
        self._merge()
        result = Gaps()
        sources = self._sources.values()
        if self.span() is None:
            return result
        firsts = np.sort(np.concatenate([each.firsts for each in sources]))
        ends = np.sort(np.concatenate([each.ends for each in sources]))
        # All events between two neighbouring points are present in the same sources.
        points = np.unique(np.concatenate((firsts, ends)))
        having = np.searchsorted(firsts, points, "right") - np.searchsorted(ends, points, "right")
        having, lengths = having[:-1], np.diff(points)
        absent = len(self._sources) - having
        lost, partial = having == 0, (having > 0) & (absent > 0)
        result.events = int(lengths[~lost].sum())
        result.lost_events = int(lengths[lost].sum())
        result.incomplete_events = int(lengths[partial].sum())
        present = sum(int((each.ends - each.firsts).sum()) for each in sources)
        result.missing = len(self._sources) * result.events - present
        for place in np.flatnonzero(lost)[:MOST_EXAMPLES]:
            result.lost.append(EventRange(int(points[place]), int(points[place + 1]) - 1))
        for place in np.flatnonzero(partial)[:MOST_EXAMPLES]:
            first, last = int(points[place]), int(points[place + 1]) - 1
            result.incomplete.append(Incomplete(first, last, tuple(self._lacking(points[place]))))
        return result

    def _lacking(self, event: np.uint64) -> Iterator[int]:
        for source in self.sources:
            held = self._sources[source]
            place = int(np.searchsorted(held.firsts, event, "right")) - 1
            if place < 0 or held.ends[place] <= event:
                yield source

    def _merge(self) -> None:
        if not self._pending:
            return
        for source, held in self._sources.items():
            count, examples = held.merge()
            self._duplicates += count
            for first, end, file in examples[: MOST_EXAMPLES - len(self._examples)]:
                self._examples.append(Duplicate(first, end - 1, source, self._files[file]))
        self._pending = 0
        # The next merge waits for as many new intervals as are stored, so the total cost is linear.
        self._merge_at = max(PENDING, sum(len(each.firsts) for each in self._sources.values()))
