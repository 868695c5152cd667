"""The only flow table of a switch: entries of controllers, their counts and timeouts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from daqloom._switch import Changes
from daqloom.softswitch.configure import MOST_ENTRIES, MOST_METERS
from daqloom_sdn.openflow.actions import Treatment, engine_action, treatment_of
from daqloom_sdn.openflow.codec import Record
from daqloom_sdn.openflow.errors import Error, RefusedError
from daqloom_sdn.openflow.match import FlowMatch, match_of
from daqloom_sdn.openflow.messages import (
    ALL_TABLES,
    ANY_GROUP,
    NO_BUFFER,
    FlowCommand,
    FlowFlag,
    PortNo,
    Removal,
)
from daqloom_sdn.openflow.meters import Meters

TABLE = 0
"""Number of the only table."""
BATCH = 64
"""Entries that the switch takes in, changes or removes between two of its turns."""
_KNOWN_FLAGS = sum(FlowFlag)

Refuse = Callable[[RefusedError], None]
"""Called with the refusal of an entry whose message had been accepted."""


class Engine(Protocol):
    """A running switch."""

    def apply(self, changes: Changes) -> int:
        """Change it between two turns; return the number of the refused step, or -1."""

    def flow_counts(self, indices: list[int]) -> list[tuple[int, int]]:
        """Return packets and bytes of entries."""

    def ring_of(self, port: int, queue: int) -> int | None:
        """Return the number of the ring that is a queue of a port."""


@dataclass(frozen=True)
class Entry:
    """An entry of the flow table."""

    index: int
    """Place in the engine's table."""
    match: FlowMatch
    priority: int
    treatment: Treatment
    cookie: int
    flags: int
    idle_timeout_s: int
    hard_timeout_s: int
    since_s: float
    records: tuple[Record, tuple[Record, ...]]
    """Match and instructions of the message."""

    @property
    def key(self) -> tuple[int, FlowMatch]:
        """Priority and match, which no two entries share."""
        return self.priority, self.match


@dataclass(frozen=True)
class Removed:
    """A removed entry and its last counts."""

    entry: Entry
    reason: Removal
    packets: int
    bytes: int


