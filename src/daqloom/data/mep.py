"""The multi-event packet (MEP): the MFPs of all sources for the same events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from daqloom import _engine
from daqloom._engine import MepEntry, MepState
from daqloom.data.mfp import Mfp, check_numbers

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Mep", "MepEntry", "MepState"]

BITS = {"number": 64, "event_id": 64, "events": 32, "source_id": 16}
"""Bits of the numbers in a packet."""


class Mep:
    """A MEP: its `number`, `event_id` of its first event, how many `events`, and its `entries`."""

    def __init__(
        self, number: int, event_id: int, events: int, mfps: Iterable[tuple[int, MepState, Buffer]]
    ) -> None:
        """`mfps`: (source id, state, packet) each, with b"" where there is none. Raises ValueError
        for what a MEP cannot say."""
        check_numbers("MEP", BITS, number=number, event_id=event_id, events=events)
        listed = list(mfps)
        for source_id, _, _ in listed:
            check_numbers("MEP", BITS, source_id=source_id)
        self._read(_engine.encode_mep(number, event_id, events, listed))

    @classmethod
    def decode(cls, data: Buffer) -> Mep:
        """The MEP that `data` is, which it keeps a view of; nothing is copied. Raises ValueError,
        whatever the bytes are, unless every MFP lies within it, apart from the others. The MFPs
        themselves are decoded by `mfp`."""
        mep = cls.__new__(cls)
        mep._read(data)
        return mep

    def _read(self, data: Buffer) -> None:
        self._packet = memoryview(data).cast("B").toreadonly()
        header = _engine.decode_mep(self._packet)
        self.number = header.number
        self.event_id = header.event_id
        self.events = header.events
        self.entries = header.entries

    def place(self, source: int) -> memoryview:
        """The bytes of an MFP, by its place in the table; none where it is missing or empty."""
        entry = self.entries[source]
        size = entry.nbytes if entry.state == MepState.COMPLETE else 0
        return self._packet[entry.offset : entry.offset + size]

    def mfp(self, source: int) -> Mfp | None:
        """An MFP by its place in the table; None where it is missing or empty. Raises ValueError if
        what is there is no MFP."""
        place = self.place(source)
        return Mfp.decode(place) if self.entries[source].state == MepState.COMPLETE else None

    @property
    def is_complete(self) -> bool:
        """Whether no MFP is missing."""
        return all(entry.state != MepState.MISSING for entry in self.entries)

    @property
    def nbytes(self) -> int:
        """Size of the packet (B)."""
        return len(self._packet)

    def encode(self) -> bytes:
        """Return the bytes of the packet."""
        return bytes(self._packet)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return (
            f"Mep(number={self.number}, event_id={self.event_id}, {self.events} events, "
            f"{len(self)} sources, {self.nbytes} bytes)"
        )
