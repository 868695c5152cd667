"""The only flow table of a switch: entries of controllers, their counts and time-outs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pyof.v0x04.asynchronous.error_msg import (
    BadRequestCode,
    FlowModFailedCode,
    MeterModFailedCode,
)
from pyof.v0x04.asynchronous.flow_removed import FlowRemovedReason
from pyof.v0x04.common.constants import OFP_NO_BUFFER
from pyof.v0x04.common.port import PortNo
from pyof.v0x04.controller2switch.flow_mod import FlowModCommand, FlowModFlags
from pyof.v0x04.controller2switch.group_mod import Group
from pyof.v0x04.controller2switch.table_mod import Table

from daqloom._switch import Changes
from daqloom.softswitch.configure import MOST_ENTRIES, MOST_METERS
from daqloom.softswitch.openflow.actions import Done, done_of, for_engine
from daqloom.softswitch.openflow.match import FlowMatch, match_of
from daqloom.softswitch.openflow.meters import Meters
from daqloom.softswitch.openflow.refused import RefusedError

TABLE = 0
"""Number of the only table."""
BATCH = 64
"""Entries that the switch takes in, changes or removes between two of its turns."""
_KNOWN_FLAGS = (
    FlowModFlags.OFPFF_SEND_FLOW_REM
    | FlowModFlags.OFPFF_CHECK_OVERLAP
    | FlowModFlags.OFPFF_RESET_COUNTS
    | FlowModFlags.OFPFF_NO_PKT_COUNTS
    | FlowModFlags.OFPFF_NO_BYT_COUNTS
)


Refuse = Callable[[RefusedError], None]
"""Called with the refusal of an entry whose message had been accepted."""


class Engine(Protocol):
    """What the table is told to, and asked of, a running switch."""

    def apply(self, changes: Changes) -> int:
        """Change it between two turns; return the number of the step that was refused, or -1."""

    def flow_counts(self, indices: list[int]) -> list[tuple[int, int]]:
        """Return packets and bytes of entries."""

    def ring_of(self, port: int, queue: int) -> int | None:
        """Return the number of the ring that is a queue of a port."""


@dataclass(frozen=True)
class Entry:
    """An entry of the flow table."""

    index: int
    """In the engine's table."""
    match: FlowMatch
    priority: int
    done: Done
    cookie: int
    flags: int
    idle_timeout_s: int
    hard_timeout_s: int
    since_s: float
    said: tuple[Any, Any]
    """Match and instructions as the controller sent them."""

    @property
    def key(self) -> tuple[int, FlowMatch]:
        """What no two entries share."""
        return self.priority, self.match


@dataclass(frozen=True)
class Removed:
    """An entry that is gone."""

    entry: Entry
    reason: FlowRemovedReason
    packets: int
    bytes: int


