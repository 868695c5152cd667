"""Files of packets: MFPs of one source (.mfp) or MEPs (.mep), one right after the other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from daqloom import _engine
from daqloom.scenario.files import open_regular

Kind = Literal["mfp", "mep"]
ENDINGS: dict[str, Kind] = {".mfp": "mfp", ".mep": "mep"}
MAGIC_BYTES = 2
"""So many of a file's first bytes tell its kind."""
MAGICS: dict[bytes, Kind] = {
    _engine.MFP_MAGIC.to_bytes(2, "little")[:MAGIC_BYTES]: "mfp",
    _engine.MEP_MAGIC.to_bytes(4, "little")[:MAGIC_BYTES]: "mep",
}


def kind_of(path: Path) -> Kind:
    """By the ending of its name, .mfp or .mep, else by its first bytes. Raises OSError where it
    cannot be read, ValueError where it is neither."""
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


def packets(path: str | Path, kind: Kind | None = None) -> Iterator[tuple[int, bytes]]:
    """(offset in the file, packet) one after the other, each well-formed. `kind` is told from the
    file if it is not given. Raises ValueError at the first that is not, in one sentence with file
    and offset, OSError where the file cannot be read."""
    file = Path(path)
    reader = (_engine.MfpFile if (kind or kind_of(file)) == "mfp" else _engine.MepFile)(str(file))
    while (packet := reader.next()) is not None:
        yield reader.offset, packet
