"""Files of packets without gaps between them: MFPs of one source (.mfp) or MEPs (.mep)."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from daqloom import _engine
from daqloom.scenario.files import open_regular

Kind = Literal["mfp", "mep"]
ENDINGS: dict[str, Kind] = {".mfp": "mfp", ".mep": "mep"}
MAGIC_BYTES = 2
"""Number of bytes at the start of a file that identify its kind."""
MAGICS: dict[bytes, Kind] = {
    _engine.MFP_MAGIC.to_bytes(2, "little")[:MAGIC_BYTES]: "mfp",
    _engine.MEP_MAGIC.to_bytes(4, "little")[:MAGIC_BYTES]: "mep",
}


def kind_of(path: Path) -> Kind:
    """Return the kind of a file by the ending .mfp or .mep, else by the first bytes. Raises OSError
    if the file cannot be read, ValueError if it has neither kind."""
    with open_regular(path) as file:
        magic = file.read(MAGIC_BYTES)
    if path.suffix in ENDINGS:
        return ENDINGS[path.suffix]
    if magic not in MAGICS:
        raise ValueError(
            f"{path}, byte 0: neither an MFP nor a MEP; expected a file that begins with the bytes "
            "ce 40 (.mfp) or 4d 45 50 31 (.mep)"
        )
    return MAGICS[magic]


@dataclass(frozen=True)
class DamagedPart:
    """A damaged part of a file: one packet or, without an index, possibly several."""

    offset: int
    """Place in the file (B)."""
    nbytes: int
    """Size, up to the next whole packet or the end of the file (B)."""
    reason: str
    """First fault, in one sentence with file and offset."""


def warn(skipped: DamagedPart) -> None:
    """Issue a Python warning on a damaged part that is skipped."""
    warnings.warn(f"{skipped.reason}; {skipped.nbytes:,} bytes were skipped", stacklevel=3)


def packets(
    path: str | Path, kind: Kind | None = None, skip: Callable[[DamagedPart], None] = warn
) -> Iterator[tuple[int, bytes]]:
    """Yield (offset in the file, packet) of each well-formed packet; `skip` is called for each
    damaged part. Raises ValueError with one sentence (file, offset) if no packet is intact, OSError
    if the file cannot be read."""
    file = Path(path)
    reader = (_engine.MfpFile if (kind or kind_of(file)) == "mfp" else _engine.MepFile)(str(file))
    left_out: list[DamagedPart] = []
    found = False
    while True:
        try:
            if (packet := reader.next()) is None:
                break
        except ValueError as error:
            offset = reader.offset
            left_out.append(DamagedPart(offset, reader.skip(), str(error)))
            packet = b""
        if found or packet:
            for each in left_out:
                skip(each)
            left_out.clear()
        if packet:
            found = True
            yield reader.offset, packet
    if left_out:
        raise ValueError(left_out[0].reason)