class FlowTable:
    """Entries by priority and match. `meters`: that there may be; `clock`: seconds that do not go
    back."""

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
        """By index, packets when it was last in use, and when that was."""
        self._staged: list[tuple[Entry, Refuse]] = []
        """New entries that the switch does not have yet."""

    def __len__(self) -> int:
        return len(self._entries)

    def modify(self, message: Any, refuse: Refuse | None = None) -> list[Removed]:
        """Do what a flow-mod asks for. Raises RefusedError. With `refuse`, a new entry gets into
        the switch together with others, when these are settled, and is refused then."""
        if message.buffer_id.value != OFP_NO_BUFFER:
            raise RefusedError(BadRequestCode.OFPBRC_BUFFER_UNKNOWN)
        match message.command:
            case FlowModCommand.OFPFC_ADD:
                return self._add(message, refuse)
            case FlowModCommand.OFPFC_MODIFY | FlowModCommand.OFPFC_MODIFY_STRICT:
                self._modify(message)
                return []
        _check_table(message, or_all=True)
        return self._remove(list(self.selected(message)), FlowRemovedReason.OFPRR_DELETE)

    def settle(self) -> None:
        """Give the switch its new entries: all between the same two turns, except those that it
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
                refuse(RefusedError(FlowModFailedCode.OFPFMFC_TABLE_FULL))

    def modify_meter(self, message: Any) -> list[Removed]:
        """Do what a meter-mod asks for; entries of a meter that is gone are, too. Raises
        RefusedError."""
        changes = Changes()
        gone = self.meters.modify(message, changes, self.clock())
        self._engine.apply(changes)
        without = [entry for entry in self._entries.values() if entry.done.meter in gone]
        return self._remove(without, FlowRemovedReason.OFPRR_DELETE)

    def expire(self) -> list[Removed]:
        """Remove what has been there, or not been in use, for too long."""
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
        gone = self._remove(late, FlowRemovedReason.OFPRR_HARD_TIMEOUT)
        idle = [entry for entry in idle if entry.key in self._entries]
        return gone + self._remove(idle, FlowRemovedReason.OFPRR_IDLE_TIMEOUT)

    def selected(self, message: Any) -> Iterator[Entry]:
        """Yield the entries that a message means. Raises RefusedError."""
        match = match_of(message.match, self._ports)
        command = getattr(message, "command", None)
        is_strict = command in (
            FlowModCommand.OFPFC_MODIFY_STRICT,
            FlowModCommand.OFPFC_DELETE_STRICT,
        )
        by_output = command not in (
            FlowModCommand.OFPFC_MODIFY,
            FlowModCommand.OFPFC_MODIFY_STRICT,
        )
        out_port, mask = message.out_port.value, message.cookie_mask.value
        if by_output and message.out_group.value != Group.OFPG_ANY:
            return  # no entry has a group
        for entry in self._entries.values():
            if (
                (entry.key == (message.priority.value, match) if is_strict else True)
                and match.covers(entry.match)
                and (entry.cookie ^ message.cookie.value) & mask == 0
                and (not by_output or out_port in (PortNo.OFPP_ANY, entry.done.output))
            ):
                yield entry

    def entries(self) -> list[Entry]:
        """Return all entries."""
        return list(self._entries.values())

    def counts(self, entries: Iterable[Entry]) -> list[tuple[Entry, tuple[int, int]]]:
        """Return packets and bytes of entries."""
        self.settle()
        asked = list(entries)
        if not asked:
            return []  # the switch is not disturbed for it
        counted = self._engine.flow_counts([entry.index for entry in asked])
        return list(zip(asked, counted, strict=True))

    def uses_of_meters(self) -> Counter[int | None]:
        """Return how many entries have each meter."""
        return Counter(entry.done.meter for entry in self._entries.values())

    def _add(self, message: Any, refuse: Refuse | None) -> list[Removed]:
        _check_table(message)
        entry = self._entry(message)
        if entry.key in self._entries:
            self.settle()  # the old one may be refused
        if message.flags.value & FlowModFlags.OFPFF_CHECK_OVERLAP and any(
            other.priority == entry.priority and other.match.overlaps(entry.match)
            for other in self._entries.values()
        ):
            raise RefusedError(FlowModFailedCode.OFPFMFC_OVERLAP)
        old = self._entries.get(entry.key)
        if old is None and not self._free:
            raise RefusedError(FlowModFailedCode.OFPFMFC_TABLE_FULL)
        entry = replace(entry, index=self._free[-1] if old is None else old.index)
        counts_anew = bool(message.flags.value & FlowModFlags.OFPFF_RESET_COUNTS)
        if old is None and refuse is not None:
            self._staged.append((entry, refuse))
        else:
            self._enter([entry], counts_anew=old is not None and counts_anew)
        if old is None:
            self._free.pop()
        self._entries[entry.key] = entry
        self._used[entry.index] = (0, entry.since_s)
        return []

    def _modify(self, message: Any) -> None:
        _check_table(message)
        self.settle()
        given = self._entry(message)
        changed = [
            replace(entry, done=given.done, said=(entry.said[0], given.said[1]))
            for entry in self.selected(message)
        ]
        counts_anew = bool(message.flags.value & FlowModFlags.OFPFF_RESET_COUNTS)
        self._enter(changed, counts_anew=counts_anew)
        for entry in changed:
            self._entries[entry.key] = entry

    def _entry(self, message: Any) -> Entry:
        """Return the entry that a message asks for, without its index."""
        if message.flags.value & ~_KNOWN_FLAGS:
            raise RefusedError(FlowModFailedCode.OFPFMFC_BAD_FLAGS)
        done = done_of(message.instructions)
        if done.meter is not None and done.meter not in self.meters.by_number:
            raise RefusedError(MeterModFailedCode.OFPMMFC_INVALID_METER)
        for_engine(done, self._ports, self._engine.ring_of)  # refused before anything changes
        return Entry(
            index=-1,
            match=match_of(message.match, self._ports),
            priority=message.priority.value,
            done=done,
            cookie=message.cookie.value,
            flags=int(message.flags.value),
            idle_timeout_s=message.idle_timeout.value,
            hard_timeout_s=message.hard_timeout.value,
            since_s=self.clock(),
            said=(message.match, message.instructions),
        )

    def _enter(self, entries: list[Entry], *, counts_anew: bool) -> None:
        for some in _batches(entries):
            changes = Changes()
            for entry in some:
                if counts_anew:
                    changes.remove_flow(entry.index)
                self._put(changes, entry)
            if self._engine.apply(changes) >= 0:
                raise RefusedError(FlowModFailedCode.OFPFMFC_TABLE_FULL)

    def _put(self, changes: Changes, entry: Entry) -> None:
        action = for_engine(entry.done, self._ports, self._engine.ring_of)
        meter = -1 if entry.done.meter is None else entry.done.meter - 1
        changes.set_flow(entry.index, entry.match.for_engine(), entry.priority, action, meter)

    def _remove(self, entries: list[Entry], reason: FlowRemovedReason) -> list[Removed]:
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
    """Yield entries in lists so short that frames hardly wait for the switch to take them in."""
    return (entries[at : at + BATCH] for at in range(0, len(entries), BATCH))


def duration(seconds: float) -> dict[str, int]:
    """Return how long something has been there, as the fields of messages have it."""
    return {"duration_sec": int(seconds), "duration_nsec": int(seconds % 1 * 1e9)}


def _check_table(message: Any, *, or_all: bool = False) -> None:
    known = (TABLE, Table.OFPTT_ALL) if or_all else (TABLE,)
    if message.table_id.value not in known:
        raise RefusedError(FlowModFailedCode.OFPFMFC_BAD_TABLE_ID)