class FlowTable:
    """Entries by priority and match. `meters`: the largest number of meters; `clock`: seconds that
    never decrease."""

    def __init__(
        self,
        engine: Engine,
        ports: int,
        clock: Callable[[], float] = time.monotonic,
        meters: int = MOST_METERS,
    ) -> None:
        self.clock = clock
        self.meters = Meters(meters)
        self._engine, self._ports = engine, ports
        self._entries: dict[tuple[int, FlowMatch], Entry] = {}
        self._free = list(range(MOST_ENTRIES - 1, -1, -1))
        self._used: dict[int, tuple[int, float]] = {}
        """Packets when an entry was last in use, and the time of that (s), by index."""
        self._staged: list[tuple[Entry, Refuse]] = []
        """New entries that the engine does not have yet."""

    def __len__(self) -> int:
        return len(self._entries)

    def modify(self, message: Record, refuse: Refuse | None = None) -> list[Removed]:
        """Apply a flow-mod. Raises RefusedError. With `refuse`, the engine gets a new entry
        together with others when they are settled, and may refuse it then."""
        if message.buffer_id != NO_BUFFER:
            raise RefusedError(Error.OFPBRC_BUFFER_UNKNOWN)
        command = message.command
        is_deletion = command in (FlowCommand.DELETE, FlowCommand.DELETE_STRICT)
        if message.table_id not in ((TABLE, ALL_TABLES) if is_deletion else (TABLE,)):
            raise RefusedError(Error.OFPFMFC_BAD_TABLE_ID)
        is_strict = command in (FlowCommand.MODIFY_STRICT, FlowCommand.DELETE_STRICT)
        if is_deletion:
            return self._remove(list(self.selected(message, is_strict=is_strict)), Removal.DELETE)
        if command == FlowCommand.ADD:
            self._add(message, refuse)
        elif command in (FlowCommand.MODIFY, FlowCommand.MODIFY_STRICT):
            self._modify(message, is_strict=is_strict)
        else:
            raise RefusedError(Error.OFPFMFC_BAD_COMMAND)
        return []

    def settle(self) -> None:
        """Give the engine its new entries, all between the same two turns but those that it
        refuses."""
        while self._staged:
            staged, self._staged = self._staged, []
            changes = Changes()
            for entry, _ in staged:
                self._put(changes, entry)
            number = self._engine.apply(changes)
            if number >= 0:
                entry, refuse = staged[number]
                del self._entries[entry.key]
                self._free.append(entry.index)
                self._staged = staged[number + 1 :]
                refuse(RefusedError(Error.OFPFMFC_TABLE_FULL))

    def modify_meter(self, message: Record) -> list[Removed]:
        """Apply a meter-mod; the entries of a deleted meter are removed. Raises RefusedError."""
        changes = Changes()
        gone = self.meters.modify(message, changes, self.clock())
        self._engine.apply(changes)
        without = [entry for entry in self._entries.values() if entry.treatment.meter in gone]
        return self._remove(without, Removal.DELETE)

    def expire(self) -> list[Removed]:
        """Remove the entries whose hard or idle timeout is over."""
        now_s = self.clock()
        timed = [e for e in self._entries.values() if e.idle_timeout_s or e.hard_timeout_s]
        late = [
            entry
            for entry in timed
            if entry.hard_timeout_s and now_s - entry.since_s >= entry.hard_timeout_s
        ]
        idle = [
            entry
            for entry, (packets, _) in self.counts(timed)
            if entry.idle_timeout_s and self._idle_s(entry, packets, now_s) >= entry.idle_timeout_s
        ]
        gone = self._remove(late, Removal.HARD_TIMEOUT)
        idle = [entry for entry in idle if entry.key in self._entries]
        return gone + self._remove(idle, Removal.IDLE_TIMEOUT)

    def selected(self, message: Record, *, is_strict: bool = False) -> Iterator[Entry]:
        """Yield the entries that a flow-mod or a request covers; `is_strict`: only that of the same
        priority and match. Raises RefusedError."""
        match = match_of(message.match, self._ports)
        # Only changes ignore the outputs of entries, and no entry has a group (6.4).
        by_output = getattr(message, "command", None) not in (
            FlowCommand.MODIFY,
            FlowCommand.MODIFY_STRICT,
        )
        if by_output and message.out_group != ANY_GROUP:
            return
        for entry in self._entries.values():
            if (
                (not is_strict or entry.key == (message.priority, match))
                and match.covers(entry.match)
                and (entry.cookie ^ message.cookie) & message.cookie_mask == 0
                and (not by_output or message.out_port in (PortNo.ANY, entry.treatment.output))
            ):
                yield entry

    def entries(self) -> list[Entry]:
        """Return all entries."""
        return list(self._entries.values())

    def counts(self, entries: Iterable[Entry]) -> list[tuple[Entry, tuple[int, int]]]:
        """Return packets and bytes of entries."""
        self.settle()
        if not (counted := list(entries)):
            return []  # without a request to the engine
        counts = self._engine.flow_counts([entry.index for entry in counted])
        return list(zip(counted, counts, strict=True))

    def uses_of_meters(self) -> Counter[int | None]:
        """Return how many entries have each meter."""
        return Counter(entry.treatment.meter for entry in self._entries.values())

    def _add(self, message: Record, refuse: Refuse | None) -> None:
        entry = self._entry(message)
        if entry.key in self._entries:
            self.settle()  # the old one may be refused
        if message.flags & FlowFlag.CHECK_OVERLAP and any(
            other.priority == entry.priority and other.match.overlaps(entry.match)
            for other in self._entries.values()
        ):
            raise RefusedError(Error.OFPFMFC_OVERLAP)
        old = self._entries.get(entry.key)
        if old is None and not self._free:
            raise RefusedError(Error.OFPFMFC_TABLE_FULL)
        entry = replace(entry, index=self._free[-1] if old is None else old.index)
        if old is None and refuse is not None:
            self._staged.append((entry, refuse))
        else:
            resets = old is not None and bool(message.flags & FlowFlag.RESET_COUNTS)
            self._enter([entry], resets_counts=resets)
        if old is None:
            self._free.pop()
        self._entries[entry.key] = entry
        self._used[entry.index] = (0, entry.since_s)

    def _modify(self, message: Record, *, is_strict: bool) -> None:
        self.settle()
        new = self._entry(message)
        changed = [
            replace(entry, treatment=new.treatment, records=(entry.records[0], new.records[1]))
            for entry in self.selected(message, is_strict=is_strict)
        ]
        self._enter(changed, resets_counts=bool(message.flags & FlowFlag.RESET_COUNTS))
        for entry in changed:
            self._entries[entry.key] = entry

    def _entry(self, message: Record) -> Entry:
        """Return the entry of a message, without its index. Raises RefusedError."""
        if message.flags & ~_KNOWN_FLAGS:
            raise RefusedError(Error.OFPFMFC_BAD_FLAGS)
        treatment = treatment_of(message.instructions)
        if treatment.meter is not None and treatment.meter not in self.meters.by_number:
            raise RefusedError(Error.OFPMMFC_INVALID_METER)
        # An impossible action is refused before anything changes.
        engine_action(treatment, self._ports, self._engine.ring_of)
        return Entry(
            index=-1,
            match=match_of(message.match, self._ports),
            priority=message.priority,
            treatment=treatment,
            cookie=message.cookie,
            flags=message.flags,
            idle_timeout_s=message.idle_timeout,
            hard_timeout_s=message.hard_timeout,
            since_s=self.clock(),
            records=(message.match, message.instructions),
        )

    def _enter(self, entries: list[Entry], *, resets_counts: bool) -> None:
        for some in _batches(entries):
            changes = Changes()
            for entry in some:
                if resets_counts:
                    changes.remove_flow(entry.index)
                self._put(changes, entry)
            if self._engine.apply(changes) >= 0:
                raise RefusedError(Error.OFPFMFC_TABLE_FULL)

    def _put(self, changes: Changes, entry: Entry) -> None:
        action = engine_action(entry.treatment, self._ports, self._engine.ring_of)
        meter = -1 if entry.treatment.meter is None else entry.treatment.meter - 1
        changes.set_flow(entry.index, entry.match.engine_match(), entry.priority, action, meter)

    def _remove(self, entries: list[Entry], reason: Removal) -> list[Removed]:
        self.settle()
        entries = [entry for entry in entries if entry.key in self._entries]
        counted = self.counts(entries)
        for some in _batches(entries):
            changes = Changes()
            for entry in some:
                changes.remove_flow(entry.index)
                del self._entries[entry.key]
                self._free.append(entry.index)
            self._engine.apply(changes)
        return [Removed(entry, reason, *counts) for entry, counts in counted]

    def _idle_s(self, entry: Entry, packets: int, now_s: float) -> float:
        before, used_s = self._used[entry.index]
        if packets != before:
            used_s = now_s
            self._used[entry.index] = (packets, used_s)
        return now_s - used_s


def _batches(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yield entries in lists so short that frames hardly wait while the engine enters one."""
    return (entries[at : at + BATCH] for at in range(0, len(entries), BATCH))


def duration(seconds: float) -> dict[str, int]:
    """Return a duration as the fields of messages."""
    return {"duration_sec": int(seconds), "duration_nsec": int(seconds % 1 * 1e9)}
