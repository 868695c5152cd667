"""Which events each source has in a recording: kept as intervals, so that memory grows with the
holes and not with the events."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

LAST_EVENT = 2**64 - 2
"""The end of an interval, one more, has 64 bits."""
MOST_EXAMPLES = 10
"""So many places of a kind are named; all are counted."""
PENDING = 1 << 16
"""Intervals that are collected before they are merged."""


@dataclass(frozen=True)
class EventRange:
    """Events from `first` to `last`, both included."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


@dataclass(frozen=True)
class Duplicate(EventRange):
    """Events of one source that are there more than once."""

    source: int
    file: str
    """One of those that have them again."""


@dataclass(frozen=True)
class Incomplete(EventRange):
    """Events that some sources have and these lack."""

    missing_sources: tuple[int, ...]


class _Source:
    """The events of one source: disjoint intervals [first, end), ascending, and what is pending."""

    def __init__(self) -> None:
        self.firsts: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.ends: NDArray[np.uint64] = np.empty(0, np.uint64)
        self.new_firsts, self.new_ends, self.new_files = array("Q"), array("Q"), array("q")

    def add(self, first: int, end: int, file: int) -> bool:
        """Whether that is an interval more."""
        if self.new_ends and self.new_ends[-1] == first and self.new_files[-1] == file:
            self.new_ends[-1] = end
            return False
        self.new_firsts.append(first)
        self.new_ends.append(end)
        self.new_files.append(file)
        return True

    def merge(self) -> tuple[int, list[tuple[int, int, int]]]:
        """Events that are there again, and the first of them as (first, end, file)."""
        if not self.new_firsts:
            return 0, []
        firsts = np.concatenate((self.firsts, np.array(self.new_firsts, np.uint64)))
        ends = np.concatenate((self.ends, np.array(self.new_ends, np.uint64)))
        files = np.concatenate((np.full(len(self.firsts), -1), np.array(self.new_files, np.int64)))
        del self.new_firsts[:], self.new_ends[:], self.new_files[:]
        order = np.argsort(firsts, kind="stable")
        firsts, ends, files = firsts[order], ends[order], files[order]
        covered = np.maximum.accumulate(ends)  # by all up to here, without a hole from firsts on
        overlaps = np.flatnonzero(firsts[1:] < covered[:-1]) + 1
        again_ends = np.minimum(covered[overlaps - 1], ends[overlaps])
        count = int((again_ends - firsts[overlaps]).sum())
        examples = []
        for place, end in zip(overlaps[:MOST_EXAMPLES], again_ends, strict=False):
            # What was merged before overlaps nothing that was merged before: one of both is new.
            file = files[place] if files[place] >= 0 else files[np.argmax(ends[:place])]
            examples.append((int(firsts[place]), int(end), int(file)))
        starts = np.concatenate(([0], np.flatnonzero(firsts[1:] > covered[:-1]) + 1))
        self.firsts = firsts[starts]
        self.ends = covered[np.concatenate((starts[1:] - 1, [len(firsts) - 1]))]
        return count, examples


@dataclass
class Gaps:
    """What is not there, between the first and the last event of a recording."""

    events: int = 0
    """Number of events that some source has."""
    lost_events: int = 0
    """Number of events that no source has."""
    incomplete_events: int = 0
    """Number of events that some sources have and others lack."""
    missing: int = 0
    """(source, event) pairs of the latter."""
    lost: list[EventRange] = field(default_factory=list)
    """The first few."""
    incomplete: list[Incomplete] = field(default_factory=list)
    """The first few."""


class Coverage:
    """Collects what a recording has, in any order."""

    def __init__(self) -> None:
        self._sources: dict[int, _Source] = {}
        self._files: list[str] = []
        self._pending = 0
        self._merge_at = PENDING
        self._duplicates = 0
        self._examples: list[Duplicate] = []

    def begin_file(self, file: str) -> None:
        """Begin a file: what is added next is from there."""
        self._files.append(file)

    def add(self, source: int, first: int, events: int) -> None:
        """That source has `events` events from `first` on; 0: it is known to exist."""
        found = self._sources.get(source)
        if found is None:
            found = self._sources[source] = _Source()
        if events:
            self._pending += found.add(first, first + events, len(self._files) - 1)
            if self._pending >= self._merge_at:
                self._merge()

    @property
    def sources(self) -> list[int]:
        """All that were named, ascending."""
        return sorted(self._sources)

    def duplicates(self) -> tuple[int, list[Duplicate]]:
        """(source, event) pairs that are there again, and the first few places."""
        self._merge()
        return self._duplicates, self._examples

    def span(self) -> EventRange | None:
        """From the first to the last event that any source has."""
        self._merge()
        held = [each for each in self._sources.values() if len(each.firsts)]
        if not held:
            return None
        first = min(int(each.firsts[0]) for each in held)
        return EventRange(first, max(int(each.ends[-1]) for each in held) - 1)

    def gaps(self) -> Gaps:
        """What is missing within `span`."""
        self._merge()
        found = Gaps()
        everybody = self._sources.values()
        if self.span() is None:
            return found
        firsts = np.sort(np.concatenate([each.firsts for each in everybody]))
        ends = np.sort(np.concatenate([each.ends for each in everybody]))
        # Between two such points the sources that have the events are the same.
        points = np.unique(np.concatenate((firsts, ends)))
        having = np.searchsorted(firsts, points, "right") - np.searchsorted(ends, points, "right")
        having, lengths = having[:-1], np.diff(points)
        absent = len(self._sources) - having
        lost, partial = having == 0, (having > 0) & (absent > 0)
        found.events = int(lengths[~lost].sum())
        found.lost_events = int(lengths[lost].sum())
        found.incomplete_events = int(lengths[partial].sum())
        present = sum(int((each.ends - each.firsts).sum()) for each in everybody)
        found.missing = len(self._sources) * found.events - present
        for place in np.flatnonzero(lost)[:MOST_EXAMPLES]:
            found.lost.append(EventRange(int(points[place]), int(points[place + 1]) - 1))
        for place in np.flatnonzero(partial)[:MOST_EXAMPLES]:
            first, last = int(points[place]), int(points[place + 1]) - 1
            found.incomplete.append(Incomplete(first, last, tuple(self._lacking(points[place]))))
        return found

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
        # So that merging costs no more than so often what is kept.
        self._merge_at = max(PENDING, sum(len(each.firsts) for each in self._sources.values()))
