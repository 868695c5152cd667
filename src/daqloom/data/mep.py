"""The multi-event packet (MEP): the MFPs of all sources for the same events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from daqloom import _engine
from daqloom._engine import MepEntry, MepState
from daqloom.data.mfp import Mfp, Packet, check_numbers

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Mep", "MepEntry", "MepState"]

BITS = {"number": 64, "event_id": 64, "events": 32, "source_id": 16}
"""Width of each number in a packet (bits)."""


class Mep(Packet):
    """A MEP: its `number`, the `event_id` of its first event, its `events` and `entries`. `decode`
    checks that the MFPs lie within the MEP and do not overlap; `mfp` decodes an MFP."""

    def __init__(
        self, number: int, event_id: int, events: int, mfps: Iterable[tuple[int, MepState, Buffer]]
    ) -> None:
        """`mfps` contains a (source id, state, packet) for each MFP, with b"" for a missing or
        empty one. Raises ValueError if a number exceeds its width."""
        check_numbers("MEP", BITS, number=number, event_id=event_id, events=events)
        listed = list(mfps)
        for source_id, _, _ in listed:
            check_numbers("MEP", BITS, source_id=source_id)
        self._read(_engine.encode_mep(number, event_id, events, listed))

    def _read(self, data: Buffer) -> None:
        self._packet = memoryview(data).cast("B").toreadonly()
        header = _engine.decode_mep(self._packet)
        self.number, self.event_id = header.number, header.event_id
        self.events, self.entries = header.events, header.entries

    def place(self, source: int) -> memoryview:
        """Return the bytes of an MFP by its index in `entries`; none if it is missing or empty."""
        entry = self.entries[source]
        size = entry.nbytes if entry.state == MepState.COMPLETE else 0
        return self._packet[entry.offset : entry.offset + size]

    def mfp(self, source: int) -> Mfp | None:
        """Return an MFP by its index in `entries`; None if it is missing or empty. Raises
        ValueError if the bytes are malformed."""
        place = self.place(source)
        return Mfp.decode(place) if self.entries[source].state == MepState.COMPLETE else None

    @property
    def is_complete(self) -> bool:
        """Whether no MFP is missing."""
        return all(entry.state != MepState.MISSING for entry in self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return (
            f"Mep(number={self.number}, event_id={self.event_id}, {self.events} events, "
            f"{len(self)} sources, {self.nbytes} bytes)"
        )
