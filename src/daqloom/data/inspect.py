"""Summaries of the packets of a file."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daqloom.data.files import DamagedPart, Kind, kind_of, packets, warn
from daqloom.data.mep import Mep
from daqloom.data.mfp import Mfp


@dataclass(frozen=True)
class PacketSummary:
    """Properties of a packet. For a MEP, `source` is None, and sizes refer to its MFPs."""

    number: int
    """Index of an MFP in the file; for a MEP its MEP number."""
    offset: int
    source: int | None
    first_event: int
    events: int
    parts: int
    """Fragments of an MFP, MFPs of a MEP."""
    missing: int
    nbytes: int
    smallest: int
    mean: float
    largest: int

    def record(self) -> dict[str, Any]:
        """Return a JSON object, without absent values."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def inspect_file(
    path: Path, skip: Callable[[DamagedPart], None] = warn
) -> tuple[Kind, Iterator[PacketSummary]]:
    """Return the kind of a file and an iterator over its packets; `skip` is called for damaged
    parts. Raises OSError if the file cannot be read. The iterator raises ValueError with one
    sentence (file, offset) if no packet is intact."""
    kind = kind_of(path)
    summary = _mfp_summary if kind == "mfp" else _mep_summary
    return kind, (summary(number, *each) for number, each in enumerate(packets(path, kind, skip)))


def _mfp_summary(number: int, offset: int, packet: bytes) -> PacketSummary:
    mfp = Mfp.decode(packet)
    head = (number, offset, mfp.source_id, mfp.event_id, len(mfp))
    return _summary(head, mfp.sizes.tolist(), 0, mfp.nbytes)


def _mep_summary(_number: int, offset: int, packet: bytes) -> PacketSummary:
    mep = Mep.decode(packet)
    sizes = [len(mep.place(source)) for source, entry in enumerate(mep.entries) if not entry.state]
    head = (mep.number, offset, None, mep.event_id, mep.events)
    return _summary(head, sizes, len(mep) - len(sizes), mep.nbytes)


def _summary(
    head: tuple[int, int, int | None, int, int], sizes: list[int], missing: int, nbytes: int
) -> PacketSummary:
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    spread = min(sizes, default=0), mean, max(sizes, default=0)
    return PacketSummary(*head, len(sizes), missing, nbytes, *spread)
