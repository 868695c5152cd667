"""The file of one result in a store: JSON compressed with gzip, whose checksum detects damage."""

import json
import os
import platform
import shlex
import sys
import zlib
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import NamedTuple, NoReturn, Self

from daqloom.base.version import commit, installed_version
from daqloom.results.result import Result
from daqloom.study.file.cell import Cell

SERIES = ("course",)
"""Time series that records contain, as input for equilibrium tests and return levels."""
MOST_BYTES = 64 << 20
"""Largest record, compressed or not (B); a larger one counts as damage."""
LEVEL = 1
"""Compression level; higher levels take several times as long and save only a tenth of the size."""
_GZIP = 31
"""Value of zlib's `wbits` for the gzip format (RFC 1952) with the largest window."""


@dataclass(frozen=True, slots=True)
class Session:
    """Origin of results: a process that wrote to a store."""

    command: str
    host: str
    system: str
    processors: int
    python: str
    daqloom: str
    started: str
    commit: str = ""
    """Commit of daqloom; empty if unknown, as in records of earlier versions."""

    @classmethod
    def current(cls, command: str | None = None) -> Self:
        """Return the session of this process with the command line `command`, or `sys.argv`."""
        command = shlex.join(sys.argv) if command is None else command
        return cls(
            command=command.encode(errors="backslashreplace").decode(),
            host=platform.node() or "unknown",
            system=platform.platform(),
            processors=os.cpu_count() or 1,
            python=platform.python_version(),
            daqloom=installed_version(),
            started=now(),
            commit=commit(),
        )


class Record(NamedTuple):
    """A result, the time when it was stored (ISO 8601, UTC) and the process that stored it."""

    result: Result
    time: str
    session: Session


def now() -> str:
    """Return the present time in the notation of stores: ISO 8601, UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def pack(cell: Cell, result: Result, session: Session) -> bytes:
    """Return the file content for a result. Only the time series in `SERIES` are kept. `assumed` is
    left out, because it depends on the study: another study may set the same keys explicitly.
    `commit` is in the session alone, so that earlier versions read the record."""
    head = {
        "key": cell.key,
        "method": cell.method,
        "seed": cell.seed,
        "time": now(),
        "session": asdict(session),
    }
    start = json.dumps(head).removesuffix("}")
    text = replace(result, assumed={}, commit="").to_json(series=SERIES, indent=None)
    scenario = json.dumps(cell.scenario.model_dump(mode="json"), allow_nan=False)
    return compress(f'{start}, "result": {text},\n"scenario": {scenario}}}\n'.encode())


def compress(text: bytes) -> bytes:
    """Return `text` as a gzip file."""
    return zlib.compress(text, LEVEL, _GZIP)


def decompress(content: bytes, wbits: int = _GZIP, dictionary: bytes = b"") -> bytes:
    """Return the decompressed `content`. Raises ValueError with the reason if it is damaged, has
    data behind its end, or exceeds `MOST_BYTES`."""
    inflate = zlib.decompressobj(wbits, dictionary)
    try:
        text = inflate.decompress(content, MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"it cannot be decompressed ({error})") from None
    if not inflate.eof or inflate.unused_data:
        raise ValueError("it is cut short, too large, or has more behind its end")
    return text


def unpack(key: str, content: bytes) -> Record:
    """Return the record of the cell `key` from its file content. Keys that later versions add are
    ignored. The scenario, two thirds of the text, is not parsed if it is on a separate line. Raises
    ValueError with the reason if the file is damaged."""
    text = decompress(content)
    head, _, _ = text.partition(b"\n")
    text = head[:-1] + b"}" if head.endswith(b",") else text
    try:
        given = json.loads(text, parse_constant=_no_constant)
        if given["key"] != key:
            raise ValueError("it is the result of another cell")
        known = {"commit": ""} | given["session"]
        origin = {each.name: known[each.name] for each in fields(Session)}
        if not all(isinstance(each, str | int) for each in (given["time"], *origin.values())):
            raise ValueError("its origin is neither text nor numbers")
        result = Result.from_dict({"commit": known["commit"]} | given["result"])
        return Record(result, str(given["time"]), Session(**origin))
    except (KeyError, TypeError, RecursionError):
        raise ValueError("it is no record of a result") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
