"""The single flow table of a switch: controllers' entries with counters and timeouts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from daqloom._switch import Changes
from daqloom.softswitch.configure import MOST_ENTRIES, meters_of
from daqloom.softswitch.running import RunningSwitch
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
"""Number of the single table."""
BATCH = 64
"""Limit on entries that the switch adds, changes or removes between two of its turns."""
_KNOWN_FLAGS = sum(FlowFlag)

Refuse = Callable[[RefusedError], None]
"""Function called if an entry is refused after its message was accepted."""


@dataclass(frozen=True)
class Entry:
    """An entry of the flow table."""

    index: int
    """Index in the engine's table."""
    match: FlowMatch
    treatment: Treatment
    message: Record
    """Flow-mod that added the entry, with the instructions of the last flow-mod that changed it."""
    since_s: float

    @property
    def key(self) -> tuple[int, FlowMatch]:
        """Priority and match, which are unique to an entry."""
        return self.message.priority, self.match

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the flow-mod that messages about the entry repeat."""
        names = ("cookie", "priority", "idle_timeout", "hard_timeout", "match")
        return {name: getattr(self.message, name) for name in names}


@dataclass(frozen=True)
class RemovedEntry:
    """A removed entry, with its final counters."""

    entry: Entry
    reason: Removal
    packets: int
    bytes: int


class FlowTable:
    """Flow entries by priority and match. `clock`: time in seconds that never decreases."""

    def __init__(self, running: RunningSwitch, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.meters = Meters(meters_of(running.file))
        self._engine, self._ports = running, len(running.file.ports)
        self._entries: dict[tuple[int, FlowMatch], Entry] = {}
        self._free = list(range(MOST_ENTRIES - 1, -1, -1))
        self._used: dict[int, tuple[int, float]] = {}
        """By index: packets at the last use of an entry that was observed, and its time (s)."""
        self._staged: list[tuple[Entry, Refuse]] = []
        """New entries that the engine has not received yet."""

    def __len__(self) -> int:
        return len(self._entries)

    def modify(self, message: Record, refuse: Refuse) -> list[RemovedEntry]:
        """Apply a flow-mod; return removed entries. Raises RefusedError. New entries reach the
        engine when they are settled; `refuse` is called if the engine then has no space."""
        if message.buffer_id != NO_BUFFER:
            raise RefusedError(Error.OFPBRC_BUFFER_UNKNOWN)
        command = message.command
        is_deletion = command in (FlowCommand.DELETE, FlowCommand.DELETE_STRICT)
        if message.table_id not in ((TABLE, ALL_TABLES) if is_deletion else (TABLE,)):
            raise RefusedError(Error.OFPFMFC_BAD_TABLE_ID)
        is_strict = command in (FlowCommand.MODIFY_STRICT, FlowCommand.DELETE_STRICT)
        if is_deletion:
            return self._remove(list(self.select(message, is_strict)), Removal.DELETE)
        if command == FlowCommand.ADD:
            self._add(message, refuse)
        elif command in (FlowCommand.MODIFY, FlowCommand.MODIFY_STRICT):
            self._modify(message, is_strict)
        else:
            raise RefusedError(Error.OFPFMFC_BAD_COMMAND)
        return []

    def settle(self) -> None:
        """Send new entries to the engine, which adds all of them, except refused ones, between the
        same two turns."""
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

    def modify_meter(self, message: Record) -> list[RemovedEntry]:
        """Apply a meter-mod; remove the entries that use a deleted meter. Raises RefusedError."""
        changes = Changes()
        gone = self.meters.modify(message, changes, self.clock())
        self._engine.apply(changes)
        without = [entry for entry in self._entries.values() if entry.treatment.meter in gone]
        return self._remove(without, Removal.DELETE)

    def expire(self) -> list[RemovedEntry]:
        """Remove entries whose hard or idle timeout has expired."""
        now_s = self.clock()
        timed = [
            entry
            for entry in self._entries.values()
            if entry.message.idle_timeout or entry.message.hard_timeout
        ]
        late = [entry for entry in timed if 0 < entry.message.hard_timeout <= now_s - entry.since_s]
        idle = [
            entry
            for entry, (packets, _) in self.counts(timed)
            if 0 < entry.message.idle_timeout <= self._idle_s(entry, packets, now_s)
        ]
        gone = self._remove(late, Removal.HARD_TIMEOUT)
        return gone + self._remove(idle, Removal.IDLE_TIMEOUT)

    def select(
        self, message: Record, is_strict: bool = False, by_output: bool = True
    ) -> Iterator[Entry]:
        """Yield the entries that a flow-mod or request selects. `is_strict`: only the one with
        equal priority and match; `by_output`: only those with its output. Raises RefusedError."""
        match = match_of(message.match, self._ports)
        if by_output and message.out_group != ANY_GROUP:
            return  # no entry has a group
        for entry in self._entries.values():
            if (
                (not is_strict or entry.key == (message.priority, match))
                and match.covers(entry.match)
                and (entry.message.cookie ^ message.cookie) & message.cookie_mask == 0
                and (not by_output or message.out_port in (PortNo.ANY, entry.treatment.output))
            ):
                yield entry

    def entries(self) -> list[Entry]:
        """Return all entries."""
        return list(self._entries.values())

    def counts(self, entries: Iterable[Entry]) -> list[tuple[Entry, tuple[int, int]]]:
        """Return packets and bytes of each entry."""
        self.settle()
        if not (counted := list(entries)):
            return []  # without a request to the engine
        counts = self._engine.flow_counts([entry.index for entry in counted])
        return list(zip(counted, counts, strict=True))

    def _add(self, message: Record, refuse: Refuse) -> None:
        entry = self._entry(message)
        if entry.key in self._entries:
            self.settle()  # the old one may be refused
        if message.flags & FlowFlag.CHECK_OVERLAP and any(
            other.message.priority == message.priority and other.match.overlaps(entry.match)
            for other in self._entries.values()
        ):
            raise RefusedError(Error.OFPFMFC_OVERLAP)
        if old := self._entries.get(entry.key):
            entry = replace(entry, index=old.index)
            self._enter([entry], message)
        elif self._free:
            entry = replace(entry, index=self._free.pop())
            self._staged.append((entry, refuse))
        else:
            raise RefusedError(Error.OFPFMFC_TABLE_FULL)
        self._entries[entry.key] = entry
        self._used[entry.index] = (0, entry.since_s)

    def _modify(self, message: Record, is_strict: bool) -> None:
        self.settle()
        new = self._entry(message)
        changed = [
            replace(
                entry,
                treatment=new.treatment,
                message=entry.message.replace(instructions=message.instructions),
            )
            for entry in self.select(message, is_strict, by_output=False)
        ]
        self._enter(changed, message)
        for entry in changed:
            self._entries[entry.key] = entry

    def _entry(self, message: Record) -> Entry:
        """Return the entry that a message describes, still without index. Raises RefusedError."""
        if message.flags & ~_KNOWN_FLAGS:
            raise RefusedError(Error.OFPFMFC_BAD_FLAGS)
        treatment = treatment_of(message.instructions)
        if treatment.meter is not None and treatment.meter not in self.meters.by_number:
            raise RefusedError(Error.OFPMMFC_INVALID_METER)
        # An impossible action is refused before the table changes.
        engine_action(treatment, self._ports, self._engine.ring_of)
        return Entry(
            index=-1,
            match=match_of(message.match, self._ports),
            treatment=treatment,
            message=message,
            since_s=self.clock(),
        )

    def _enter(self, entries: list[Entry], message: Record) -> None:
        """Change entries in the engine as a message requests. Raises RefusedError."""
        for some in _batches(entries):
            changes = Changes()
            for entry in some:
                if message.flags & FlowFlag.RESET_COUNTS:
                    changes.remove_flow(entry.index)
                self._put(changes, entry)
            if self._engine.apply(changes) >= 0:
                raise RefusedError(Error.OFPFMFC_TABLE_FULL)

    def _put(self, changes: Changes, entry: Entry) -> None:
        action = engine_action(entry.treatment, self._ports, self._engine.ring_of)
        meter = -1 if entry.treatment.meter is None else entry.treatment.meter - 1
        changes.set_flow(
            entry.index, entry.match.engine_match(), entry.message.priority, action, meter
        )

    def _remove(self, entries: list[Entry], reason: Removal) -> list[RemovedEntry]:
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
        return [RemovedEntry(entry, reason, *counts) for entry, counts in counted]

    def _idle_s(self, entry: Entry, packets: int, now_s: float) -> float:
        before, used_s = self._used[entry.index]
        if packets != before:
            used_s = now_s
            self._used[entry.index] = (packets, used_s)
        return now_s - used_s


def _batches(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yield entries in short lists, so that frames hardly wait while the engine enters one list."""
    return (entries[at : at + BATCH] for at in range(0, len(entries), BATCH))


def duration(seconds: float) -> dict[str, int]:
    """Return a duration as the two fields that messages have for it."""
    return {"duration_sec": int(seconds), "duration_nsec": int(seconds % 1 * 1e9)}
