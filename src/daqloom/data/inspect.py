"""What a file of packets holds."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from daqloom.data.files import Kind, Skipped, kind_of, packets, warn
from daqloom.data.mep import Mep
from daqloom.data.mfp import Mfp


@dataclass(frozen=True)
class Seen:
    """A packet, in numbers. Of a MEP, `source` is None, and sizes are those of its MFPs."""

    number: int
    """Place in the file; of a MEP, its own number."""
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
        """For JSON; `None` left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def inspect_file(path: Path, skip: Callable[[Skipped], None] = warn) -> tuple[Kind, Iterator[Seen]]:
    """Its packets, one after the other; `skip` is called for what is damaged. Raises OSError where
    the file cannot be read; it or the iterator ValueError, in one sentence with file and offset,
    where there is no packet."""
    kind = kind_of(path)
    see = _of_mfp if kind == "mfp" else _of_mep
    return kind, (see(number, *each) for number, each in enumerate(packets(path, kind, skip)))


def _of_mfp(number: int, offset: int, packet: bytes) -> Seen:
    mfp = Mfp.decode(packet)
    sizes = mfp.sizes
    return Seen(
        number,
        offset,
        source=mfp.source_id,
        first_event=mfp.event_id,
        events=len(mfp),
        parts=len(mfp),
        missing=0,
        nbytes=mfp.nbytes,
        smallest=int(sizes.min(initial=65_535)) if len(sizes) else 0,
        mean=float(sizes.mean()) if len(sizes) else 0.0,
        largest=int(sizes.max(initial=0)),
    )


def _of_mep(number: int, offset: int, packet: bytes) -> Seen:
    mep = Mep.decode(packet)
    sizes = [len(mep.place(source)) for source, entry in enumerate(mep.entries) if not entry.state]
    return Seen(
        mep.number,
        offset,
        source=None,
        first_event=mep.event_id,
        events=mep.events,
        parts=len(sizes),
        missing=len(mep) - len(sizes),
        nbytes=mep.nbytes,
        smallest=min(sizes, default=0),
        mean=sum(sizes) / len(sizes) if sizes else 0.0,
        largest=max(sizes, default=0),
    )
