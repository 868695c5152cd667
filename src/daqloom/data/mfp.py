"""The multi-fragment packet (MFP): fragments of successive events from one source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Self, overload

import numpy as np
from numpy.typing import NDArray

from daqloom import _engine

if TYPE_CHECKING:
    from typing_extensions import Buffer

HEADER_BYTES = _engine.MFP_HEADER_BYTES
BITS = {"event_id": 64, "source_id": 16, "align": 8, "version": 8, "type": 8}
"""Width of each number in a packet (bits)."""


def check_numbers(packet: str, bits: Mapping[str, int], **given: int) -> None:
    """Raise ValueError if a number exceeds its width."""
    for name, value in given.items():
        if not isinstance(value, int) or not 0 <= value < 1 << bits[name]:
            most = (1 << bits[name]) - 1
            raise ValueError(f"{packet} with {name} {value!r}; expected 0 to {most}")


class Fragments(Sequence[tuple[int, memoryview]]):
    """Sequence of (type, payload), one for each event. `types`, `sizes` (B) and the payloads are
    views into the packet, without padding."""

    def __init__(self, packet: memoryview, count: int, align: int) -> None:
        sizes_at = HEADER_BYTES + (count + 3 & ~3)
        first_at = sizes_at + (2 * count + 3 & ~3)
        self._packet = packet
        self.types: NDArray[np.uint8] = np.frombuffer(packet, np.uint8, count, HEADER_BYTES)
        self.sizes: NDArray[np.uint16] = np.frombuffer(packet, "<u2", count, sizes_at)
        unit = (1 << align) - 1
        ends = np.cumsum(self.sizes.astype(np.int64) + unit & ~unit)
        self._starts: NDArray[np.int64] = np.concatenate(([0], ends[:-1])) + first_at

    def __len__(self) -> int:
        return len(self.sizes)

    @overload
    def __getitem__(self, index: int) -> tuple[int, memoryview]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, memoryview]]: ...
    def __getitem__(
        self, index: int | slice
    ) -> tuple[int, memoryview] | Sequence[tuple[int, memoryview]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        start = int(self._starts[index])
        return int(self.types[index]), self._packet[start : start + int(self.sizes[index])]


class Packet(ABC):
    """A packet: a read-only view of the encoded bytes."""

    _packet: memoryview

    @classmethod
    def decode(cls, data: Buffer) -> Self:
        """Return the packet at the start of `data` without copying. Raises ValueError if the packet
        is truncated or malformed."""
        packet = cls.__new__(cls)
        packet._read(data)
        return packet

    @abstractmethod
    def _read(self, data: Buffer) -> None:
        """Set `_packet` and the attributes from the packet at the start of `data`."""

    @property
    def nbytes(self) -> int:
        """Size of the packet (B)."""
        return len(self._packet)

    def encode(self) -> bytes:
        """Return the bytes of the packet."""
        return bytes(self._packet)


class Mfp(Packet):
    """An MFP: the event number `event_id` of its first fragment, `source_id`, and the fragments.
    Payloads are padded to multiples of 2^`align` bytes, `align` from 0 to 16."""

    def __init__(
        self,
        event_id: int,
        source_id: int,
        fragments: Iterable[tuple[int, Buffer]],
        align: int = 2,
        version: int = 3,
    ) -> None:
        """`fragments`: up to 65 535 pairs (type, payload), each payload up to 65 535 bytes. Raises
        ValueError if a number exceeds its width."""
        check_numbers(
            "MFP", BITS, event_id=event_id, source_id=source_id, align=align, version=version
        )
        listed = list(fragments)
        for kind, _ in listed:
            check_numbers("MFP", BITS, type=kind)
        self._read(_engine.encode_mfp(event_id, source_id, align, version, listed))

    def _read(self, data: Buffer) -> None:
        whole = memoryview(data).cast("B")
        header = _engine.decode_mfp(whole)
        self.event_id, self.source_id = header.event_id, header.source_id
        self.align, self.version = header.align, header.version
        self._packet = whole[: header.nbytes].toreadonly()
        self.fragments = Fragments(self._packet, header.count, self.align)
        self.types, self.sizes = self.fragments.types, self.fragments.sizes

    def __iter__(self) -> Iterator[tuple[int, memoryview]]:
        return iter(self.fragments)

    def __len__(self) -> int:
        return len(self.fragments)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mfp) and self._packet == other._packet

    def __hash__(self) -> int:
        return hash(self.encode())

    def __repr__(self) -> str:
        return (
            f"Mfp(source_id={self.source_id:#06x}, event_id={self.event_id}, "
            f"{len(self)} fragments, {self.nbytes} bytes)"
        )
