"""The file of one result in a store: JSON, compressed with gzip, whose checksum shows damage."""

import json
import os
import platform
import shlex
import sys
import zlib
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import NamedTuple, NoReturn, Self

from daqloom.base.version import installed
from daqloom.results.result import Result
from daqloom.study.file.cell import Cell

SERIES = ("course",)
"""Series that every record keeps, for equilibrium and return levels."""
MOST_BYTES = 64 << 20
"""Largest record, compressed or not (B); a larger one counts as damage."""
LEVEL = 1
"""Compression level: the higher levels take several times as long for a tenth of the size."""
_GZIP = 31
"""Value of zlib's `wbits` for the gzip format (RFC 1952) with the largest window."""


@dataclass(frozen=True, slots=True)
class Session:
    """One process that wrote to a store."""

    command: str
    host: str
    system: str
    processors: int
    python: str
    daqloom: str
    started: str

    @classmethod
    def current(cls, command: str | None = None) -> Self:
        """Return the session of this process, which `command` started."""
        command = shlex.join(sys.argv) if command is None else command
        return cls(
            command=command.encode(errors="backslashreplace").decode(),
            host=platform.node() or "unknown",
            system=platform.platform(),
            processors=os.cpu_count() or 1,
            python=platform.python_version(),
            daqloom=installed(),
            started=now(),
        )


class Record(NamedTuple):
    """A result, the time when it was put (ISO 8601, UTC) and the process that put it."""

    result: Result
    time: str
    session: Session


def now() -> str:
    """Return the time as stores write it: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def packed(cell: Cell, result: Result, session: Session) -> bytes:
    """Return the file of a result. The result's series are left out, but for those of `SERIES`, and
    so is `assumed`, which belongs to a study: another one may set these keys of the same cell."""
    head = {
        "key": cell.key,
        "method": cell.method,
        "seed": cell.seed,
        "time": now(),
        "session": asdict(session),
    }
    start = json.dumps(head).removesuffix("}")
    text = replace(result, assumed={}).to_json(series=SERIES, indent=None)
    scenario = json.dumps(cell.scenario.model_dump(mode="json"), allow_nan=False)
    return compressed(f'{start}, "result": {text},\n"scenario": {scenario}}}\n'.encode())


def compressed(text: bytes) -> bytes:
    """Return `text` as a gzip file."""
    return zlib.compress(text, LEVEL, _GZIP)


def decompressed(content: bytes, wbits: int = _GZIP, dictionary: bytes = b"") -> bytes:
    """Return the text of at most `MOST_BYTES` that `content` holds, and nothing behind it. Raises
    ValueError, which names the damage."""
    inflate = zlib.decompressobj(wbits, dictionary)
    try:
        text = inflate.decompress(content, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed ({error})") from None
    if not inflate.eof or inflate.unused_data:
        raise ValueError("it is cut short, too large, or has more behind its end")
    return text


def unpacked(key: str, content: bytes) -> Record:
    """Return the record of the cell `key` from its file; keys that later versions add are passed
    over, and so is the scenario, two thirds of the text, if it has a line of its own. Raises
    ValueError, which names the damage."""
    text = decompressed(content)
    head, _, _ = text.partition(b"\n")
    text = head[:-1] + b"}" if head.endswith(b",") else text
    try:
        given = json.loads(text, parse_constant=_no_constant)
        if given["key"] != key:
            raise ValueError("it is the result of another cell")
        origin = {each.name: given["session"][each.name] for each in fields(Session)}
        if not all(isinstance(each, str | int) for each in (given["time"], *origin.values())):
            raise ValueError("its origin is neither text nor numbers")
        return Record(Result.from_dict(given["result"]), str(given["time"]), Session(**origin))
    except (KeyError, TypeError, RecursionError):
        raise ValueError("it is no record of a result") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
